import { type DatabaseTarget, figure } from '../../database/index.ts'
import { type CheckContext, eachAddress, type Problem, type Result, type Unreached } from '../../engine/index.ts'
import { said } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { type Command, loadMongodb, openMongo } from './driver.ts'
import { type Node, nodeOf } from './node.ts'

/** What a visit to a node saw; `L` is what the checks beyond it look at. */
export type MongoVisit<L> =
  | { readonly see: 'connected'; readonly address: string; readonly ms: number; readonly as: string }
  | { readonly see: 'hello'; readonly address: string; readonly ms: number; readonly node: Node }
  | { readonly see: 'ping'; readonly address: string; readonly ms: number }
  | { readonly see: 'look'; readonly address: string; readonly look: L }
  | Problem
  | Unreached

/** A check and what it asks; `when` leaves it out where it has no meaning. */
export type MongoLook<L> = {
  readonly check: Result['check']
  readonly when: (node: Node) => boolean
  readonly look: (command: Command, node: Node) => Promise<L>
}

/** Connects, signs in where there is a user, says hello, pings, and asks one question after another. */
export async function* mongoVisit<L>(
  context: CheckContext,
  target: DatabaseTarget,
  looks: readonly MongoLook<L>[],
): AsyncGenerator<MongoVisit<L>> {
  const { host, port, user } = target
  const { now, msLeft } = context
  // Not in the time that the node is said to take.
  await loadMongodb()
  yield* eachAddress<MongoVisit<L>>(context, { host, port, which: 'any', check: 'connect' }, async function* (at) {
    const { address, ip, signal, step } = at
    const start = now()
    const session = await openMongo(target, { ip, address, signal, msLeft }).catch((cause: unknown) => {
      if (cause instanceof ProbeError && cause.fault === 'auth' && !signal.aborted) return cause
      throw cause
    })
    if (session instanceof ProbeError) {
      // Shown, not thrown: no other address is signed in to in its stead.
      yield { see: 'unreached', check: 'connect', address, cause: session, afterMs: now() - start, status: 'failed' }
      return
    }
    const { command, encrypted, close } = session
    try {
      const who = user === '' ? 'without a sign-in' : `as ${user}`
      yield { see: 'connected', address, ms: now() - start, as: said(encrypted ? `${who} over TLS` : who, 100) }
      step('hello')
      const greeted = now()
      const node = nodeOf(await command({ hello: 1 }))
      yield { see: 'hello', address, ms: now() - greeted, node }
      step('ping')
      const pinged = now()
      const pong = await command({ ping: 1 })
      if (figure(pong, 'ok') !== 1) throw new ProbeError('protocol', '`ping` was answered with something else')
      yield { see: 'ping', address, ms: now() - pinged }
      for (const { check, look } of looks.filter(({ when }) => when(node))) {
        step(check)
        const since = now()
        try {
          yield { see: 'look', address, look: await look(command, node) }
        } catch (cause) {
          // The deadline ends the visit; a broken connection fails the checks that are left by itself.
          if (signal.aborted) throw cause
          yield { see: 'problem', check, address, cause, afterMs: now() - since }
        }
      }
    } finally {
      await close()
    }
  })
}
