import type { FileEntryWithStats } from 'ssh2'
import { PeerSocket } from '../../database/index.ts'
import { type CheckContext, eachAddress, includes, type Problem, type Unreached } from '../../engine/index.ts'
import { type Backlog, mostEntries, roundTrip, type TripSeen } from '../../folders/index.ts'
import { hostPort } from '../../net/connect.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import { type Hide, hiding, nothingHidden } from '../../net/text.ts'
import { Sftp } from './files.ts'
import { type Credentials, credentialsOf, type Greeting, greeting, type HostKey, shake } from './open.ts'
import type { SftpSettings } from './settings.ts'

export type SftpSeen =
  | ({ readonly see: 'banner' } & Greeting)
  | { readonly see: 'host key'; readonly address: string; readonly key: HostKey }
  | { readonly see: 'signed in'; readonly address: string; readonly as: string; readonly ms: number }
  | {
      readonly see: 'listing'
      readonly address: string
      readonly folder: string
      readonly entries: number
      readonly more: boolean
      readonly ms: number
    }
  | (Backlog & { readonly address: string })
  | { readonly see: 'trip'; readonly address: string; readonly trip: Exclude<TripSeen, { see: 'stuck' }> }
  | Problem
  | Unreached

/** Bytes that one session reads: the largest round trip and the largest listings fit. */
const mostBytes = 32 * 1024 * 1024
/** Entries of the first listing that are counted. */
const mostListed = 1_000

/** Connects, and from Standard on looks at the host key and signs in; the socket is destroyed at the end and at the deadline. */
export async function* visitSftp(given: SftpSettings, context: CheckContext): AsyncGenerator<SftpSeen> {
  const { host, port } = given
  const deep = includes(context.mode, 'Standard')
  // Read before anything is opened: without them there is nothing to open for.
  if (deep) context.step('sign-in', hostPort(host, port))
  const read = deep && given.username !== undefined ? await credentialsOf(given) : undefined
  const hide = read === undefined ? nothingHidden : hiding(read.secrets)
  yield* eachAddress<SftpSeen>(context, { host, port, which: 'any', check: 'banner' }, async function* (target) {
    const start = context.now()
    const socket = await PeerSocket.reach(target.ip, port, target.signal, mostBytes)
    const abort = (): void => void socket.destroy()
    target.signal.addEventListener('abort', abort, { once: true })
    try {
      const heard = await greeting(socket, target.address, context, start)
      yield { see: 'banner', ...heard }
      if (deep && speaksSsh(heard)) yield* shaken(socket, target, given, read?.credentials, context, hide)
    } finally {
      target.signal.removeEventListener('abort', abort)
      socket.destroy()
    }
  })
}

/** 1.99 is what a server of version 2 says that speaks version 1 too. */
export const speaksSsh = ({ ended, version }: Greeting): boolean =>
  ended === 'met' && (version === '2.0' || version === '1.99')

async function* shaken(
  socket: PeerSocket,
  target: PeerAddress,
  given: SftpSettings,
  credentials: Credentials | undefined,
  context: CheckContext,
  hide: Hide,
): AsyncGenerator<SftpSeen> {
  const { address } = target
  target.step('host key')
  const start = context.now()
  const { client, hostKey, cause } = await shake(socket, target, given.hostKey ?? [], credentials, hide)
  const ms = context.now() - start
  yield { see: 'host key', address, key: hostKey }
  if (cause !== undefined) throw cause
  if (client === undefined) return
  yield { see: 'signed in', address, as: hide(given.username ?? ''), ms }
  target.step('listing')
  const since = context.now()
  const sftp = await Sftp.start(client, address, context, hide)
  const home = await sftp.realpath('.')
  try {
    const { entries, more } = await sftp.list(home, mostListed)
    yield { see: 'listing', address, folder: hide(home), entries: entries.length, more, ms: context.now() - since }
  } catch (cause) {
    yield stuck(sftp, target, 'listing', cause, context.now() - since)
  }
  if (includes(context.mode, 'Advanced')) yield* deeper(sftp, target, given, home, context, hide)
  client.end()
}

async function* deeper(
  sftp: Sftp,
  target: PeerAddress,
  given: SftpSettings,
  home: string,
  context: CheckContext,
  hide: Hide,
): AsyncGenerator<SftpSeen> {
  const { address, step } = target
  const at = (folder: string): string =>
    folder.startsWith('/') ? folder : `${home.replace(/(?<!\/)\/+$/, '')}/${folder}`
  const { folder } = given
  if (folder !== undefined) {
    step('oldest file')
    const since = context.now()
    try {
      const { entries, more } = await sftp.list(at(folder), mostEntries)
      yield { ...backlogOf(entries, given.ending ?? '', context.date(), hide), folder, more, address }
    } catch (cause) {
      yield stuck(sftp, target, 'oldest file', cause, context.now() - since)
    }
  }
  if (!given.allowWrites) return
  const files = sftp.files(given.probeFolder === undefined ? home : at(given.probeFolder), mostEntries)
  for await (const trip of roundTrip(files, given.probeSize, context, step)) {
    if (trip.see !== 'stuck') yield { see: 'trip', address, trip }
    else yield { see: 'problem', check: trip.check, address, cause: trip.cause, afterMs: trip.afterMs }
  }
}

/** What one check could not look at; a session that has ended ends all of them. */
function stuck(sftp: Sftp, { address, signal }: PeerAddress, check: string, cause: unknown, afterMs: number): Problem {
  if (!sftp.usable || signal.aborted) throw cause
  return { see: 'problem', check, address, cause, afterMs }
}

const kindMask = 0o170_000
const regularFile = 0o100_000

function backlogOf(entries: readonly FileEntryWithStats[], ending: string, now: Date, hide: Hide) {
  // What tells no kind is taken for a file: it may be just the one that waits.
  const files = entries.filter(({ filename, attrs }) => {
    const mode: number | undefined = attrs.mode
    return filename.endsWith(ending) && (mode === undefined || (mode & kindMask) === regularFile)
  })
  let oldest: { readonly name: string; readonly ms: number } | undefined
  for (const { filename, attrs } of files) {
    const seconds: number | undefined = attrs.mtime
    if (seconds === undefined) continue
    const ms = Math.max(0, now.getTime() - seconds * 1_000)
    if (oldest === undefined || ms > oldest.ms) oldest = { name: hide(filename), ms }
  }
  return { see: 'backlog' as const, files: files.length, oldest, undated: files.length > 0 && oldest === undefined }
}
