import type { Socket } from 'node:net'
import { type CheckContext, eachAddress, includes, type Problem, type Unreached } from '../../engine/index.ts'
import { type Backlog, type Files, roundTrip, type TripSeen } from '../../folders/index.ts'
import { isLoopback } from '../../loopback.ts'
import type { Chain } from '../../net/chain.ts'
import { hostPort } from '../../net/connect.ts'
import { hiding, nothingHidden } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { type Passive, transfer } from './data.ts'
import { type Link, wait } from './link.ts'
import { backlog, dataSocket, entries } from './list.ts'
import { type OpenSeen, openFtp } from './open.ts'
import { type PassiveSeen, tryPassive, waysOf } from './passive.ts'
import type { FtpSettings } from './settings.ts'
import { expected, folderOf, signIn } from './sign-in.ts'

export type FtpSeen =
  | OpenSeen
  | { readonly see: 'certificate'; readonly chain: Chain }
  | {
      readonly see: 'signed in'
      readonly address: string
      readonly as: string
      readonly ms: number
      readonly tls: boolean
    }
  | { readonly see: 'PWD'; readonly address: string; readonly folder: string | undefined; readonly told: string }
  | PassiveSeen
  | { readonly see: 'no way'; readonly address: string }
  | (Backlog & { readonly address: string })
  | { readonly see: 'trip'; readonly address: string; readonly trip: Exclude<TripSeen, { see: 'stuck' }> }
  | Problem
  | Unreached

const defaultPorts = { explicit: 21, implicit: 990, off: 21 } as const
export const portOf = (given: FtpSettings): number => given.port ?? defaultPorts[given.tls]

/** Connects, and signs in from Standard on; what is opened is destroyed at the end and at the deadline. */
export async function* visitFtp(given: FtpSettings, context: CheckContext): AsyncGenerator<FtpSeen> {
  const host = given.host
  const port = portOf(given)
  const check = given.tls === 'implicit' ? 'TLS' : 'banner'
  const signing = given.username !== undefined && includes(context.mode, 'Standard')
  // Read before anything is opened: without it there is nothing to open for.
  if (signing) context.step('sign-in', hostPort(host, port))
  const password = signing ? await given.password?.reveal() : undefined
  const hide = password === undefined ? nothingHidden : hiding([password])
  yield* eachAddress<FtpSeen>(context, { host, port, which: 'any', check }, async function* (target) {
    const sockets = new Set<Socket>()
    const endAll = (): void => {
      for (const socket of sockets) socket.destroy()
    }
    const keep = <S extends Socket>(socket: S): S => {
      sockets.add(socket)
      if (target.signal.aborted) socket.destroy()
      return socket
    }
    target.signal.addEventListener('abort', endAll, { once: true })
    try {
      const link = yield* openFtp(target, given, context, hide, keep)
      if (!link) return
      if (link.tls && includes(context.mode, 'Standard')) yield { see: 'certificate', chain: link.tls.chain }
      if (signing) yield* signedIn(link, given, password)
      if (link.control.usable) await link.control.ask('QUIT', Math.min(500, wait(context))).catch(() => {})
    } finally {
      target.signal.removeEventListener('abort', endAll)
      endAll()
    }
  })
}

/** Whether a password may be said to an address: in the clear only on loopback, or where it is allowed. */
export const mayHear = (ip: string, encrypted: boolean, insecureFtp: boolean): boolean =>
  encrypted || insecureFtp || isLoopback(ip)

