import { randomBytes } from 'node:crypto'
import { type CheckContext, eachAddress, includes, type Problem, type Unreached } from '../../engine/index.ts'
import { readCaFile } from '../../net/ca-file.ts'
import type { Chain } from '../../net/chain.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import { hiding } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { connectLdap, refuseReadable } from './connect.ts'
import { type Entry, type LdapSession, openLdap } from './session.ts'
import { type LdapSettings, ldapPlace } from './settings.ts'
import { type Refusal, refusalOf } from './wrong-password.ts'

export type LdapSeen =
  | { readonly see: 'connect'; readonly address: string; readonly ms: number; readonly protocol: string | undefined }
  | { readonly see: 'certificate'; readonly chain: Chain }
  | { readonly see: 'bind'; readonly address: string; readonly ms: number; readonly user: string }
  | { readonly see: 'rootDSE'; readonly address: string; readonly root: Entry | undefined; readonly ms: number }
  /** Strangers are not shown it, and this mode signs in nobody. */
  | { readonly see: 'rootDSE hidden'; readonly address: string; readonly why: string }
  | {
      readonly see: 'search'
      readonly address: string
      readonly base: string
      readonly found: boolean
      readonly ms: number
    }
  | { readonly see: 'no base'; readonly address: string }
  | { readonly see: 'entry'; readonly address: string; readonly base: string; readonly found: number }
  | { readonly see: 'synchronized'; readonly address: string; readonly done: boolean }
  | { readonly see: 'last change'; readonly address: string; readonly ageMs: number | undefined }
  | ({ readonly see: 'wrong password'; readonly address: string } & Refusal)
  | Problem
  | Unreached

const rootAttributes = [
  'supportedLDAPVersion',
  'namingContexts',
  'defaultNamingContext',
  'vendorName',
  'vendorVersion',
  'dnsHostName',
  'isSynchronized',
]

/** Whether somebody signs in at that mode. */
export const signsInToLdap = (given: LdapSettings, mode: CheckContext['mode']): boolean =>
  (given.user !== undefined && includes(mode, 'Standard')) ||
  (given.refusesWrongPassword !== undefined && includes(mode, 'Advanced'))

/** Connects, signs in where the mode does, and reads. */
export async function* visitLdap(given: LdapSettings, context: CheckContext): AsyncGenerator<LdapSeen> {
  const { host, port } = ldapPlace(given)
  const { now, msLeft } = context
  const ca = await readCaFile(given.caFile)
  const [standard, advanced] = [includes(context.mode, 'Standard'), includes(context.mode, 'Advanced')]
  const user = standard ? given.user : undefined
  yield* eachAddress<LdapSeen>(context, { host, port, which: 'any', check: 'connect' }, async function* (target) {
    const { address, signal, step } = target
    const start = now()
    const link = await connectLdap(target, given, ca, context)
    try {
      // From here on no other address stands in for this one: a refused sign-in is not repeated there.
      yield { see: 'connect', address, ms: now() - start, protocol: link.chain?.protocol }
      if (standard && link.chain) yield { see: 'certificate', chain: link.chain }
      let password = ''
      if (user !== undefined) {
        step('bind')
        refuseReadable(link, target, given)
        password = (await given.password?.reveal()) ?? ''
      }
      const session = await openLdap({ socket: link.socket, address, hide: hiding([password]), msLeft })
      try {
        if (user !== undefined) {
          const asked = now()
          await session.bind(user, password)
          yield { see: 'bind', address, ms: now() - asked, user }
        }
        step('rootDSE')
        const root = yield* lookAtRoot(session, address, user, standard, context)
        const check = checker(target, context, link.socket)
        if (!standard) return
        const base = given.base ?? named(root)
        if (base === undefined) yield { see: 'no base', address }
        else yield* check('search', () => lookAtBase(session, base, user, address, context))
        if (!advanced) return
        const { entry, lastChange } = given
        if (entry) {
          yield* check('entry', async () => {
            const at = entry.base ?? base
            if (at === undefined) throw new ProbeError('data', 'the server names no base: set base')
            const found = await session.count(at, entry.filter, entry.atLeast, user)
            return { see: 'entry', address, base: at, found }
          })
        }
        const state = root?.attributes.issynchronized?.[0]
        if (state !== undefined) yield { see: 'synchronized', address, done: state.toUpperCase() === 'TRUE' }
        if (lastChange && base !== undefined) {
          yield* check('last change', async () => {
            const found = await session.read(base, ['contextCSN'], user)
            const newest = newestChange(found?.attributes.contextcsn ?? [])
            return { see: 'last change', address, ageMs: newest && context.date().getTime() - newest }
          })
        }
      } finally {
        if (signal.aborted) link.socket.destroy()
        await session.close()
      }
    } finally {
      link.socket.destroy()
    }
    const dedicated = given.refusesWrongPassword
    if (!dedicated || !advanced) return
    step('wrong password')
    // Nobody's real password: unlike any that a person may have chosen.
    const wrong = randomBytes(18).toString('base64url')
    const enter = () => enterLdap(target, given, ca, context)
    const refusal = await refusalOf(enter, dedicated, wrong)
    yield { see: 'wrong password', address, ...refusal }
  })
}

