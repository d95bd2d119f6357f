/** The plan of a night: its listeners, their faults and the kills of svc, all from one seed. Times are milliseconds. */
import { Chance } from '../test/watch/simulate/chance.ts'

export type Behaviour =
  | 'well'
  | 'refused'
  | 'silent'
  | 'reset'
  | 'error'
  | 'wrong'
  | 'slow'
  | 'expired'
  | 'warns'
  | 'exceeds'

export type Peer = {
  readonly name: string
  readonly kind: 'tcp' | 'http' | 'tls'
  readonly host: string
  readonly port: number
}

export type Fault = {
  readonly peer: string
  readonly what: 'outage of a minute' | 'restart of 5 s' | Exclude<Behaviour, 'well' | 'warns' | 'exceeds'> | 'steps'
  /** Since the night began. */
  readonly from: number
  readonly to: number
  /** The behaviour of the listener, and from when on. */
  readonly steps: readonly { readonly at: number; readonly behaves: Behaviour }[]
}

const second = 1_000
/** How long each part of the night lasts, in which each listener has one fault. */
const partMs = 150 * second
const parts = 4
/** Kills of each part: a restart loop, and two by themselves. */
const loopKills = 7
const loopEveryMs = 8 * second
const loopFromMs = 40 * second
const aloneAt = [12 * second, 120 * second] as const

const kinds = [
  ...Array.from({ length: 14 }, () => 'tcp' as const),
  ...Array.from({ length: 16 }, () => 'http' as const),
  ...Array.from({ length: 6 }, () => 'tls' as const),
]

/**
 * Ports outside the range from which the kernel takes free ones, and an address of its own for each, so that no other
 * program can be reached there while a listener is down.
 */
export const peers: readonly Peer[] = kinds.map((kind, at) => ({
  name: `${kind}-${at + 1}`,
  kind,
  host: `127.${64 + (process.pid % 128)}.9.${at + 1}`,
  port: 20_000 + (process.pid % 10_000),
}))

const othersOf: Readonly<Record<Peer['kind'], readonly Fault['what'][]>> = {
  tcp: ['refused'],
  http: ['error', 'wrong', 'slow', 'reset', 'silent', 'steps'],
  tls: ['expired'],
}

/** In each part, a third of the listeners has an outage of a minute, a quarter a restart, and the others another fault. */
export function planOf(seed: number): {
  readonly faults: readonly Fault[]
  readonly kills: readonly number[]
  readonly lastsMs: number
} {
  const chance = new Chance(seed)
  const faults = Array.from({ length: parts }, (_, part) =>
    peers.map(({ name, kind }, at): Fault => {
      const from = Math.round(part * partMs + 5 * second + chance.next() * 40 * second)
      const turn = (at + part * 5) % 12
      if (turn < 4) return fault(name, 'outage of a minute', from, 60 * second, 'refused')
      if (turn < 7) return fault(name, 'restart of 5 s', from, 5 * second, 'refused')
      const others = othersOf[kind]
      const what = chance.of(others)
      if (what !== 'steps') return fault(name, what, from, 75 * second, what as Behaviour)
      const step = 25 * second
      const steps = (['warns', 'exceeds', 'warns', 'well'] as const).map((behaves, nth) => ({
        at: from + nth * step,
        behaves,
      }))
      return { peer: name, what, from, to: from + 3 * step, steps }
    }),
  ).flat()
  const kills = Array.from({ length: parts }, (_, part) => [
    ...Array.from({ length: loopKills }, (__, nth) => part * partMs + loopFromMs + nth * loopEveryMs),
    ...aloneAt.map((at) => part * partMs + at),
  ])
    .flat()
    .sort((one, other) => one - other)
  return { faults, kills, lastsMs: parts * partMs }
}

const fault = (peer: string, what: Fault['what'], from: number, ms: number, behaves: Behaviour): Fault => ({
  peer,
  what,
  from,
  to: from + ms,
  steps: [
    { at: from, behaves },
    { at: from + ms, behaves: 'well' },
  ],
})
