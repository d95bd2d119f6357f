import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { expect, type OnTestFinishedHandler } from 'vitest'
import { type ProbedPeer, probedPeer } from '../support/faults/probed-peers.ts'
import { type NodeOptions, type ServeNode, startNode } from '../support/program/serve-node.ts'
import { freePort } from '../support/servers/server.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { until } from '../support/suite/until.ts'

/** Tests of messages about an outage of the store have a limit only for hangs. Milliseconds. */
export const maxMs = 600_000
/** One step of such a test; shorter than the whole, so that a failure shows the logs. Milliseconds. */
export const stepMs = 150_000

type Cleanup = (clean: OnTestFinishedHandler) => void
type Alert = {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly endsAt: string
}

/** A simulated Alertmanager, which knows incidents by their ids, and a simulated PagerDuty, which gets each event once. */
export async function receivers(onEnd: Cleanup) {
  const begins = new Map<string, Set<string>>()
  const ended = new Map<string, Set<string>>()
  const events: string[] = []
  const peer = await httpPeer(async (request, response) => {
    const body = await textOf(request)
    if (request.url?.endsWith('/v2/enqueue')) {
      const { event_action: action, dedup_key: key } = JSON.parse(body) as Record<string, string>
      events.push(`${action} ${key}`)
      response.writeHead(202).end('{}')
      return
    }
    for (const { labels, annotations, endsAt } of request.method === 'POST' ? (JSON.parse(body) as Alert[]) : []) {
      if (labels['alertname'] !== 'SvcFailed') continue
      const of = Date.parse(endsAt) > Date.now() ? begins : ended
      const id = `${labels['monitor']} ${annotations['incident']}`
      of.set(id, (of.get(id) ?? new Set()).add(endsAt))
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('[]')
  })
  onEnd(async () => await peer[Symbol.asyncDispose]())
  const of = (all: ReadonlyMap<string, unknown>, monitor: string): readonly string[] =>
    [...all.keys()].filter((id) => id.startsWith(`tcp ${monitor} `))
  return {
    yaml: `notify:
  - {name: am, alertmanager: {urls: ["${peer.origin}"]}}
  - {name: pager, pagerduty: {url: "${peer.origin}", routingKey: {env: PAGER_KEY}}}
`,
    /** The incidents of a monitor that Alertmanager was told of, and those of which it got the end. */
    begins: (monitor: string) => of(begins, monitor),
    ended: (monitor: string) => of(ended, monitor),
    /** Which incidents of which monitors began and ended, for a failure. */
    all: () => ({ begins: [...begins.keys()], ended: [...ended.keys()] }),
    /** The ends of incidents, each with the times that Alertmanager got for it. */
    ends: () => [...ended].map(([id, times]) => [id, [...times]] as const),
    /** The events that PagerDuty got, by their key. */
    pages: () =>
      [...Map.groupBy(events, (event) => event.split(' ')[1])].map(([, all]) => all.map((one) => one.split(' ')[0])),
  }
}

/** Monitors that fail when a test says so, and the settings of their nodes. */
export async function watched(names: readonly string[], onEnd: Cleanup) {
  const peers = new Map<string, ProbedPeer>()
  for (const name of names) {
    const peer = await probedPeer(name, await freePort())
    onEnd(async () => await peer.close())
    peers.set(name, peer)
  }
  const entries = [...peers.values()].map(
    ({ name, port }) =>
      `      - {kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}, expect: hello, timeout: 5s}\n`,
  )
  return {
    yaml: `types:\n  App:\n    host: false\n    monitors:\n${entries.join('')}`,
    of: (name: string): ProbedPeer => {
      const peer = peers.get(name)
      if (!peer) throw new Error(`no peer ${name}`)
      return peer
    },
  }
}

/** Processes of one node, whose home outlives each of them. */
export function nodeNamed(name: string, options: NodeOptions, onEnd: Cleanup) {
  const home = mkdtempSync(join(tmpdir(), 'svc-told-'))
  onEnd(() => rmSync(home, { recursive: true, force: true }))
  const yaml = `serve: {node: ${name}, name: told, confirm: 5s, every: {Standard: 10s, Advanced: off}}\n${options.yaml}`
  const env = { ...options.env, HOME: home, SVC_HOME: home, PAGER_KEY: '0123456789abcdef0123456789abcdef' }
  const file = join(home, 'state', `told-${name}.jsonl`)
  return {
    home,
    file,
    text: (): string => (existsSync(file) ? readFileSync(file, 'utf8') : ''),
    files: (): readonly string[] => (existsSync(join(home, 'state')) ? readdirSync(join(home, 'state')) : []),
    start: async (): Promise<ServeNode> => {
      const node = await startNode({ ...options, yaml, env })
      onEnd(async () => void (await node.stop('SIGKILL')))
      return node
    },
  }
}

/**
 * A store that a test takes away and brings back, and a server that ends in the middle of the outage: what it told without the
 * store gets its end from the next one, and what the store knew ends once.
 */
export async function outlivesTheProcess({
  signal,
  away,
  back,
  onEnd,
  ...options
}: Omit<NodeOptions, 'yaml'> & {
  readonly signal: 'SIGTERM' | 'SIGKILL'
  readonly away: (node: ServeNode | undefined) => Promise<void>
  readonly back: () => Promise<void>
  readonly onEnd: Cleanup
}): Promise<void> {
  const got = await receivers(onEnd)
  const peers = await watched(['known', 'new', 'over', 'lasting'], onEnd)
  const node = nodeNamed('a', { ...options, yaml: `${got.yaml}${peers.yaml}` }, onEnd)
  const logs: string[] = []
  let serve = await node.start()
  const happens = async (holds: () => boolean): Promise<void> => {
    await until(holds, stepMs, 200).catch((error: unknown) => expect.fail(`${error}\n${logs.join('')}\n${serve.log()}`))
  }
  peers.of('known').fail()
  await happens(() => got.begins('known').length === 1 && got.pages().length === 1)
  await away(serve)
  peers.of('known').recover()
  for (const name of ['new', 'over', 'lasting']) peers.of(name).fail()
  await happens(
    () => ['new', 'over', 'lasting'].every((name) => got.begins(name).length === 1) && got.pages().length === 4,
  )
  peers.of('over').recover()
  await happens(
    () => ['known', 'over'].every((name) => got.ended(name).length === 1) && got.pages().flat().length === 6,
  )
  await happens(
    () =>
      node
        .text()
        .split('\n')
        // Each has another line, from before it left.
        .filter((line) => line.includes('"level":"ok"') && !line.includes('"isTried"')).length === 4,
  )
  const ending = await serve.stop(signal)
  logs.push(serve.log())
  expect(ending).toBe(signal === 'SIGTERM' ? 0 : signal)
  peers.of('new').recover()
  await away(undefined)
  serve = await node.start()
  expect(got.ended('new')).toEqual([])
  await back()
  await happens(() => got.ended('new').length > 0)
  peers.of('lasting').recover()
  await happens(() => got.ended('lasting').length > 0 && got.begins('lasting').length === got.ended('lasting').length)
  await happens(
    () =>
      got
        .pages()
        .flat()
        .filter((action) => action === 'resolve').length >= 4,
  )
  await happens(() => node.text() === '')
  for (const name of ['known', 'new', 'over']) expect(got.ended(name), name).toEqual(got.begins(name))
  for (const [id, times] of got.ends()) expect(times, id).toHaveLength(1)
  const pages = got.pages()
  expect(pages).toHaveLength(4)
  // PagerDuty drops what it has: its keys say nothing about incidents.
  for (const page of pages.slice(0, 3)) expect([page[0], page.at(-1)]).toEqual(['trigger', 'resolve'])
}