async function* signedIn(link: Link, given: FtpSettings, password: string | undefined): AsyncGenerator<FtpSeen> {
  const { control, target, context } = link
  const { address } = target
  target.step('sign-in')
  if (password !== undefined && !mayHear(target.ip, link.tls !== undefined, given.insecureFtp)) {
    const advice = 'use tls: explicit, or insecureFtp where the network is trusted'
    throw new ProbeError('data', `the password is not sent to ${address} over plain ftp: ${advice}`)
  }
  const start = context.now()
  const username = given.username ?? ''
  // What anonymous sign-in has for a password is an address by custom (RFC 1635).
  await signIn(link, username, password ?? 'svc@')
  const signedInMs = context.now() - start
  yield { see: 'signed in', address, as: link.hide(username), ms: signedInMs, tls: link.tls !== undefined }
  target.step('PWD')
  const here = await control.ask('PWD', wait(context))
  const home = folderOf(here)
  yield { see: 'PWD', address, folder: home === undefined ? undefined : link.hide(home), told: control.shown(here) }

  let way: Passive | undefined
  let trouble = false
  for (const mode of waysOf(given, target.ip)) {
    target.step(mode)
    const outcome = await tryPassive(link, mode)
    yield { see: 'passive', mode, address, signedInMs, outcome }
    if (outcome.is === 'listed') way ??= mode
    else if (outcome.is !== 'not offered') trouble = true
    // The trouble has been told; a session that has ended with it has no more to show.
    if (!control.usable) return
  }
  if (way === undefined && !trouble) yield { see: 'no way', address }
  if (!includes(context.mode, 'Advanced')) return
  yield* deeper(link, given, { way, home })
}

type Place = { readonly way: Passive | undefined; readonly home: string | undefined }

/** What needs a data connection that works: the drop folder, and the round trip where it is allowed. */
async function* deeper(link: Link, given: FtpSettings, { way, home }: Place): AsyncGenerator<FtpSeen> {
  const { control, target, context } = link
  const { address } = target
  const wanted = [...(given.folder === undefined ? [] : ['oldest file']), ...(given.allowWrites ? ['round trip'] : [])]
  if (wanted.length === 0) return
  if (way === undefined) {
    const cause = new ProbeError('dependency', 'not looked at: no data connection was made')
    for (const check of wanted) yield { see: 'problem', check, address, cause, afterMs: 0 }
    return
  }
  const features = await control.ask('FEAT', wait(context))
  const machine = features.code === 211 && /^[ \t]*ML(?:ST|SD)\b/im.test(features.text)
  if (features.code === 211 && /^[ \t]*UTF8\b/im.test(features.text)) await control.ask('OPTS UTF8 ON', wait(context))
  const enter = async (folder: string | undefined): Promise<void> => {
    if (home !== undefined) await expected(link, `CWD ${home}`, [200, 250])
    if (folder !== undefined) await expected(link, `CWD ${folder}`, [200, 250])
  }
  const { folder } = given
  if (folder !== undefined) {
    target.step('oldest file')
    const since = context.now()
    try {
      await enter(folder)
      yield { ...(await backlog(link, way, machine, folder, given.ending ?? '')), address }
    } catch (cause) {
      if (!control.usable || target.signal.aborted) throw cause
      yield { see: 'problem', check: 'oldest file', address, cause, afterMs: context.now() - since }
    }
  }
  if (!given.allowWrites) return
  target.step('round trip')
  const since = context.now()
  try {
    await enter(given.probeFolder)
  } catch (cause) {
    if (!control.usable || target.signal.aborted) throw cause
    return yield { see: 'problem', check: 'round trip', address, cause, afterMs: context.now() - since }
  }
  for await (const trip of roundTrip(filesOf(link, way, machine), given.probeSize, context, target.step)) {
    if (trip.see !== 'stuck') yield { see: 'trip', address, trip }
    else yield { see: 'problem', check: trip.check, address, cause: trip.cause, afterMs: trip.afterMs }
  }
}

const filesOf = (link: Link, way: Passive, machine: boolean): Files => ({
  write: async (name, send) => void (await transfer(link, `STOR ${name}`, await dataSocket(link, way), { send })),
  read: async (name, max) => (await transfer(link, `RETR ${name}`, await dataSocket(link, way), { max })).bytes,
  rename: async (from, to) => {
    await expected(link, `RNFR ${from}`, [350])
    await expected(link, `RNTO ${to}`, [250])
  },
  remove: async (name) => void (await expected(link, `DELE ${name}`, [200, 250])),
  names: async () => (await entries(link, way, machine)).files.map((file) => file.name),
  usable: () => link.control.usable && !link.target.signal.aborted,
})
