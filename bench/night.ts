/**
 * A night of faults in twelve minutes: `npm run bench:night [seed [program]]`. One `svc serve` with an embedded store
 * watches 36 real listeners with 144 planted faults, is killed 36 times, four times in a restart loop of a minute, and
 * started again. Each listener has a receiver of its own, because a receiver folds what happens within a minute. Prints
 * what they were told, and exits with 1 unless at least 47 of the 48 outages of a minute were told, none twice, nothing
 * false, and no end lost. Writes `bench/results/night.md`.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import type { ReceivedAlert } from '../test/support/notify/alert-sink.ts'
import { type Serving, serving } from '../test/support/program/serving.ts'
import { svcHome } from '../test/support/program/svc.ts'
import { makeCertificates } from '../test/support/servers/certs.ts'
import { httpPeer } from '../test/support/simulated/http-peer.ts'
import { type Fault, type Peer, peers, planOf } from './night-plan.ts'

const seed = Number(process.argv[2] ?? 1)
/** The svc that watches. Absent: the built one. */
const program = process.argv[3]
const { faults, kills, lastsMs } = planOf(seed)
const second = 1_000
/** Interval, confirmation and half a minute for a machine that is busy. */
const lateMs = 50 * second
/** How long ends may take after the night. */
const settleMs = 60 * second

const folder = mkdtempSync(join(tmpdir(), 'svc-night-'))
const certificates = makeCertificates()
type Message = ReceivedAlert & { readonly startsAt: string; readonly at: number; readonly id: string }
const messages: Message[] = []
await using hook = await httpPeer((request, response) => {
  const id = String(request.headers['webhook-id'])
  void textOf(request).then((body) => {
    const { alerts } = JSON.parse(body) as { alerts: readonly Omit<Message, 'at' | 'id'>[] }
    messages.push(...alerts.map((alert) => ({ ...alert, id, at: Date.now() })))
    response.writeHead(204).end()
  })
})

const entryOf = ({ name, kind, host, port }: Peer): string => {
  if (kind === 'tcp') return `{kind: tcp, name: ${name}, host: ${host}, port: ${port}, timeout: 5s}`
  if (kind === 'tls')
    return `{kind: tls, name: ${name}, host: ${host}, port: ${port}, servername: localhost, caFile: ${certificates.caFile}, timeout: 5s}`
  const expected = 'json: {$.state: well}, measure: [{name: backlog, path: $.backlog, atMost: {warn: 10, limit: 100}}]'
  return `{kind: http, name: ${name}, url: "http://${host}:${port}/", latency: {warn: 1s, limit: 4s}, ${expected}, timeout: 5s}`
}
const home = svcHome()
const config = join(folder, 'svc.yaml')
writeFileSync(
  config,
  `serve: {every: {Standard: 10s, Advanced: off}, confirm: 10s, flapping: off, name: night}
notify:
${peers.map(({ name, kind }) => `  - {name: ${name}, webhook: {url: "${hook.origin}/${name}"}, only: {monitors: ["App/${kind} ${name}"]}}\n`).join('')}types:
  App:
    host: false
    monitors:
${peers.map((peer) => `      - ${entryOf(peer)}\n`).join('')}`,
  { mode: 0o600 },
)
const peersFile = join(folder, 'peers.json')
writeFileSync(peersFile, JSON.stringify({ peers, certificates }))
const listeners = fork(new URL('night-peers.ts', import.meta.url).pathname, [peersFile])
await once(listeners, 'message')

const start = async (): Promise<Serving> =>
  await serving(['--config', config, '--store', join(folder, 'svc.db')], { folder, program, env: home.env })
let serve = await start()
// All monitors have run once before the night.
await pause(25 * second)
const began = Date.now()
const until = async (at: number): Promise<void> => await pause(Math.max(0, began + at - Date.now()))

const plant = async (): Promise<void> => {
  const steps = faults.flatMap(({ peer, steps: all }) => all.map((step) => ({ peer, ...step })))
  for (const { peer, at, behaves } of steps.toSorted((one, other) => one.at - other.at)) {
    await until(at)
    listeners.send({ name: peer, behaves })
  }
}
let killed = 0
const logs: string[] = []
const kill = async (): Promise<void> => {
  for (const at of kills) {
    await until(at)
    await serve.stop('SIGKILL')
    killed += 1
    logs.push(serve.log())
    serve = await start()
  }
}
await Promise.all([plant(), kill(), until(lastsMs)])
await pause(settleMs)
await serve.stop()
logs.push(serve.log())
listeners.disconnect()

