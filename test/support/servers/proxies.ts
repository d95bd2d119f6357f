import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { daemon } from '../suite/daemon.ts'
import { asServer, findProgram, freePort, remove, serverFolder } from './server.ts'

const tinyproxy = findProgram('tinyproxy')
const microsocks = findProgram('microsocks')
export const proxiesMissing =
  tinyproxy === undefined || microsocks === undefined ? 'tinyproxy or microsocks is not installed' : undefined

/** The address from which the proxies connect, so that a server sees who its client is. */
export const proxyAddress = '127.0.0.8'
export const proxyAccount = { username: 'svc', password: 'horse-battery' }

export type Proxies = {
  /** A proxy of HTTP, one that demands a sign-in, one that allows connections to no port, and SOCKS with a sign-in. */
  readonly http: string
  readonly signIn: string
  readonly closed: string
  readonly socks: string
  readonly remove: () => Promise<void>
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true))
    socket.on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })

/**
 * Real proxies on free ports of 127.0.0.1. `parent`: the port of another proxy of HTTP, which those of HTTP ask for names in
 * .test.
 */
export async function startProxies(parent?: number): Promise<Proxies> {
  const folder = serverFolder('proxies')
  const { username, password } = proxyAccount
  const start = async (command: (port: number) => readonly string[]) => {
    const port = await freePort()
    return { port, ...(await daemon(command(port), { ready: () => accepts(port), ...asServer, cwd: '/' })) }
  }
  const startTiny = (name: string, lines: string) =>
    start((port) => {
      const file = join(folder, `${name}.conf`)
      const own = `Port ${port}\nListen 127.0.0.1\nBind ${proxyAddress}\nTimeout 600\nAllow 127.0.0.0/8\nLogLevel Critical\n`
      const above = parent === undefined ? '' : `Upstream http 127.0.0.1:${parent} ".test"\n`
      writeFileSync(file, `${own}${above}${lines}`, { mode: 0o644 })
      return [tinyproxy ?? '', '-d', '-c', file]
    })
  const all = await Promise.all([
    startTiny('http', ''),
    startTiny('sign-in', `BasicAuth ${username} ${password}\n`),
    startTiny('closed', 'ConnectPort 1\n'),
    start((port) => [
      microsocks ?? '',
      ...['-i', '127.0.0.1', '-p', String(port), '-b', proxyAddress, '-u', username, '-P', password],
    ]),
  ])
  const [http, signIn, closed, socks] = all.map(({ port }) => `127.0.0.1:${port}`)
  return {
    http: `http://${http}`,
    signIn: `http://${signIn}`,
    closed: `http://${closed}`,
    socks: `socks5://${socks}`,
    remove: async () => {
      await Promise.all(all.map(({ stop }) => stop()))
      remove(folder)
    },
  }
}
