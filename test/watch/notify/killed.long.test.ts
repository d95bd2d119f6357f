import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { httpPeer } from '../../support/simulated/http-peer.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'
import { until } from '../../support/suite/until.ts'
import { Chance } from '../simulate/chance.ts'

const child = new URL('../../support/notify/killed-child.ts', import.meta.url).pathname
/** How much faster the clock of the children is. */
const speed = 200
const killsEach = 40
const inParallel = 5
const waitMs = 120_000

type Alert = {
  readonly status: string
  readonly labels: { readonly monitor: string }
  readonly annotations: { readonly incident: string }
}
type Line = { readonly receiver: string; readonly status: string; readonly monitor: string; readonly incident: string }

/** Kills a process that sends notifications again and again, and gives what its receivers received. */
async function killedOften(seed: number): Promise<{ readonly lines: readonly Line[]; readonly kills: number }> {
  const chance = new Chance(seed)
  const folder = temporaryFolder()
  const lines: Line[] = []
  let onRequest: ((isAnswered: boolean) => boolean) | undefined
  await using hook = await httpPeer((request, response) => {
    void textOf(request).then(
      (body) => {
        const { alerts } = JSON.parse(body) as { readonly alerts: readonly Alert[] }
        const receiver = (request.url ?? '').slice(1)
        for (const { status, labels, annotations } of alerts)
          lines.push({ receiver, status, monitor: labels.monitor, incident: annotations.incident })
        if (onRequest?.(false)) return
        response.writeHead(204).end()
        onRequest?.(true)
      },
      () => {},
    )
  })
  const epoch = Date.now()
  const begin = (stopAt: string) => {
    const args = [child, join(folder, 'svc.db'), hook.origin, String(epoch), String(speed), stopAt]
    return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  }
  let kills = 0
  while (kills < killsEach) {
    const process_ = begin('')
    const ended = once(process_, 'exit')
    await once(process_.stdout, 'data')
    const kill = (): true => {
      onRequest = undefined
      process_.kill('SIGKILL')
      return true
    }
    // Some die while a message is on its way, some right after its answer, and some at any time.
    const way = chance.of(['before the answer', 'after the answer', 'at any time'] as const)
    if (way !== 'at any time') onRequest = (isAnswered) => isAnswered === (way === 'after the answer') && kill()
    await Promise.race([ended, pause(chance.between(0, way === 'at any time' ? 300 : 1_000))])
    kill()
    await ended
    kills += 1
  }
  const last = begin(String((Date.now() - epoch) * speed))
  onTestFinished(() => void last.kill('SIGKILL'))
  // Whoever reads a failure needs to know which incident is left: the test compares them by id.
  await until(() => isSettled(lines), waitMs).catch(() => {})
  last.kill('SIGKILL')
  return { lines, kills }
}

const receivers = ['folds', 'plain']
const incidentsIn = (lines: readonly Line[], receiver: string, status: string): ReadonlySet<string> =>
  new Set(lines.filter((one) => one.receiver === receiver && one.status === status).map(({ incident }) => incident))
/** The incidents that a receiver was told of, and whose end it does not know. */
const openFor = (lines: readonly Line[], receiver: string): readonly string[] => {
  const over = incidentsIn(lines, receiver, 'resolved')
  return [...incidentsIn(lines, receiver, 'firing')].filter((incident) => !over.has(incident))
}
/** Whether each receiver shows the truth at the end: the last incident is open, and no other. */
const isSettled = (lines: readonly Line[]): boolean =>
  receivers.every((receiver) => openFor(lines, receiver).join() === 'last')

test('W23 after 200 kills with -9 while it sends, each fault that stands is told, each end is told to whoever was told, and the order is kept', {
  timeout: 5 * waitMs,
}, async () => {
  const all = await Promise.all(Array.from({ length: inParallel }, (_, at) => killedOften(at + 1)))
  expect(all.reduce((sum, { kills }) => sum + kills, 0)).toBe(200)
  for (const { lines } of all) {
    expect(incidentsIn(lines, 'plain', 'firing').size).toBeGreaterThan(5)
    for (const receiver of receivers) {
      expect(openFor(lines, receiver), `what ${receiver} shows`).toEqual(['last'])
      const over = new Set<string>()
      for (const { incident, status, receiver: of } of lines) {
        if (of !== receiver) continue
        if (status === 'resolved') over.add(incident)
        else expect(over, `${incident} begins after its end`).not.toContain(incident)
      }
    }
  }
})
