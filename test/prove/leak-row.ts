import type { FaultClass } from '../../src/core/base/probe-error.ts'
import { blackHole, type Peer, type PeerOptions, peer } from '../support/faults/faults.ts'
import { type Certificates, makeCertificates } from '../support/servers/certs.ts'
import type { Case, Task } from './leak-runner.ts'

/** How a kind is proved: against what, and what such a run costs. */
export type Row = {
  /** Why it cannot run here. */
  readonly missing: string | undefined
  /** The part of it that has no real server here. */
  readonly simulated?: string | undefined
  /** `dear`: a run starts processes, here or there, or waits by design. */
  readonly cost: 'cheap' | 'dear'
  /** Objects that its driver caches and releases in turn: growth below this number cannot be detected. */
  readonly hoards?: number | undefined
  readonly start: () => Promise<Started>
}
export type Started = Partial<Pick<Task, 'env' | 'allow' | 'store'>> & {
  readonly cases: readonly Case[]
  /** Broken peers: their cases follow, they may hold nothing of ours in the end, and they are the first to stop. */
  readonly breaks?: Breaks
  /** The connections and sessions of ours that the peers still hold. */
  readonly left?: () => Promise<readonly string[]> | readonly string[]
  readonly stop: () => Promise<unknown>
  /** A program with its arguments within which the runner runs. */
  readonly within?: readonly string[] | undefined
}

type Settings = Readonly<Record<string, unknown>>
export const modes = ['Basic', 'Standard', 'Advanced'] as const

/** A case, in all three modes unless it says otherwise. */
export const run = (
  name: string,
  expect: Case['expect'],
  settings: Settings,
  more: Partial<Pick<Case, 'modes' | 'atOnce'>> = {},
): Case => ({ name, settings, expect, modes, atOnce: 8, ...more })
export const well = (settings: Settings, more: Parameters<typeof run>[3] = {}): Case =>
  run('healthy', 'well', settings, more)

/** The port of a service (tcpmux) that no machine has had for decades. */
export const refusedAt = 1
/** Long enough to connect and to ask, on a busy machine too. */
export const shortly = '150ms'

export type Breaks = {
  readonly cases: readonly Case[]
  readonly left: () => readonly string[]
  readonly stop: () => Promise<void>
}

/**
 * The three ways in which any peer is broken: refused, a black hole that the deadline cuts, and a
 * hang-up in mid answer. `begins` is what is said of that answer; `sendsFirst` when nobody asks for it.
 */
export async function broken(
  at: (port: number) => Settings,
  begins: string | Buffer,
  options: PeerOptions & {
    readonly sendsFirst?: boolean
    readonly cut?: readonly FaultClass[] | 'fails'
    readonly modes?: Case['modes']
  } = {},
): Promise<Breaks> {
  const { sendsFirst = false, cut = 'fails', modes: those = modes, ...how } = options
  const hole = await peer(blackHole, how)
  const cutting = await peer((socket) => {
    if (sendsFirst) socket.end(begins)
    else socket.once('data', () => socket.end(begins))
  }, how)
  const more = { modes: those, atOnce: 16 }
  return {
    cases: [
      run('refused', ['refused'], at(refusedAt), more),
      run('black hole', ['timeout'], { ...at(hole.port), timeout: shortly }, more),
      run('hang-up', cut, at(cutting.port), more),
    ],
    left: () => [...open('black hole', hole), ...open('hang-up', cutting)],
    stop: async () => {
      await hole.close()
      await cutting.close()
    },
  }
}

/** The connections that a peer in this process still has open. */
export const open = (name: string, there: Pick<Peer, 'open'>): readonly string[] =>
  there.open() === 0 ? [] : [`${name}: ${there.open()} connections`]

let made: Certificates | undefined
/** The same for all rows. */
export function certificates(): Certificates {
  made ??= makeCertificates()
  return made
}

/** Once no row needs them any more. */
export function removeCertificates(): void {
  made?.remove()
  made = undefined
}
