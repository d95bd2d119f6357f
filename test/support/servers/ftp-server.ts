import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { FtpSrv } from 'ftp-srv'
import { type Peer, type PeerOptions, peer } from '../faults/faults.ts'
import { freePort, remove } from './server.ts'

export type FtpServer = {
  readonly port: number
  readonly address: string
  /** The folder that is `/` of a session. */
  readonly root: string
  /** The passwords of all sign-ins. */
  readonly passwords: () => readonly string[]
  readonly remove: () => Promise<void>
}

/** A real FTP server, ftp-srv, with the account `monitor` and its password, or with those that `lets` accepts. */
export async function startFtpServer(
  password: string,
  lets = (name: string, credentials: string): boolean => name === 'monitor' && credentials === password,
): Promise<FtpServer> {
  const root = mkdtempSync(join(tmpdir(), 'svc-ftp-'))
  const passwords: string[] = []
  const port = await freePort()
  const quiet = () => {}
  const log = { child: () => log, trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet, fatal: quiet }
  const server = new FtpSrv({ url: `ftp://127.0.0.1:${port}`, pasv_url: '127.0.0.1', log })
  server.on('login', (credentials, resolve, reject) => {
    passwords.push(credentials.password)
    if (lets(credentials.username, credentials.password)) resolve({ root })
    else reject(new Error('no'))
  })
  await server.listen()
  return {
    port,
    address: `127.0.0.1:${port}`,
    root,
    passwords: () => passwords,
    remove: async () => {
      await server.close()
      remove(root)
    },
  }
}

type Answer = string | ((command: { readonly argument: string; readonly control: Socket }) => string | undefined)

/** How a scripted server behaves where it is not an ordinary one. */
export type FtpScript = {
  readonly banner?: string
  /** Command → its reply (lines without their end), or nothing. */
  readonly answers?: Readonly<Record<string, Answer>>
  /** Sends to a data connection after LIST, MLSD or RETR, and ends it; without it: `listing` and 226. */
  readonly data?: (data: Socket, control: Socket) => void
  readonly listing?: string
  /** Given back for RETR instead of what was stored. */
  readonly spoil?: (stored: Buffer) => Buffer
  readonly peer?: PeerOptions
}

const features = '211-Features:\r\n MLST type*;modify*;\r\n UTF8\r\n211 End'

/**
 * A small FTP server of our own on loopback, for what no sound one does. `open` counts control and
 * data connections.
 */
export async function scriptedFtp(script: FtpScript = {}): Promise<Peer> {
  const gates = new Set<ReturnType<typeof createServer>>()
  const dataSockets = new Set<Socket>()
  let stored: Buffer = Buffer.alloc(0)
  /** The name of the stored file, while it is there. */
  let name: string | undefined
  const control = await peer((socket) => {
    // Two short answers in a row would wait for each other.
    socket.setNoDelay(true)
    let data: Promise<Socket> | undefined
    const say = (line: string | undefined): void => {
      if (line !== undefined && socket.writable) socket.write(`${line}\r\n`)
    }
    const openGate = async (): Promise<number> => {
      const gate = createServer()
      gates.add(gate)
      data = once(gate, 'connection').then(([accepted]) => {
        const one = accepted as Socket
        dataSockets.add(one)
        one.on('error', () => {})
        // Read also where nothing is done with it, or its end is never seen.
        one.resume()
        one.on('close', () => dataSockets.delete(one))
        gate.close()
        return one
      })
      gate.listen(0, '127.0.0.1')
      await once(gate, 'listening')
      return (gate.address() as AddressInfo).port
    }
    const send = async (bytes: string | Buffer): Promise<void> => {
      const to = await data
      if (!to) return say('425 No data connection')
      say('150 Here it comes')
      if (script.data) return script.data(to, socket)
      to.end(bytes, () => say('226 Done'))
    }
    const ordinary: Record<string, Answer> = {
      USER: '331 Password please',
      PASS: '230 Welcome',
      PBSZ: '200 Well',
      PROT: '200 Well',
      TYPE: '200 Binary',
      PWD: '257 "/" is where you are',
      FEAT: features,
      OPTS: '200 Well',
      CWD: '250 There',
      DELE: () => {
        name = undefined
        return '250 Gone'
      },
      RNFR: '350 And to?',
      RNTO: ({ argument }) => {
        name = argument
        return '250 Renamed'
      },
      QUIT: '221 Bye',
      EPSV: () => void openGate().then((port) => say(`229 Extended passive (|||${port}|)`)),
      PASV: () => void openGate().then((port) => say(`227 Passive (127,0,0,1,${port >> 8},${port & 255})`)),
      LIST: () => {
        const lines = ['a.txt', ...(name === undefined ? [] : [name])].map(
          (one) => `-rw-r--r-- 1 o g 5 Nov 21 04:27 ${one}\r\n`,
        )
        void send(script.listing ?? lines.join(''))
      },
      MLSD: () =>
        void send(script.listing ?? (name === undefined ? '' : `type=file;modify=20261121042700; ${name}\r\n`)),
      RETR: () => void send(script.spoil ? script.spoil(stored) : stored),
      STOR: ({ argument }) =>
        void data?.then((from) => {
          const chunks: Buffer[] = []
          name = argument
          from.on('data', (chunk) => chunks.push(chunk))
          from.once('end', () => {
            stored = Buffer.concat(chunks)
            say('226 Stored')
          })
          say('150 Give')
        }),
    }
    let input = ''
    socket.on('data', (chunk) => {
      input += chunk.toString('utf8')
      for (let end = input.indexOf('\r\n'); end >= 0; end = input.indexOf('\r\n')) {
        const [verb = '', ...rest] = input.slice(0, end).split(' ')
        input = input.slice(end + 2)
        const answer = script.answers?.[verb] ?? ordinary[verb] ?? '502 What?'
        say(typeof answer === 'string' ? answer : answer({ argument: rest.join(' '), control: socket }))
      }
    })
    if (script.banner !== '') say(script.banner ?? '220 Scripted')
  }, script.peer)
  const close = async (): Promise<void> => {
    for (const gate of gates) gate.close()
    for (const socket of dataSockets) socket.destroy()
    await control.close()
  }
  return { ...control, open: () => control.open() + dataSockets.size, close, [Symbol.asyncDispose]: close }
}

/** How PASV writes an address and a port. */
export const pasv = (ip: string, port: number): string =>
  `227 Passive (${ip.replaceAll('.', ',')},${port >> 8},${port & 255})`

/**
 * A port on which connection attempts are left without an answer, as behind a firewall: its listener
 * is stopped and its queue is full.
 */
export async function deafPort(host: string): Promise<{ readonly port: number; readonly close: () => void }> {
  const script = `const s = require('net').createServer().listen({ port: 0, host: '${host}', backlog: 1 }, () => console.log(s.address().port))`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  const [output] = (await once(child.stdout, 'data')) as [Buffer]
  const port = Number(output.toString())
  child.kill('SIGSTOP')
  const fillers: Socket[] = []
  const close = (): void => {
    for (const socket of fillers) socket.destroy()
    process.off('exit', kill)
    kill()
  }
  for (let stalled = 0; stalled < 2; ) {
    if (fillers.length > 20) throw new Error('the queue of a stopped listener does not fill')
    const socket = connect({ host, port })
    socket.on('error', () => {})
    fillers.push(socket)
    const connected = await Promise.race([once(socket, 'connect').then(() => true), wait(300).then(() => false)])
    if (!connected) stalled += 1
  }
  return { port, close }
}