/** A connection of its own, over which a password may travel. */
async function enterLdap(target: PeerAddress, given: LdapSettings, ca: string | undefined, context: CheckContext) {
  const link = await connectLdap(target, given, ca, context)
  try {
    refuseReadable(link, target, given)
  } catch (error) {
    link.socket.destroy()
    throw error
  }
  return {
    socket: link.socket,
    open: (secret: string) =>
      openLdap({ socket: link.socket, address: target.address, hide: hiding([secret]), msLeft: context.msLeft }),
  }
}

/** Basic signs in nobody, and a server may well show strangers nothing. */
async function* lookAtRoot(
  session: LdapSession,
  address: string,
  user: string | undefined,
  standard: boolean,
  context: CheckContext,
): AsyncGenerator<LdapSeen, Entry | undefined> {
  const asked = context.now()
  try {
    const root = await session.read('', rootAttributes, user)
    if (root || user !== undefined) yield { see: 'rootDSE', address, root, ms: context.now() - asked }
    else yield { see: 'rootDSE hidden', address, why: 'it shows strangers nothing' }
    return root
  } catch (cause) {
    const hidden = cause instanceof ProbeError && (cause.fault === 'data' || cause.fault === 'auth')
    if (!hidden || standard) throw cause
    yield { see: 'rootDSE hidden', address, why: cause.message }
    return undefined
  }
}

async function lookAtBase(
  session: LdapSession,
  base: string,
  user: string | undefined,
  address: string,
  context: CheckContext,
): Promise<LdapSeen> {
  const asked = context.now()
  const found = await session.read(base, ['1.1'], user)
  return { see: 'search', address, base, found: found !== undefined, ms: context.now() - asked }
}

/** One check that cannot look does not hide the others; a broken connection and the deadline end them all. */
const checker = (target: PeerAddress, context: CheckContext, socket: { readonly destroyed: boolean }) =>
  async function* (check: string, look: () => Promise<LdapSeen>): AsyncGenerator<LdapSeen> {
    const { address, signal, step } = target
    step(check)
    const since = context.now()
    try {
      yield await look()
    } catch (cause) {
      if (signal.aborted || socket.destroyed) throw cause
      yield { see: 'problem', check, address, cause, afterMs: context.now() - since }
    }
  }

const named = (root: Entry | undefined): string | undefined =>
  [...(root?.attributes.defaultnamingcontext ?? []), ...(root?.attributes.namingcontexts ?? [])].find(
    (name) => name !== '',
  )

/** `20260731120000.123456Z#000000#000#000000`, one for each server that takes changes. */
export function newestChange(values: readonly string[]): number | undefined {
  const times = values.flatMap((value) => {
    const [, y, mo, d, h, mi, s] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.\d+)?Z#/.exec(value) ?? []
    const time = Date.parse(`${y}-${mo}-${d}T${h}:${mi}:${s}Z`)
    return Number.isNaN(time) ? [] : [time]
  })
  return times.length === 0 ? undefined : Math.max(...times)
}
