import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, isLast, readAnswers } from './answers.ts'

/** No request here takes as long. Milliseconds. */
const patienceMs = 30_000

/** A connection, and everything that came on it. */
class Line {
  readonly socket: Socket
  #bytes = Buffer.alloc(0)
  #closed = false
  #wake: () => void = () => {}

  constructor(port: number) {
    this.socket = connect({ host: '127.0.0.1', port, noDelay: true })
    this.socket.on('data', (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk])
      this.#wake()
    })
    const close = (): void => {
      this.#closed = true
      this.#wake()
    }
    this.socket.on('end', close).on('close', close).on('error', close)
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Waits until as many answers are there, or the other side closed. */
  async answers(count: number, methods: readonly string[]): Promise<ReturnType<typeof readAnswers>> {
    const until = performance.now() + patienceMs
    for (;;) {
      const read = readAnswers(this.#bytes, methods)
      if (read.answers.length >= count || this.#closed) return read
      if (performance.now() > until) {
        throw new Error(`after ${patienceMs} ms there are ${read.answers.length} of ${count} answers, and no end`)
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      const timer = setTimeout(resolve, 1_000)
      await promise
      clearTimeout(timer)
    }
  }

  /** Forgets what was read: what comes from now on belongs to the next request. */
  forget(): void {
    this.#bytes = Buffer.alloc(0)
  }
}

/** A connection that is used again and again, as browsers and pollers do. */
export class Lane {
  readonly #port: number
  #line: Line | undefined
  #usedAt = 0
  /** The last question and answer, for the message about the next failure. */
  #before = 'nothing'

  constructor(port: number) {
    this.#port = port
  }

  /** Sends one whole request and gives its one answer. Throws when anything else comes, or nothing. */
  async ask(bytes: Buffer, method: string): Promise<Answer> {
    // The server closes what is idle for five seconds, and may do so while this request is on its way.
    if (this.#line?.closed || performance.now() - this.#usedAt > 2_500) this.close()
    const line = this.#line ?? new Line(this.#port)
    this.#line = line
    if (line.socket.connecting) await once(line.socket, 'connect')
    line.socket.write(bytes)
    const methods = [method]
    const { answers, rest } = await line.answers(1, methods)
    const [answer] = answers
    if (!answer) {
      throw new Error(
        `closed without an answer, after ${JSON.stringify(rest.toString('latin1'))}; before it came ${this.#before}`,
      )
    }
    this.#before = `${answer.status} to ${JSON.stringify(bytes.toString('latin1').replace(/(.)\1{30,}/g, '$1…'))}`
    if (isLast(answer)) {
      let end = await line.answers(2, methods)
      // Of what its parser refused the server does not know that it is HEAD, and explains itself.
      if (method === 'HEAD' && end.rest.length > 0 && [400, 431].includes(answer.status))
        end = await line.answers(2, [])
      if (end.answers.length !== 1 || end.rest.length > 0) throw new Error('something followed the last answer')
      this.close()
      return end.answers[0] ?? answer
    }
    if (rest.length > 0) throw new Error(`something followed the answer: ${JSON.stringify(rest.toString('latin1'))}`)
    line.forget()
    this.#usedAt = performance.now()
    return answer
  }

  close(): void {
    this.#line?.socket.destroy()
    this.#line = undefined
    this.#before = 'nothing'
  }
}

export type Conversation = {
  /** Sent one after the other, each in a packet of its own as far as that can be. */
  readonly parts: readonly Buffer[]
  readonly methods: readonly string[]
  /** How many answers to wait for. */
  readonly expected: number
  /** The act of the caller then, or as soon as everything is sent: half-closes, or resets the connection. */
  readonly end: 'waits' | 'half-closes' | 'resets'
}

/** Holds one conversation on a connection of its own, up to its end. */
export async function converse(
  port: number,
  { parts, methods, expected, end }: Conversation,
): Promise<ReturnType<typeof readAnswers>> {
  const line = new Line(port)
  const { socket } = line
  try {
    await once(socket, 'connect')
    for (const part of parts) {
      if (line.closed) break
      socket.write(part)
      await sleep(parts.length > 1 ? 1 : 0)
    }
    if (end === 'resets') {
      socket.resetAndDestroy()
      return { answers: [], rest: Buffer.alloc(0) }
    }
    if (end === 'half-closes') socket.end()
    const { answers } = await line.answers(expected, methods)
    const last = answers.at(-1)
    if (!line.closed && !(last && isLast(last))) socket.end()
    return await line.answers(Number.POSITIVE_INFINITY, methods)
  } finally {
    socket.destroy()
  }
}
