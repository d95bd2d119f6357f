import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { ask, type ServeNode, startNode } from '../support/program/serve-node.ts'
import { startServeProcess } from '../support/program/serve-process.ts'
import { postgresMissing } from '../support/servers/postgres.ts'
import { freePort } from '../support/servers/server.ts'
import { backends } from '../support/store/data-fixture.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const waitMs = 90_000

const yaml = (port: number, name = 'peer', more = ''): string => `serve: {confirm: 5s}
types:
  App:
    host: false
    monitors: [{kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}, every: 10s${more}}]
`

/** The lines of the metrics that say which incidents are open, and since when. */
async function incidents({ url }: ServeNode): Promise<readonly string[]> {
  const { body } = await ask(`${url}/metrics`)
  const since = /^svc_check_confirmed_since_timestamp_seconds\{[^}]*\} (\S+)/m.exec(body)?.[1]
  return body
    .split('\n')
    .filter((line) => line.startsWith('svc_incident_info'))
    .map((line) => `${/incident="(\w+)"/.exec(line)?.[1]} ${/monitor="([^"]+)"/.exec(line)?.[1]} ${since}`)
}

const listen = async (port: number): Promise<Server> => {
  const server = createServer((socket) => void socket.on('error', () => {}))
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return server
}

describe.each(backends)('W18 incidents over a restart, on $name', ({ name, start, fresh, stop }) => {
  const isMissing = name === 'PostgreSQL' && postgresMissing !== undefined
  beforeAll(async () => void (isMissing || (await start())))
  afterAll(async () => void (isMissing || (await stop())))

  test.skipIf(isMissing)(
    'W18 an incident keeps its id and its beginning over kill -9, a stop, and a start under a new name; it ends when its peer is back',
    { timeout: 6 * waitMs },
    async () => {
      const store = await fresh()
      const port = await freePort()
      const running: ServeNode[] = []
      onTestFinished(async () => {
        for (const node of running) await node[Symbol.asyncDispose]()
      })
      const begin = async (text: string): Promise<ServeNode> => {
        const node = await startNode({ store, yaml: text })
        running.push(node)
        return node
      }
      const first = await begin(yaml(port))
      const [incident = ''] = await until(async () => {
        const open = await incidents(first)
        return open.length > 0 && open
      }, waitMs)
      expect(incident).toMatch(/^\w{12} tcp peer 1\d{9}/)
      // What the last second brought may be lost.
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      first.signal('SIGKILL')
      await first.ended

      const second = await begin(yaml(port))
      expect(await until(async () => (await incidents(second))[0] ?? false, waitMs)).toBe(incident)
      expect(await second.stop()).toBe(0)

      const renamed = await begin(yaml(port, 'other', ', formerly: [App/tcp/peer]'))
      const goesOn = await until(async () => (await incidents(renamed))[0] ?? false, waitMs)
      expect(goesOn).toBe(incident.replace('tcp peer', 'tcp other'))
      const peer = await listen(port)
      onTestFinished(() => void peer.close())
      await until(async () => (await incidents(renamed)).length === 0, waitMs)
      expect(await renamed.stop()).toBe(0)

      const last = await begin(yaml(port, 'other'))
      await until(async () => (await ask(`${last.url}/metrics`)).body.includes('svc_check_confirmed{'), waitMs)
      expect(await incidents(last)).toEqual([])
      expect(await last.stop()).toBe(0)
    },
  )
})

test('W3 without a store, the first line of the log says what svc forgets when it ends; with one, nothing', async () => {
  const firstLine = (log: string): { readonly store?: string; readonly notKept?: string } =>
    JSON.parse(log.split('\n').find((line) => line.includes(' listens on ')) ?? '{}')
  await using without = await startServeProcess('{}\n')
  await until(() => without.log().includes(' listens on '), waitMs)
  expect(firstLine(without.log())).toMatchObject({
    store: 'none',
    notKept: 'Without a store, svc forgets states and incidents when it ends',
  })
  const folder = temporaryFolder()
  await using stored = await startNode({ store: join(folder, 'store', 'svc.db') })
  await until(() => stored.log().includes(' listens on '), waitMs)
  expect(firstLine(stored.log())).not.toHaveProperty('notKept')
})
