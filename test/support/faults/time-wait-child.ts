import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { startServeProcess } from '../program/serve-process.ts'

/**
 * Runs in a network namespace: a real `svc serve`, 30,000 connections in TIME_WAIT that another process could have left, and
 * `/livez` requested in a loop. Prints how long each page took on a connection of its own.
 */
export type TimeWaitAnswer = {
  readonly timeWait: number
  readonly pages: readonly { readonly path: string; readonly ms: number; readonly hasDetails: boolean }[]
  readonly livezMs: { readonly median: number; readonly worst: number }
}

const sockets = 30_000
/** Connections from one address to one port, of the about 28,000 that the kernel has ports for. */
const perAddress = 5_000
const atOnce = 200
const [askers, pipelined] = [8, 32]

const inTimeWait = (): number => Number(/ tw (\d+)/.exec(readFileSync('/proc/net/sockstat', 'utf8'))?.[1])

/** Each connection always has many requests waiting, so that each turn of the server's event loop has much to do. */
const askLivez = (port: number): string => `
  const ask = 'GET /livez HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'.repeat(${pipelined})
  for (let i = 0; i < ${askers}; i++) {
    const socket = require('node:net').connect(${port}, '127.0.0.1', () => socket.write(ask))
    let answers = 0
    socket.on('data', (chunk) => {
      answers += chunk.toString('latin1').split('alive\\n').length - 1
      for (; answers >= ${pipelined}; answers -= ${pipelined}) socket.write(ask)
    }).on('error', () => {})
  }`

const monitor = '{kind: tcp, host: 127.0.0.1, port: 9}'
{
  await using serve = await startServeProcess(`serve: {every: off}\ntypes: {App: [${monitor}]}\n`)
  process.stdout.write(JSON.stringify(await measure(serve.port)))
}

async function measure(port: number): Promise<TimeWaitAnswer> {
  await leaveTimeWait()
  const timeWait = inTimeWait()
  const asking = spawn(process.execPath, ['-e', askLivez(port)], { stdio: 'ignore' })
  const livez: number[] = []
  let ends = false
  const probe = async (): Promise<void> => {
    while (!ends) {
      livez.push((await request(port, '/livez')).ms)
      await pause(20)
    }
  }
  const probing = probe()
  const pages = []
  for (const path of ['/', '/metrics', '/', '/metrics', '/', '/metrics']) {
    const { ms, body } = await request(port, path)
    pages.push({ path, ms, hasDetails: body.includes(path === '/' ? 'svc.yaml' : 'svc_build_info') })
  }
  ends = true
  await probing
  asking.kill('SIGKILL')
  livez.sort((a, b) => a - b)
  return {
    timeWait,
    pages,
    livezMs: { median: livez[Math.floor(livez.length / 2)] ?? Number.NaN, worst: livez.at(-1) ?? Number.NaN },
  }
}

async function request(port: number, path: string): Promise<{ ms: number; body: string }> {
  const began = performance.now()
  const sent = get({ port, path, agent: false, host: '127.0.0.1' })
  const [response] = await once(sent, 'response')
  const body = await text(response)
  return { ms: Math.round(performance.now() - began), body }
}

/** The side that closes first keeps the connection in TIME_WAIT, for a minute. */
async function leaveTimeWait(): Promise<void> {
  const server = createServer((socket) => socket.on('error', () => {}).end()).listen(0, '127.0.0.1', 511)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  let opened = 0
  const one = async (): Promise<void> => {
    while (inTimeWait() < sockets && opened < 2 * sockets) {
      opened += 1
      const localAddress = `127.0.0.${2 + Math.floor(opened / perAddress)}`
      const socket = connect({ port, host: '127.0.0.1', localAddress }).resume()
      await once(socket, 'close')
    }
  }
  await Promise.all(Array.from({ length: atOnce }, one))
  server.close()
}
