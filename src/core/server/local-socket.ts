import { execFile } from 'node:child_process'
import { chmodSync, chownSync, lstatSync, type Stats, unlinkSync } from 'node:fs'
import type { Server } from 'node:http'
import { connect, Server as NetServer, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { Fault } from '../base/errors.ts'
import { fileProblem } from '../base/file-errors.ts'
import { othersMayWrite } from '../base/own-files.ts'
import type { PeerProcess } from '../protocol/service/service.ts'

/** `serve.socket`: requests over a Unix socket. */
export type LocalSocket = {
  /** Removes the socket, and resolves when its last connection has closed. */
  readonly close: () => Promise<void>
}

type LocalSocketOptions = {
  readonly path: string
  /** The group whose accounts may connect besides this one, by name or number. */
  readonly group: string | undefined
  /** The number of simultaneous connections; further ones are closed. */
  readonly connections: number
  readonly refused: () => void
  /** Makes an HTTP server answer a connection. */
  readonly adopt: (socket: Socket) => void
}

const peers = new WeakSet<object>()

/** Whether a connection came over a Unix socket. */
export const isOnLocalSocket = (socket: object): boolean => peers.has(socket)

/**
 * The process at the other end of a Unix socket. The permissions of the file are the reason to let it read; its account
 * remains unknown, since Node has no SO_PEERCRED, so it is exempt from nothing.
 */
export const socketProcess: PeerProcess = {
  account: async () => undefined,
  isOwn: async () => false,
  reads: () => true,
}

/**
 * Listens on a Unix socket that only this account, and with `group` the accounts of that group, can connect to. Replaces the
 * socket of a process that was killed. Throws a Local fault for anything else at the path, for a folder in which others could
 * replace it, for a group that does not exist or that this account is not in, and on Windows.
 */
export async function listenLocally(options: LocalSocketOptions): Promise<LocalSocket> {
  const { path, group } = options
  if (process.platform === 'win32') {
    throw unusable(path, 'cannot be used: svc has no Unix sockets on Windows', 'Remove serve.socket, and use a key.')
  }
  refuseFolder(path)
  const gid = group === undefined ? undefined : await groupNumber(group)
  await removeStale(path)
  let accepted = 0
  const server = new NetServer({ allowHalfOpen: true }, (socket) => {
    peers.add(socket)
    // The rules for addresses treat it as loopback, on which no name and no certificate is needed either.
    for (const end of ['remoteAddress', 'localAddress']) Object.defineProperty(socket, end, { value: '127.0.0.1' })
    // No port of TCP, and distinguishes the connections.
    accepted += 1
    Object.defineProperty(socket, 'remotePort', { value: -accepted })
    options.adopt(socket)
  })
  server.maxConnections = options.connections
  server.on('drop', options.refused)
  await bind(server, path)
  // Such as a connection that the system cannot accept.
  server.on('error', () => {})
  const close = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()))
  try {
    if (gid !== undefined) {
      chownSync(path, -1, gid)
      chmodSync(path, 0o660)
    }
  } catch (error) {
    await close()
    throw unusable(
      path,
      `cannot be given to the group ${group}: it ${fileProblem(error)}`,
      'The account of svc must be in the group of serve.socketGroup.',
    )
  }
  return { close }
}

/** Makes the HTTP server answer a connection that it has not accepted itself. */
export function answerOn(server: Server, event: 'connection' | 'secureConnection', socket: Socket): void {
  // Node reports errors of the connection to this server.
  Object.assign(socket, { server })
  server.emit(event, socket)
}

/** Nobody else can connect before the permissions are set: the system call applies this mask. */
function bind(server: NetServer, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: unknown): void => reject(unusable(path, fileProblem(error), 'Choose another path.', error))
    server.once('error', failed)
    const mask = process.umask(0o177)
    try {
      server.listen(path, () => {
        server.off('error', failed)
        resolve()
      })
    } finally {
      process.umask(mask)
    }
  })
}

/** Others could put a socket of their own in its place, and answer for svc. */
function refuseFolder(path: string): void {
  const folder = dirname(path)
  let stats: Stats
  try {
    stats = lstatSync(folder)
  } catch (error) {
    throw new Fault('Local', `serve.socket: the folder ${folder} ${fileProblem(error)}`, {
      hints: [`Create it: mkdir -m 755 ${folder}`],
    })
  }
  const isSticky = (stats.mode & 0o1000) !== 0
  const isOurs = stats.uid === 0 || stats.uid === process.geteuid?.()
  if (stats.isDirectory() && isOurs && (isSticky || !othersMayWrite(stats))) return
  throw unusable(
    path,
    'is in a folder in which others can replace it',
    'The folder must belong to root or to the account of svc, and must not be writable by others.',
  )
}

async function removeStale(path: string): Promise<void> {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return
  if (!stats.isSocket()) throw unusable(path, 'exists and is not a socket', 'Choose another path, or remove that file.')
  if (await answers(path))
    throw unusable(path, 'is in use by another process', 'Each svc serve needs a path of its own.')
  try {
    // rmSync of Node 24 loses the code of the error.
    unlinkSync(path)
  } catch (error) {
    throw unusable(path, `is left over and cannot be removed: it ${fileProblem(error)}`, 'Remove it.', error)
  }
}

/** Whether a process listens there. One that refuses this account listens, too. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT'))
  })
}

/** Milliseconds. Groups may come from a directory on another machine. */
const maxLookupMs = 5_000

async function groupNumber(group: string): Promise<number> {
  if (/^\d+$/.test(group)) return Number(group)
  try {
    const { stdout } = await promisify(execFile)('getent', ['group', '--', group], { timeout: maxLookupMs })
    const number = Number(stdout.split(':')[2])
    if (Number.isInteger(number)) return number
  } catch {
    // The message below says what to do.
  }
  throw new Fault('Local', `serve.socketGroup: this system has no group ${group}`, {
    hints: ['Create the group, or write its number.'],
  })
}

const unusable = (path: string, problem: string, hint: string, cause?: unknown): Fault =>
  new Fault('Local', `serve.socket: ${path} ${problem}`, { hints: [hint], cause })
