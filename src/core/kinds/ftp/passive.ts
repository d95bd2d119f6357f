import { atMost, evaluateProblem, fail, type Result, warn } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { count } from '../../net/text.ts'
import { askGate, gateSaid, type Passive, reach, transfer } from './data.ts'
import type { Link } from './link.ts'
import { linesOf, longestListing } from './list.ts'
import type { FtpSettings } from './settings.ts'

/** One way to a data connection, tried by itself: most real faults are here, and none of them is the account's. */
export type PassiveSeen = {
  readonly see: 'passive'
  readonly mode: Passive
  readonly address: string
  readonly signedInMs: number
  readonly outcome:
    | {
        readonly is: 'listed'
        readonly said: string
        readonly entries: number
        readonly cut: boolean
        readonly ms: number
      }
    | { readonly is: 'not offered' | 'unusable'; readonly told: string }
    | {
        readonly is: 'unreachable'
        readonly said: string
        readonly how: 'timed out' | 'refused' | 'no route' | 'broke'
        readonly ms: number
        /** The address that the control connection goes to. */
        readonly peer: string
        readonly foreign: boolean
        /** Another address was told, but this port of the peer itself accepts. */
        readonly peerAccepts: boolean
      }
    | { readonly is: 'elsewhere'; readonly said: string; readonly peer: string }
    | { readonly is: 'failed'; readonly said: string; readonly cause: unknown; readonly afterMs: number }
}

/** Milliseconds: whether the peer itself accepts is only an aid to the cause. */
const secondLookMs = 1_000

/** Asks for a data connection, makes it and lists the folder over it. Throws when the session has ended. */
export async function tryPassive(link: Link, mode: Passive): Promise<PassiveSeen['outcome']> {
  const { control, target, context } = link
  const start = context.now()
  const gate = await askGate(link, mode)
  if ('why' in gate) return { is: gate.why, told: control.shown(gate.reply) }
  const said = gateSaid(gate)
  const { foreign } = gate
  const reached = await reach(link, gate.ip, gate.port)
  if ('failed' in reached) {
    const again = foreign ? await reach(link, target.ip, gate.port, secondLookMs) : undefined
    const peerAccepts = again !== undefined && 'socket' in again
    if (peerAccepts) again.socket.destroy()
    return { is: 'unreachable', said, how: reached.failed, ms: reached.ms, peer: target.ip, foreign, peerAccepts }
  }
  if (foreign && !link.dataHosts.includes(gate.ip)) {
    // A server that points elsewhere must not have us talk to whom it likes.
    reached.socket.destroy()
    return { is: 'elsewhere', said, peer: target.ip }
  }
  try {
    const { bytes, cut } = await transfer(link, 'LIST', reached.socket, { max: longestListing })
    return { is: 'listed', said, entries: linesOf(bytes).length, cut, ms: context.now() - start }
  } catch (cause) {
    if (target.signal.aborted) throw cause
    return { is: 'failed', said, cause, afterMs: context.now() - start }
  }
}

export function evaluatePassive(seen: PassiveSeen, given: FtpSettings): Result {
  const { mode, address, outcome } = seen
  const before = `signed in after ${showDuration(seen.signedInMs)}`
  switch (outcome.is) {
    case 'listed': {
      const many = `${outcome.cut ? 'more than ' : ''}${count(outcome.entries, 'entry', 'entries')}`
      const what = `${outcome.said}, ${many} listed over it in`
      return atMost({ check: mode, what, value: outcome.ms, unit: 'duration', threshold: given.latency, address })
    }
    case 'not offered': {
      const told = `${address} does not offer ${mode}: ${outcome.told}`
      return given.passive === mode
        ? fail(mode, 'protocol', told, { address })
        : warn(mode, `${told}; where no client uses it, passive: ${mode === 'EPSV' ? 'PASV' : 'EPSV'} leaves it out`, {
            address,
          })
    }
    case 'unusable':
      return fail(mode, 'protocol', `${before}, ${mode} was answered with ${outcome.told}: no place to connect to`, {
        address,
      })
    case 'elsewhere':
      return warn(
        mode,
        `${outcome.said}, another address than the control peer ${outcome.peer}: it accepts, but was sent nothing; dataHosts lists those that are meant`,
        { address },
      )
    case 'unreachable': {
      const { how, ms, peer, foreign, peerAccepts, said } = outcome
      const took = showDuration(ms)
      const did = {
        'timed out': `timed out after ${took}`,
        refused: `was refused in ${took}`,
        'no route': 'has no route',
        broke: `broke after ${took}`,
      }[how]
      const wrong = peerAccepts
        ? 'the same port of the control peer accepts, so the passive address is wrong'
        : undefined
      const cause = wrong ?? (mode === 'PASV' ? 'passive address or firewall range' : 'firewall or passive port range')
      const fault = how === 'timed out' ? 'timeout' : how === 'broke' ? 'protocol' : 'refused'
      const note = foreign ? [`PASV told another address than the control connection goes to (${peer})`] : []
      return fail(mode, fault, `${before}, ${said}, connect ${did} (control peer ${peer}): ${cause}, not the account`, {
        address,
        details: note,
      })
    }
    case 'failed': {
      const { cause, afterMs, said } = outcome
      const problem = evaluateProblem({ see: 'problem', check: mode, address, cause, afterMs })
      return { ...problem, message: `${before}, ${said}, connected: ${problem.message}` }
    }
  }
}

/** Both ways, unless the settings say one; PASV can only name IPv4 addresses. */
export const waysOf = (given: FtpSettings, ip: string): readonly Passive[] => {
  if (given.passive !== 'both') return [given.passive]
  return ip.includes(':') && !ip.startsWith('::ffff:') ? ['EPSV'] : ['EPSV', 'PASV']
}
