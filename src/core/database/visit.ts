import {
  atAddress,
  atMost,
  type CheckContext,
  eachAddress,
  evaluateProblem,
  evaluateUnreached,
  type Problem,
  type Result,
  type Unreached,
} from '../engine/index.ts'
import { said } from '../net/text.ts'
import { ProbeError } from '../probe-error.ts'
import type { Threshold } from '../settings/index.ts'
import { PeerSocket } from './peer-socket.ts'
import { figure } from './rows.ts'
import type { Ask, Open, Read } from './session.ts'
import type { DatabaseTarget } from './target.ts'

/** What a visit to a database server saw; `L` is what its own checks look at. */
export type Visit<L> =
  | { readonly see: 'reached' }
  | { readonly see: 'signed in'; readonly address: string; readonly ms: number; readonly as: string }
  | { readonly see: 'answered'; readonly address: string; readonly ms: number }
  | { readonly see: 'look'; readonly address: string; readonly look: L }
  | Problem
  | Unreached

/** A check and the question that it asks. */
export type Look<L> = readonly [check: string, look: (ask: Ask, read: Read) => Promise<L | readonly L[]>]

/** Connects, signs in, asks SELECT 1 and then one question after another, and signs off. */
export async function* visit<L>(
  context: CheckContext,
  target: DatabaseTarget,
  open: Open,
  looks: readonly Look<L>[],
): AsyncGenerator<Visit<L>> {
  const { host, port } = target
  const { now, msLeft } = context
  yield* eachAddress<Visit<L>>(context, { host, port, which: 'any', check: 'connect' }, async function* (at) {
    const { address, ip, signal, step } = at
    const start = now()
    const socket = await PeerSocket.reach(ip, port, signal)
    try {
      // From here on no other address stands in for this one: a refused sign-in is not repeated there.
      yield { see: 'reached' }
      const session = await open(target, { socket, ip, address, signal, msLeft })
      try {
        const as = session.encryption ? `${target.user} over ${session.encryption}` : target.user
        yield { see: 'signed in', address, ms: now() - start, as: said(as, 80) }
        step('query')
        const asked = now()
        const [row] = await session.ask('SELECT 1 AS one')
        if (figure(row, 'one') !== 1) throw new ProbeError('protocol', 'SELECT 1 was answered with something else')
        yield { see: 'answered', address, ms: now() - asked }
        for (const [check, look] of looks) {
          step(check)
          const since = now()
          try {
            for (const one of [await look(session.ask, session.read)].flat() as L[])
              yield { see: 'look', address, look: one }
          } catch (cause) {
            // The deadline and a broken connection end the visit; anything else ends this check.
            if (signal.aborted || socket.destroyed) throw cause
            yield { see: 'problem', check, address, cause, afterMs: now() - since }
          }
        }
      } finally {
        await session.close()
      }
    } finally {
      socket.destroy()
    }
  })
}

/** Judges what a visit saw; `judgeLook` judges what the kind's own checks looked at. */
export function evaluateVisit<L>(
  seen: Visit<L>,
  latency: Threshold,
  evaluateLook: (look: L) => Result | readonly Result[],
): Result | readonly Result[] {
  switch (seen.see) {
    case 'reached':
      return []
    case 'signed in': {
      const what = `signed in at ${seen.address} as ${seen.as} in`
      return timed('connect', what, seen, latency)
    }
    case 'answered':
      return timed('query', 'SELECT 1 answered in', seen, latency)
    case 'look':
      return atAddress(seen.address, evaluateLook(seen.look))
    case 'problem':
      return evaluateProblem(seen)
    case 'unreached':
      return evaluateUnreached(seen)
  }
}

const timed = (
  check: string,
  what: string,
  { ms, address }: { readonly ms: number; readonly address: string },
  threshold: Threshold,
): Result => atMost({ check, what, value: ms, unit: 'duration', threshold, address })
