import { Agent, request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'

export type Flood = {
  /** Answers by status; the key of a request without an answer is `none`. */
  readonly answers: ReadonlyMap<string, number>
  /** Milliseconds that each answer of /healthcheck took. */
  readonly healthMs: readonly number[]
}

type FloodOptions = {
  readonly port: number
  readonly strangers: number
  readonly seconds: number
  /** Ends the flood early. */
  readonly ended?: () => boolean
}

/**
 * So many strangers sign in at once, each again as soon as it has its answer, and one caller reads health every 50 ms. Each
 * attempt comes from an address and with a name of its own, through a proxy at 127.0.0.1 that the server trusts, so that no
 * limit on guesses refuses it before its password is compared.
 */
export async function floodOfSignIns({ port, strangers, seconds, ended = () => false }: FloodOptions): Promise<Flood> {
  const end = performance.now() + seconds * 1_000
  const goesOn = (): boolean => performance.now() < end && !ended()
  const answers = new Map<string, number>()
  const healthMs: number[] = []
  const agent = new Agent({ keepAlive: true })
  const stranger = async (n: number): Promise<void> => {
    for (let turn = 0; goesOn(); turn += 1) {
      const status = await post(agent, port, `10.${turn & 255}.${(turn >> 8) & 255}.${n}`, `nobody-${n}-${turn}`)
      answers.set(status, (answers.get(status) ?? 0) + 1)
      if (status !== '401') await wait(20)
    }
  }
  const health = async (): Promise<void> => {
    while (goesOn()) {
      const began = performance.now()
      const status = await ask(agent, { port, path: '/healthcheck?ServerType=App&ExecutionMode=Basic' })
      if (status !== 'none') healthMs.push(performance.now() - began)
      await wait(50)
    }
  }
  await Promise.all([health(), ...Array.from({ length: strangers }, (_, n) => stranger(n + 1))])
  agent.destroy()
  return { answers, healthMs }
}

const post = (agent: Agent, port: number, from: string, userName: string): Promise<string> => {
  const body = JSON.stringify({ provider: 'credentials', UserName: userName, Password: 'the password of nobody' })
  return ask(agent, { port, path: '/auth', from, body })
}

type Question = { readonly port: number; readonly path: string; readonly from?: string; readonly body?: string }

function ask(agent: Agent, { port, path, from = '10.255.255.1', body }: Question): Promise<string> {
  const headers = { accept: 'application/json', 'content-type': 'application/json', 'x-forwarded-for': from }
  return new Promise((resolve) => {
    request(
      { agent, host: '127.0.0.1', port, path, method: body === undefined ? 'GET' : 'POST', headers },
      (answer) => {
        answer.resume().once('close', () => resolve(String(answer.statusCode)))
      },
    )
      .once('error', () => resolve('none'))
      .end(body)
  })
}
