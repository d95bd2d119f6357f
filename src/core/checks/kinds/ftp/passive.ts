import { count, showDuration } from '../../../base/format.ts'
import type { SettingsSpec, Values } from '../../../base/settings/index.ts'
import { atMost, checksOn, classify, fail, type Result, warn } from '../../engine/index.ts'
import { describeEndpoint, type Passive, reach, requestPassive, transfer } from './data.ts'
import { linesOf, maxListing } from './list.ts'
import type { FtpSession } from './session.ts'
import { ftpSettings } from './settings.ts'

/**
 * The test of one passive mode. Each mode is tested separately: most real faults are here, and none of them is the
 * account's.
 */
type PassiveWay = { readonly address: string; readonly signedInMs: number } & (
  | {
      readonly type: 'listed'
      /** The endpoint of the data connection, as the server reported it. */
      readonly endpoint: string
      readonly entries: number
      /** True if the listing exceeds the maximum size. */
      readonly isCut: boolean
      readonly ms: number
    }
  | { readonly type: 'not offered' | 'unusable'; readonly reply: string }
  | {
      readonly type: 'unreachable'
      readonly endpoint: string
      readonly how: 'timed out' | 'refused' | 'no route' | 'broke'
      readonly ms: number
      /** The address of the control connection. */
      readonly peer: string
      /** True if the server named a different address. */
      readonly isForeign: boolean
      /** True if the server named a different address, but the peer itself accepts connections on this port. */
      readonly peerAccepts: boolean
    }
  | { readonly type: 'elsewhere'; readonly endpoint: string; readonly peer: string }
  | { readonly type: 'failed'; readonly endpoint: string; readonly failure: ReturnType<typeof classify> }
)
type Outcome = PassiveWay extends infer W ? (W extends PassiveWay ? Omit<W, 'address' | 'signedInMs'> : never) : never

/** Milliseconds. The second attempt only helps to find the cause, so its timeout is short. */
const secondConnectMs = 1_000

/** Opens a data connection and lists the folder over it. Throws if the session has ended. */
async function probeWay({ link, address }: FtpSession, mode: Passive): Promise<Outcome> {
  const { control, target, context } = link
  const start = context.now()
  const gate = await requestPassive(link, mode)
  if ('why' in gate) return { type: gate.why, reply: control.display(gate.reply) }
  const endpoint = describeEndpoint(gate)
  const { foreign: isForeign } = gate
  const reached = await reach(link, gate.ip, gate.port)
  if ('failed' in reached) {
    const again = isForeign ? await reach(link, target.ip, gate.port, secondConnectMs) : undefined
    const peerAccepts = again !== undefined && 'socket' in again
    if (peerAccepts) again.socket.destroy()
    const { failed: how, ms } = reached
    return { type: 'unreachable', endpoint, how, ms, peer: target.ip, isForeign, peerAccepts }
  }
  if (isForeign && !link.dataHosts.includes(gate.ip)) {
    // A server must not make svc talk to a host of its choice.
    reached.socket.destroy()
    return { type: 'elsewhere', endpoint, peer: target.ip }
  }
  try {
    const { bytes, cut: isCut } = await transfer(link, 'LIST', reached.socket, { max: maxListing })
    return { type: 'listed', endpoint, entries: linesOf(bytes).length, isCut, ms: context.now() - start }
  } catch (cause) {
    if (target.signal.aborted) throw cause
    return { type: 'failed', endpoint, failure: classify(cause, address, context.now() - start) }
  }
}

async function observeWay(session: FtpSession, mode: Passive): Promise<PassiveWay> {
  const outcome = await probeWay(session, mode)
  if (outcome.type === 'listed') session.way ??= mode
  else if (outcome.type !== 'not offered') session.hasBrokenWay = true
  else session.refusedWay ??= `${mode} was answered with ${outcome.reply}`
  return { ...outcome, address: session.address, signedInMs: session.signedInMs }
}

const { latency, passive } = ftpSettings
const waySettings = { latency, passive } as const satisfies SettingsSpec
type WaySettings = Values<typeof waySettings>

