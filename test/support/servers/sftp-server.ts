import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { type Attributes, type AuthContext, type Connection, Server, type SFTPWrapper, utils } from 'ssh2'
import { hostKeyOf } from '../../../src/core/checks/kinds/sftp/ssh.ts'

const { OPEN_MODE, STATUS_CODE } = utils.sftp

export type SftpFile = { readonly bytes: Buffer; readonly at?: Date; readonly folder?: boolean }
export type SftpOptions = {
  readonly password?: string
  /** The method by which the server requests a password. */
  readonly method?: 'password' | 'keyboard-interactive'
  readonly files?: Readonly<Record<string, SftpFile>>
  readonly readOnly?: boolean
  /** The stored bytes in place of the written ones. */
  readonly spoil?: (bytes: Buffer) => Buffer
  /** Names of every answer to a listing, for ever. */
  readonly endless?: readonly string[]
  /** Requests that are never answered. */
  readonly deafTo?: 'sftp' | 'OPENDIR' | 'WRITE'
  /** Ends the connection when SFTP begins. */
  readonly hangUp?: true
}
export type SftpServer = {
  readonly port: number
  readonly address: string
  readonly hostKey: string
  readonly files: Map<string, SftpFile>
  /** Every password that it received. */
  readonly input: () => readonly string[]
  /** How many sign-ins were tried, those without a credential aside. */
  readonly tries: () => number
  /** How many SFTP requests have come. */
  readonly requests: () => number
  readonly open: () => number
  readonly close: () => Promise<void>
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

let made: string | undefined
/** Made once: it takes a while. */
function hostKeyPem(): string {
  made ??= generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs1', format: 'pem' })
    .toString()
  return made
}

/** A real SSH server, that of ssh2, over a folder `/home` in memory: for passwords and for misbehaviour. */
export async function startSftpServer(options: SftpOptions = {}): Promise<SftpServer> {
  const password = options.password ?? 'correct horse'
  const pem = hostKeyPem()
  const parsed = utils.parseKey(pem)
  if (parsed instanceof Error) throw parsed
  const files = new Map(Object.entries(options.files ?? {}))
  const input: string[] = []
  const connections = new Set<Connection>()
  let tries = 0
  let requests = 0
  const server = new Server({ hostKeys: [pem] }, (client) => {
    connections.add(client)
    // Its answers go out in several pieces, which would wait for each other.
    ;(client as Connection & { readonly setNoDelay: (on: boolean) => void }).setNoDelay(true)
    client.on('error', () => {})
    client.on('close', () => connections.delete(client))
    client.on('authentication', (context) => {
      if (context.method !== 'none') tries += 1
      signIn(context, options.method ?? 'password', (value) => {
        input.push(value)
        return context.username === 'monitor' && value === password
      })
    })
    client.on('session', (accept) => {
      accept().on('sftp', (begin) => {
        if (options.hangUp) client.end()
        else if (options.deafTo !== 'sftp') {
          const sftp = begin()
          const emit = sftp.emit.bind(sftp)
          // The server emits each request under its name in the protocol.
          sftp.emit = (event: string | symbol, ...values: unknown[]) => {
            if (/^[A-Z]+$/.test(String(event))) requests += 1
            return (emit as (name: string | symbol, ...rest: unknown[]) => boolean)(event, ...values)
          }
          serve(sftp, files, options)
        }
      })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = async (): Promise<void> => {
    for (const one of connections) one.end()
    server.close()
  }
  return {
    port,
    address: `127.0.0.1:${port}`,
    hostKey: hostKeyOf(parsed.getPublicSSH()).fingerprint,
    files,
    input: () => input,
    tries: () => tries,
    requests: () => requests,
    open: () => connections.size,
    close,
    [Symbol.asyncDispose]: close,
  }
}

function signIn(context: AuthContext, method: string, isRight: (given: string) => boolean): void {
  const answer = (right: boolean): void => (right ? context.accept() : context.reject([method as 'password']))
  if (context.method !== method) answer(false)
  else if (context.method === 'password') answer(isRight(context.password))
  else if (context.method === 'keyboard-interactive') {
    context.prompt([{ prompt: 'Password: ', echo: false }], (answers) => answer(isRight(answers[0] ?? '')))
  }
}

const attributes = (file: SftpFile): Attributes => ({
  mode: file.folder ? 0o040_755 : 0o100_644,
  uid: 0,
  gid: 0,
  size: file.bytes.length,
  atime: 0,
  mtime: Math.floor((file.at?.getTime() ?? Date.now()) / 1_000),
})

function serve(sftp: SFTPWrapper, files: Map<string, SftpFile>, options: SftpOptions): void {
  const handles = new Map<string, { readonly path: string; listed: boolean }>()
  const open = (path: string): Buffer => {
    const name = `h${handles.size}`
    handles.set(name, { path, listed: false })
    return Buffer.from(name)
  }
  const at = (handle: Buffer) => handles.get(handle.toString())
  const status = (id: number, code: number): void => sftp.status(id, code)
  sftp.on('error', () => {})
  sftp.on('REALPATH', (id, path) => {
    const filename = path === '.' ? '/home' : path
    sftp.name(id, [{ filename, longname: filename, attrs: attributes({ bytes: Buffer.alloc(0), folder: true }) }])
  })
  sftp.on('OPENDIR', (id, path) => {
    if (options.deafTo === 'OPENDIR') return
    if (path.startsWith('/home')) sftp.handle(id, open(path))
    else status(id, STATUS_CODE.NO_SUCH_FILE)
  })
  sftp.on('READDIR', (id, handle) => {
    const folder = at(handle)
    if (options.endless) {
      const attrs = attributes({ bytes: Buffer.alloc(0) })
      return sftp.name(
        id,
        options.endless.map((filename) => ({ filename, longname: filename, attrs })),
      )
    }
    if (!folder || folder.listed) return status(id, STATUS_CODE.EOF)
    folder.listed = true
    const inside = [...files].filter(([path]) => path.startsWith(`${folder.path}/`))
    sftp.name(
      id,
      inside.map(([path, file]) => {
        const filename = path.slice(folder.path.length + 1)
        return { filename, longname: filename, attrs: attributes(file) }
      }),
    )
  })
  sftp.on('OPEN', (id, path, flags) => {
    const writes = (flags & OPEN_MODE.WRITE) !== 0
    if (writes && options.readOnly) return status(id, STATUS_CODE.PERMISSION_DENIED)
    if (writes) files.set(path, { bytes: Buffer.alloc(0) })
    if (files.has(path)) sftp.handle(id, open(path))
    else status(id, STATUS_CODE.NO_SUCH_FILE)
  })
  sftp.on('WRITE', (id, handle, offset, bytes) => {
    if (options.deafTo === 'WRITE') return
    const path = at(handle)?.path ?? ''
    const before = files.get(path)?.bytes ?? Buffer.alloc(0)
    const whole = Buffer.alloc(Math.max(before.length, offset + bytes.length))
    before.copy(whole)
    bytes.copy(whole, offset)
    files.set(path, { bytes: whole })
    status(id, STATUS_CODE.OK)
  })
  sftp.on('READ', (id, handle, offset, length) => {
    const stored = files.get(at(handle)?.path ?? '')?.bytes ?? Buffer.alloc(0)
    const bytes = options.spoil ? options.spoil(stored) : stored
    if (offset >= bytes.length) status(id, STATUS_CODE.EOF)
    else sftp.data(id, bytes.subarray(offset, offset + length))
  })
  sftp.on('CLOSE', (id) => status(id, STATUS_CODE.OK))
  sftp.on('RENAME', (id, from, to) => {
    const file = files.get(from)
    if (!file) return status(id, STATUS_CODE.NO_SUCH_FILE)
    files.delete(from)
    files.set(to, file)
    status(id, STATUS_CODE.OK)
  })
  sftp.on('REMOVE', (id, path) => status(id, files.delete(path) ? STATUS_CODE.OK : STATUS_CODE.NO_SUCH_FILE))
}
