import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { HistoryIncident } from '../../src/core/protocol/index.ts'
import { ask, type ServeNode, startNode } from '../support/program/serve-node.ts'
import { freePort } from '../support/servers/server.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'
import { maxMs } from './scheduled-web.ts'

type OnTheWire = Omit<HistoryIncident, 'From' | 'To'> & { readonly From: string; readonly To?: string }

/** The incidents of each monitor in the history, by its name. */
async function incidentsAt({ url }: ServeNode): Promise<Readonly<Record<string, readonly OnTheWire[]>>> {
  const { status, body } = await ask(`${url}/history`, { headers: { accept: 'application/json' } })
  if (status !== 200) return {}
  const { Monitors } = JSON.parse(body) as {
    readonly Monitors: readonly { readonly MonitorName: string; readonly Incidents: readonly OnTheWire[] }[]
  }
  return Object.fromEntries(Monitors.map(({ MonitorName, Incidents }) => [MonitorName, Incidents]))
}

/** The ids of the open incidents in the metrics, by the name of the monitor. */
async function openAt({ url }: ServeNode): Promise<Readonly<Record<string, string>>> {
  const { body } = await ask(`${url}/metrics`)
  const lines = body.split('\n').filter((line) => line.startsWith('svc_incident_info{'))
  const labelIn = (line: string, name: string): string => line.split(`${name}="`)[1]?.split('"')[0] ?? ''
  return Object.fromEntries(lines.map((line) => [labelIn(line, 'monitor'), labelIn(line, 'incident')]))
}

/** A server that waits for its clients to close. One that closes at once would be an incident of its own. */
async function listen(port: number): Promise<void> {
  const server = createServer((socket) => void socket.on('error', () => {}).resume())
  await once(server.listen(port, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
}

test('W18 W9 during its incident a monitor is broken by a mistake, changed, renamed or removed by a reload: the first three keep the incident, the last one ends it, and each recovers once its server is back; a refused sign-in recovers with its password', {
  timeout: 2 * maxMs,
}, async () => {
  const folder = temporaryFolder()
  const secret = join(folder, 'password')
  writeFileSync(secret, 'wrong', { mode: 0o600 })
  const passwords: string[] = []
  await using shop = await httpPeer((request, response) => {
    const [, packed = ''] = (request.headers.authorization ?? '').split(' ')
    const [, password = ''] = Buffer.from(packed, 'base64').toString().split(':')
    if (password !== '') passwords.push(password)
    response.writeHead(password === 'right' ? 200 : 401, { 'content-type': 'text/plain' }).end('page')
  })
  const ports = [await freePort(), await freePort(), await freePort(), await freePort()]
  const tcp = (name: string, at: number, more = ''): string =>
    `{kind: tcp, name: ${name}, host: 127.0.0.1, port: ${ports[at]}${more}}`
  const signIn = `{kind: http, name: shop, url: '${shop.origin}/', username: svc, password: {file: ${secret}}}`
  const yamlOf = (...entries: readonly string[]): string => `serve: {confirm: 5s, every: {Standard: 10s, Advanced: off}}
types:
  App:
    host: false
    monitors:
${[signIn, ...entries].map((entry) => `      - ${entry}\n`).join('')}`
  const unchanged = tcp('kept', 0)
  await using node = await startNode({
    store: join(folder, 'store', 'svc.db'),
    yaml: yamlOf(unchanged, tcp('changed', 1), tcp('renamed', 2), tcp('removed', 3)),
  })
  const reload = async (yaml: string, outcome: string): Promise<void> => {
    const times = (): number => node.log().split(outcome).length
    const before = times()
    writeFileSync(node.config, yaml)
    node.signal('SIGHUP')
    await until(() => times() > before, maxMs)
  }
  const names = ['http shop', 'tcp changed', 'tcp kept', 'tcp removed', 'tcp renamed']
  const before = await until(
    async () => {
      const open = await openAt(node)
      return Object.keys(open).length === names.length && open
    },
    maxMs,
    250,
  )
  expect(Object.keys(before).toSorted()).toEqual(names)
  const began = await until(
    async () => {
      const all = await incidentsAt(node)
      return names.every((name) => all[name]?.length === 1) && all
    },
    maxMs,
    250,
  )
  for (const name of names) expect(began[name]).toMatchObject([{ Id: before[name], VictimCount: 0 }])
  expect(began['http shop']).toMatchObject([{ Fault: 'auth' }])

  // The line of the mistake is that of the entry, and all of the former configuration stays in force.
  await reload(yamlOf(unchanged.replace('port:', 'prot:')), 'not reloaded')
  // A caller whose account the server does not find in time, as on a busy machine, gets no names.
  await expect.poll(() => openAt(node)).toEqual(before)

  await reload(
    yamlOf(unchanged, tcp('changed', 1, ', timeout: 3s'), tcp('other', 2, ', formerly: App/tcp/renamed')),
    'reloaded: ',
  )
  const after = await until(
    async () => {
      const open = await openAt(node)
      return open['tcp removed'] === undefined && open
    },
    maxMs,
    250,
  )
  expect(after).toEqual({
    'http shop': before['http shop'],
    'tcp changed': before['tcp changed'],
    'tcp kept': before['tcp kept'],
    'tcp other': before['tcp renamed'],
  })
  const ofRemoved = await until(
    async () => {
      const [one] = (await incidentsAt(node))['tcp removed'] ?? []
      return one?.To !== undefined && one
    },
    maxMs,
    250,
  )
  expect(ofRemoved).toMatchObject({ Id: before['tcp removed'], Ending: 'Removed' })

  for (const port of ports.slice(0, 3)) await listen(port)
  writeFileSync(secret, 'right', { mode: 0o600 })
  await until(async () => Object.keys(await openAt(node)).length === 0, maxMs, 250)
  const over = await incidentsAt(node)
  for (const [name, former = name] of [
    ['http shop'],
    ['tcp changed'],
    ['tcp kept'],
    ['tcp other', 'tcp renamed'],
  ] as const) {
    expect(over[name], name).toMatchObject([
      { Id: before[former], Ending: 'Recovered', From: began[former]?.[0]?.From, To: expect.any(String) },
    ])
  }
  // Of a renamed monitor, the history goes on under its new name only.
  expect(Object.keys(over).toSorted()).toEqual(['http shop', 'tcp changed', 'tcp kept', 'tcp other', 'tcp removed'])
  expect(new Set(passwords)).toEqual(new Set(['wrong', 'right']))
  expect(passwords.filter((one) => one === 'wrong').length).toBeLessThanOrEqual(2)
})
