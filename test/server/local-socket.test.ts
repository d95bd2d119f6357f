import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, lstatSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import type { Call } from '../../src/core/protocol/service/service.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'
import { cert, key } from './certificate.ts'
import { healthy, openSite, question, startSite, withSite } from './site.ts'

let folder = ''
let socket = ''
beforeEach(() => {
  folder = temporaryFolder()
  socket = join(folder, 'svc.sock')
})

async function ask(path: string, headers: Readonly<Record<string, string>> = {}) {
  const sent = request({ socketPath: socket, path, headers: { host: 'localhost', ...headers }, agent: false }).end()
  const [response] = await once(sent, 'response')
  return { status: response.statusCode as number, text: await text(response) }
}
const missing = process.platform === 'win32' ? 'Windows has no such sockets' : undefined

suiteWith(missing, 'serve.socket', () => {
  test.each([
    ['plain HTTP', {}],
    ['TLS', { tls: { cert, key } }],
    ['a proxy', { options: { behindProxy: ['127.0.0.1'] } }],
    ['serve.trustLocal: false', { options: { trustLocal: false } }],
  ])(
    'S11 who connects to the socket of a server with %s reads details, and is exempt from nothing',
    async (_what, more) => {
      const { calls } = await openSite({ ...more, options: { ...('options' in more ? more.options : {}), socket } })
      expect((await ask(question)).status).toBe(200)
      const caller = calls[0]?.call.caller
      expect(caller).toMatchObject({ kind: 'http', loopback: true, address: '127.0.0.1' })
      const process = caller?.kind === 'http' ? caller.process : undefined
      expect([await process?.reads(), await process?.isOwn(), await process?.account()]).toEqual([
        true,
        false,
        undefined,
      ])
      expect((await ask('/livez')).text).toBe('alive\n')
    },
  )

  test('S3 beyond all connections, the socket answers probes only, and no other connection of it is affected', async () => {
    const { port } = await openSite({ limits: { connections: 2 }, options: { socket } })
    const first = connect(socket)
    await once(first, 'connect')
    const other = connect(port, '127.0.0.1')
    await once(other, 'connect')
    expect((await ask('/livez')).text).toBe('alive\n')
    await expect(ask(question)).rejects.toThrow()
    first.write(`GET ${question} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    const [answer] = await once(first, 'data')
    expect(String(answer)).toContain('HTTP/1.1 200')
    for (const open of [first, other]) open.destroy()
  })

  test('S11 what a relay sends through the socket is not local', async () => {
    const { calls } = await openSite({ options: { socket } })
    await ask(question, { 'x-forwarded-for': '192.0.2.7' })
    expect(calls[0]?.call.caller).toMatchObject({ kind: 'http', loopback: false, relayed: true })
  })

  test('S11 the socket has mode 0600, whatever the umask, and serve.socketGroup makes it 0660', async () => {
    const before = process.umask(0)
    onTestFinished(() => void process.umask(before))

    await withSite({ options: { socket } }, async () => expect(lstatSync(socket).mode & 0o777).toBe(0o600))
    const socketGroup = String(process.getgid?.())
    await withSite({ options: { socket, socketGroup } }, async () => {
      expect(lstatSync(socket)).toMatchObject({ gid: process.getgid?.() })
      expect(lstatSync(socket).mode & 0o777).toBe(0o660)
    })
    expect(process.umask()).toBe(0)
  })

  test('S9 a stop removes the socket', async () => {
    for (const more of [{}, { tls: { cert, key } }]) {
      const site = await startSite({ ...more, options: { socket } })
      expect((await ask('/readyz')).status).toBe(200)
      await site.server.stop()
      expect(existsSync(socket)).toBe(false)
    }
  })

  test.each([
    ['plain HTTP', {}],
    ['TLS', { tls: { cert, key } }],
  ])('S9 a stop of a server with %s answers what is under way on the socket', async (_what, more) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const health = async (_request: unknown, call: Call) => {
      await promise
      return healthy(call)
    }
    const { server, calls } = await openSite({ ...more, health, options: { socket } })
    const answer = ask(question)
    await until(() => calls.length === 1)
    const stopped = server.stop()
    resolve()
    expect((await answer).status).toBe(200)
    await stopped
  })

  test('S11 the socket of a process that was killed is replaced', async () => {
    const program = `require('node:net').createServer().listen('${socket}', () => console.log('listens'))`
    const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(existsSync(socket)).toBe(true)
    await withSite({ options: { socket } }, async () => expect((await ask('/livez')).status).toBe(200))
  })

  test('S11 a second server does not take the socket of the first one, which goes on', async () => {
    await openSite({ options: { socket } })
    await expect(startSite({ options: { socket } })).rejects.toMatchObject({
      fault: 'Local',
      message: `serve.socket: ${socket} is in use by another process`,
    })
    expect((await ask('/livez')).status).toBe(200)
  })

  test('a server whose port is in use leaves no socket', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as { port: number }
    await expect(startSite({ port, options: { socket } })).rejects.toMatchObject({ fault: 'Local' })
    expect(existsSync(socket)).toBe(false)
    other.close()
  })

  test('S11 another file at the path, a link, an open folder and a missing one are refused by name', async () => {
    const refusal = async (path = socket): Promise<string> => {
      const started = await startSite({ options: { socket: path } }).catch((error: Error) => error)
      if (started instanceof Error) return started.message
      await started.server.stop()
      return 'started'
    }
    writeFileSync(socket, 'notes')
    expect(await refusal()).toBe(`serve.socket: ${socket} exists and is not a socket`)
    rmSync(socket)
    symlinkSync('/dev/null', socket)
    expect(await refusal()).toBe(`serve.socket: ${socket} exists and is not a socket`)
    rmSync(socket)
    chmodSync(folder, 0o777)
    expect(await refusal()).toBe(`serve.socket: ${socket} is in a folder in which others can replace it`)
    chmodSync(folder, 0o1777)
    expect(await refusal()).toBe('started')
    chmodSync(folder, 0o700)
    expect(await refusal(join(folder, 'none', 'svc.sock'))).toBe(
      `serve.socket: the folder ${join(folder, 'none')} does not exist`,
    )
    const withoutGroup = startSite({ options: { socket, socketGroup: 'no-such-group-here' } })
    await expect(withoutGroup).rejects.toMatchObject({
      message: 'serve.socketGroup: this system has no group no-such-group-here',
    })
    expect(existsSync(socket)).toBe(false)
  })

  const notRoot = process.getuid?.() === 0 ? undefined : 'only root can start processes of other accounts'
  suiteWith(notRoot, 'and other accounts', () => {
    test('S11 an account that the permissions of the socket do not name cannot connect', async () => {
      chmodSync(folder, 0o755)
      const connecting = async (uid: number, gid: number): Promise<string> => {
        const program = `require('node:net').connect('${socket}').on('error', (e) => console.log(e.code)).on('connect', function () { console.log('connected'); this.destroy() })`
        const child = spawn(process.execPath, ['-e', program], { uid, gid, stdio: ['ignore', 'pipe', 'inherit'] })
        return (await text(child.stdout)).trim()
      }
      await openSite({ options: { socket, socketGroup: '23458' } })
      expect(await connecting(23_457, 23_457)).toBe('EACCES')
      expect(await connecting(23_457, 23_458)).toBe('connected')
    })
  })
})
