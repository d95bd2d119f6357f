import { Agent, request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { ExecutionMode, ServerType } from '../../src/core/protocol/index.ts'
import { blackHole, http, peer } from '../support/faults/faults.ts'
import { httpPeer, pages } from '../support/simulated/http-peer.ts'
import { identityProvider } from './leak-provider.ts'
import { open, refusedAt } from './leak-row.ts'

export type Polled = {
  /** Undefined: there is no svc.yaml. */
  readonly yaml: string | undefined
  readonly env: Readonly<Record<string, string>>
  /** Failure is what is expected of these. */
  readonly types: readonly (readonly [type: ServerType, status: 'Success' | 'Failure'])[]
  readonly left: () => readonly string[]
  readonly stop: () => Promise<void>
}

/**
 * Types with healthy monitors, with broken ones, and without any; every way in which a run ends is among them. Slow
 * answers count as healthy: a busy machine gives them.
 */
export async function polled(): Promise<Polled> {
  const sound = await httpPeer(pages(() => ({ '/status': { state: 'ready' } })))
  const refusing = await httpPeer((_, response) => void response.writeHead(401).end('no'))
  const hole = await peer(blackHole)
  const cutting = await peer((socket) => {
    socket.once('data', () => socket.end(http(200, '{"state":"ready"}').slice(0, -5)))
  })
  const provider = await identityProvider()
  const at = (port: number): string => `http://127.0.0.1:${port}/status`
  const yaml = `
types:
  Sql:
    host: false
    monitors:
      - {kind: http, name: well, url: '${at(sound.port)}', json: {$.state: ready}, latency: off}
      - {kind: tcp, name: port, host: 127.0.0.1, port: ${sound.port}, latency: off}
      - {kind: process, name: this, executable: node, openFiles: off}
      - {kind: file-age, name: folder, path: /proc, depth: Standard, age: off}
  Ftp:
    - {kind: tcp, name: refused, host: 127.0.0.1, port: ${refusedAt}, retries: 1}
    - {kind: http, name: later, url: '${at(sound.port)}', dependsOn: refused}
  Mongo:
    host: false
    monitors:
      - {kind: http, name: black hole, url: '${at(hole.port)}', timeout: 250ms}
      - {kind: tcp, name: deaf, host: 127.0.0.1, port: ${hole.port}, send: x, expect: y, timeout: 250ms}
      - {kind: file-age, name: cut, path: /proc, timeout: 20ms}
  Batch:
    - {kind: http, name: cut, url: '${at(cutting.port)}'}
    - {kind: http, name: wrong password, url: '${at(refusing.port)}', token: {env: WORD}}
  Agents:
    - {kind: heartbeat, name: agents, agents: [nobody]}
  App:
    - {kind: http, name: page, url: '${at(sound.port)}', json: {$.state: ready}, latency: off}
    - {kind: process, name: this, executable: node, openFiles: off}
  Identity:
    - {kind: oidc, name: provider, issuer: '${provider.issuer}', insecureHttp: true, latency: off}
`
  return {
    yaml,
    env: { WORD: 'wrong horse' },
    types: [
      ['Sql', 'Success'],
      ['Ftp', 'Failure'],
      ['Mongo', 'Failure'],
      ['Batch', 'Failure'],
      ['Agents', 'Failure'],
      ['App', 'Success'],
      ['Identity', 'Success'],
      // Not configured: what listens here.
      ['XcodeV', 'Failure'],
    ],
    left: () => [
      ...open('sound', sound),
      ...open('refusing', refusing),
      ...open('black hole', hole),
      ...open('hang-up', cutting),
      ...open('provider', provider),
    ],
    stop: async () => {
      await sound[Symbol.asyncDispose]()
      await refusing[Symbol.asyncDispose]()
      await hole.close()
      await cutting.close()
      await provider.close()
    },
  }
}

/** The checks of a server without a svc.yaml: its own process, its own accounts, and the listeners on this machine. */
export const selfChecked = (): Promise<Polled> =>
  Promise.resolve({
    yaml: undefined,
    env: {},
    types: [
      ['App', 'Success'],
      ['Identity', 'Success'],
      ['XcodeV', 'Failure'],
    ],
    left: () => [],
    stop: () => Promise.resolve(),
  })

/** A busy machine hashes no password within the limit: the run that says so has ended like any other. */
const slowHash =
  /^\{"Status":"Failure","StatusMessage":"Identity is unhealthy: 1 of \d+ monitors failed: [^"]* password hash: [^"]* \(fail 3 s\)"/

const modes: readonly ExecutionMode[] = ['Basic', 'Standard', 'Advanced']
export type Answers = {
  readonly answered: number
  readonly killed: number
  /** Answers that were not as expected, each different one once. */
  readonly unexpected: readonly string[]
}

/**
 * Asks for every type in every mode in turn, `atOnce` at a time: on connections that are kept and on new
 * ones, for fresh runs and for shared ones, anonymously and as another svc. Every seventh caller is killed in between.
 */
export async function poll(port: number, types: Polled['types'], polls: number, atOnce = 12): Promise<Answers> {
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
  const unexpected = new Set<string>()
  let start = 0
  let answered = 0
  let killed = 0
  const lane = async (): Promise<void> => {
    while (start < polls) {
      const turn = start
      start += 1
      const [type, status] = types[turn % types.length] ?? ['Sql', 'Success']
      const mode = modes[Math.floor(turn / types.length) % modes.length] ?? 'Basic'
      const killAfterMs = turn % 7 === 3 ? (turn * 13) % 120 : undefined
      const answer = await ask(port, `/healthcheck?ServerType=${type}&ExecutionMode=${mode}&SuppressErrorCodes=true`, {
        agent: turn % 3 === 0 ? false : agent,
        headers: {
          Accept: 'application/json',
          ...(turn % 2 === 0 ? { 'Cache-Control': 'no-cache' } : {}),
          ...(turn % 5 === 0 ? { 'X-Svc-Hops': '1' } : {}),
        },
        killAfterMs,
      })
      if (answer === undefined) killed += 1
      else {
        answered += 1
        if (answer.status !== status && !slowHash.test(answer.text))
          unexpected.add(`${type} ${mode}: ${answer.text.slice(0, 300)}`)
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
  agent.destroy()
  return { answered, killed, unexpected: [...unexpected] }
}

type Asking = {
  readonly agent: Agent | false
  readonly headers: Readonly<Record<string, string>>
  readonly killAfterMs: number | undefined
}

/** Undefined: the caller was killed before it had its answer. */
function ask(
  port: number,
  path: string,
  { agent, headers, killAfterMs }: Asking,
): Promise<{ readonly status: string; readonly text: string } | undefined> {
  return new Promise((resolve) => {
    const clientRequest = request({ host: '127.0.0.1', port, path, agent, headers })
    const timer = killAfterMs === undefined ? undefined : setTimeout(() => clientRequest.destroy(), killAfterMs)
    const done = (text: string | undefined): void => {
      clearTimeout(timer)
      const status = /"Status":"(\w+)"/.exec(text ?? '')?.[1] ?? 'none'
      resolve(text === undefined ? undefined : { status, text: text })
    }
    clientRequest.on('error', (error: NodeJS.ErrnoException) => {
      if (clientRequest.destroyed && killAfterMs !== undefined) return done(undefined)
      // HTTP lets a server end a connection that has been idle, also while the next request is on its way.
      const ended = clientRequest.reusedSocket && error.code === 'ECONNRESET'
      if (ended) return resolve(ask(port, path, { agent, headers, killAfterMs }))
      done(String(error))
    })
    clientRequest.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => done(text))
      response.on('error', () => done(undefined))
    })
    clientRequest.end()
  })
}

/** Asks, and leaves at once: what the run that began has started is the server's to end. */
export async function askAndLeave(port: number, types: Polled['types']): Promise<void> {
  const clientRequest = types.map(([type]) => {
    const one = request({ host: '127.0.0.1', port, path: `/healthcheck?ServerType=${type}&ExecutionMode=Advanced` })
    one.on('error', () => {}).on('response', (response) => response.resume())
    one.setHeader('Cache-Control', 'no-cache')
    one.end()
    return one
  })
  await wait(150)
  for (const one of clientRequest.slice(clientRequest.length / 2)) one.destroy()
}