// What the receiver was told of each fault: an alert belongs to the fault that its `startsAt` lies in.
const fromNight = (text: string): number => Date.parse(text) - began
const marginMs = 2 * second
const faultOf = ({ labels, startsAt }: Message): Fault | undefined => {
  const at = fromNight(startsAt)
  return faults.find(
    ({ peer, from, to }) =>
      String(labels['monitor']).endsWith(` ${peer}`) && at >= from - marginMs && at <= to + marginMs,
  )
}
const messagesOf = new Map(faults.map((fault) => [fault, [] as Message[]]))
const strangers: Message[] = []
for (const one of messages) (messagesOf.get(faultOf(one) as Fault) ?? strangers).push(one)

type Row = { planted: number; hits: number; late: number; twice: number; lost: number; untold: number; false: number }
const rows = new Map<string, Row>()
const remarks: string[] = []
const keyOf = ({ labels, status }: Message): string =>
  [status, labels['check'], labels['item'], labels['severity']].join(' ')
for (const [fault, all] of messagesOf) {
  const row = rows.get(fault.what) ?? { planted: 0, hits: 0, late: 0, twice: 0, lost: 0, untold: 0, false: 0 }
  rows.set(fault.what, row)
  row.planted += 1
  // A fault that is over before the next message of a receiver is one line there, about its end.
  const firing = all.filter(({ status }) => status === 'firing')
  const [first] = all
  const mark = (what: keyof Row, why: string): void => {
    row[what] += 1
    remarks.push(`${fault.peer}, ${fault.what} from ${(fault.from / second).toFixed(0)} s: ${what}: ${why}`)
  }
  const texts = (): string =>
    all
      .map((one) => `${((one.at - began) / second).toFixed(1)} ${keyOf(one)} ${one.id} ${one.annotations['summary']}`)
      .join(' | ')
  if (fault.what === 'restart of 5 s') {
    if (first) mark('false', texts())
    continue
  }
  if (!first) {
    mark('untold', 'no message')
    continue
  }
  row.hits += 1
  if (first.at - began - fault.from > lateMs) row.late += 1
  // A message whose answer was lost is repeated with its id, by which receivers recognize it.
  const ids = Map.groupBy(all, keyOf)
  const isSteps = fault.what === 'steps'
  if ([...ids.values()].some((ones) => new Set(ones.map(({ id }) => id)).size > (isSteps ? 2 : 1)))
    mark('twice', texts())
  const open = new Set(firing.map(({ labels }) => `${labels['check']} ${labels['item']}`))
  for (const { labels, status } of all) if (status === 'resolved') open.delete(`${labels['check']} ${labels['item']}`)
  if (open.size > 0) mark('lost', `no end of ${[...open].join(', ')}: ${texts()}`)
}
for (const one of strangers)
  remarks.push(
    `false: ${one.labels['monitor']} ${keyOf(one)} from ${fromNight(one.startsAt) / second} s: ${one.annotations['summary']}`,
  )

const total: Row = { planted: 0, hits: 0, late: 0, twice: 0, lost: 0, untold: 0, false: strangers.length }
for (const row of rows.values()) for (const [name, value] of Object.entries(row)) total[name as keyof Row] += value
const cells = ({ planted, hits: some, untold, late, twice, lost, false: strange }: Row): string =>
  [planted, some, untold, late, twice, lost, strange].join(' | ')
const lines = [
  '# A night of faults',
  '',
  `${peers.length} listeners, ${faults.length} faults, ${killed} kills of one \`svc serve\` with an embedded store in`,
  `${Math.round(lastsMs / second)} s, seed ${seed}. Every monitor each 10 s, \`confirm: 10s\`.`,
  '',
  '| fault | planted | told | not told | late | twice | end lost | false |',
  '|---|---|---|---|---|---|---|---|',
  ...[...rows].sort().map(([what, row]) => `| ${what} | ${cells(row)} |`),
  `| all | ${cells(total)} |`,
  '',
  ...remarks.map((one) => `- ${one}`),
]
process.stdout.write(`${lines.join('\n')}\n`)
const results = new URL('results/', import.meta.url)
mkdirSync(results, { recursive: true })
writeFileSync(new URL('night.md', results), `${lines.join('\n').trimEnd()}\n`)
const keep = process.env['KEEP_NIGHT']
if (keep !== undefined) writeFileSync(keep, JSON.stringify({ began, messages, logs, remarks }, undefined, 1))
home.remove()
certificates.remove()
rmSync(folder, { recursive: true, force: true })
const minute = rows.get('outage of a minute')
const isGood =
  killed === kills.length && (minute?.untold ?? 1) <= 1 && total.twice === 0 && total.false === 0 && total.lost === 0
if (!isGood) process.exitCode = 1