function evaluateWay<const Mode extends Passive>(mode: Mode, way: PassiveWay, settings: WaySettings): Result<Mode> {
  const { address } = way
  const before = `signed in after ${showDuration(way.signedInMs)}`
  switch (way.type) {
    case 'listed': {
      const many = `${way.isCut ? 'more than ' : ''}${count(way.entries, 'entry', 'entries')}`
      const what = `${way.endpoint}, ${many} listed in`
      return atMost({ check: mode, what, value: way.ms, unit: 'duration', threshold: settings.latency })
    }
    case 'not offered': {
      const message = `${address} does not offer ${mode}: ${way.reply}`
      if (settings.passive === mode) return fail(mode, 'protocol', message)
      const other = mode === 'EPSV' ? 'PASV' : 'EPSV'
      return warn(mode, `${message}; if no client uses it, set passive: ${other}`)
    }
    case 'unusable':
      return fail(mode, 'protocol', `${before}, ${mode} was answered with ${way.reply}: no address to connect to`)
    case 'elsewhere':
      return warn(
        mode,
        `${way.endpoint}, not the address of the control connection (${way.peer}): the port accepts connections, but nothing was sent to it; if the address is right, add it to dataHosts`,
      )
    case 'unreachable': {
      const { how, ms, peer, isForeign, peerAccepts, endpoint } = way
      const took = showDuration(ms)
      const outcome = {
        'timed out': `timed out after ${took}`,
        refused: `was refused in ${took}`,
        'no route': 'has no route',
        broke: `broke after ${took}`,
      }[how]
      const problem = peerAccepts
        ? 'the same port of the control peer accepts connections, so the passive address is wrong'
        : undefined
      const cause =
        problem ??
        (mode === 'PASV' ? 'passive address, firewall or passive port range' : 'firewall or passive port range')
      const fault = how === 'timed out' ? 'timeout' : how === 'broke' ? 'protocol' : 'refused'
      const message = `${before}, ${endpoint}, connect ${outcome} (control peer ${peer}): ${cause}, not the account`
      const details = isForeign
        ? [`PASV returned a different address than that of the control connection (${peer})`]
        : []
      return fail(mode, fault, message, { details })
    }
    case 'failed': {
      const { fault, message, details } = way.failure
      return fail(mode, fault, `${before}, ${way.endpoint}, connected: ${message}`, { details })
    }
  }
}

/** Both modes, unless the settings name one. PASV supports IPv4 only. */
const waysOf = (choice: WaySettings['passive'], ip: string): readonly Passive[] => {
  if (choice !== 'both') return [choice]
  return ip.includes(':') && !ip.startsWith('::ffff:') ? ['EPSV'] : ['EPSV', 'PASV']
}
const applies =
  (mode: Passive) =>
  ({ isSignedIn, ip }: FtpSession, settings: WaySettings): boolean =>
    isSignedIn && waysOf(settings.passive, ip).includes(mode)

const check = checksOn<FtpSession>()

export const extendedPassive = check({
  depth: 'Standard',
  results: { EPSV: 'A listing arrives in time over a data connection opened with EPSV' },
  settings: waySettings,
  privilege: 'setfacl -m u:<account>:rx <initial folder>',
  applies: applies('EPSV'),
  observe: (session) => observeWay(session, 'EPSV'),
  evaluate: (way, settings) => evaluateWay('EPSV', way, settings),
})

export const classicPassive = check({
  depth: 'Standard',
  results: { PASV: 'A listing arrives in time over a data connection opened with PASV; not over IPv6' },
  settings: waySettings,
  privilege: 'setfacl -m u:<account>:rx <initial folder>',
  applies: applies('PASV'),
  observe: (session) => observeWay(session, 'PASV'),
  evaluate: (way, settings) => evaluateWay('PASV', way, settings),
})

export const dataConnection = check({
  depth: 'Standard',
  results: { 'data connection': 'Reported only if the server offers no passive data connection' },
  applies: ({ isSignedIn }) => isSignedIn,
  observe: async ({ address, way, hasBrokenWay, refusedWay }) => ({
    address,
    isOffered: way !== undefined || hasBrokenWay,
    refusedWay,
  }),
  evaluate({ address, isOffered, refusedWay }) {
    if (isOffered) return []
    const why = refusedWay === undefined ? '' : `: ${refusedWay}`
    return fail('data connection', 'protocol', `${address} offers no passive data connection${why}`)
  },
})
