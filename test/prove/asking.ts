import { randomBytes } from 'node:crypto'
import { type Answer, headerOf, isLast } from './answers.ts'
import { Lane } from './connections.ts'
import type { CheckContext } from './fixture.ts'
import { evaluate } from './judge.ts'
import type { Question } from './questions.ts'

/** The requests and answers, so that a proof that checked nothing is noticed. */
export class Observation {
  requests = 0
  rounds = 0
  /** By the operation and the status: how often. */
  readonly kinds = new Map<string, number>()
  readonly correlationIds: string[] = []

  note(kind: string, answer: Answer): void {
    this.kinds.set(`${kind} ${answer.status}`, (this.kinds.get(`${kind} ${answer.status}`) ?? 0) + 1)
    this.correlationIds.push(headerOf(answer, 'x-correlation-id') ?? '')
  }

  /** How often what was noted holds the text. */
  count(text: string): number {
    return [...this.kinds].reduce((sum, [kind, count]) => (kind.includes(text) ? sum + count : sum), 0)
  }
}

/** One that no other request of a run has. */
export const newId = (): string => `p${randomBytes(12).toString('hex')}`

/** The bytes of a question. */
export function bytesOf({ method, target, headers, body }: Question, id: string, context: CheckContext): Buffer {
  const headerLines = headers.map(([name, value]) => `${name}: ${context.secrets.fill(value)}\r\n`).join('')
  const own = headers.some(([name]) => name === 'X-Correlation-Id') ? '' : `X-Correlation-Id: ${id}\r\n`
  const content = body === undefined ? '' : context.secrets.fill(body.bytes)
  const type = body?.type === undefined ? '' : `Content-Type: ${body.type}\r\n`
  const length =
    body === undefined ? '' : body.chunked ? 'Transfer-Encoding: chunked\r\n' : `Content-Length: ${content.length}\r\n`
  const head = `${method} ${context.secrets.fill(target)} HTTP/1.1\r\n${headerLines}${own}${type}${length}\r\n`
  return Buffer.from(head + (body?.chunked ? inChunks(content) : content), 'latin1')
}

function inChunks(content: string): string {
  const size = Math.max(1, Math.ceil(content.length / 3))
  let chunks = ''
  for (let at = 0; at < content.length; at += size) {
    const chunk = content.slice(at, at + size)
    chunks += `${chunk.length.toString(16)}\r\n${chunk}\r\n`
  }
  return `${chunks}0\r\n\r\n`
}

const overridden = /^[A-Za-z]{1,10}$/

/** R4: the verb that a request is answered as. */
const verbOf = ({ method, headers }: Question): string => {
  const override = headers.flatMap(([name, value]) => (name === 'X-Http-Method-Override' ? [value] : [])).join(', ')
  return method === 'POST' && overridden.test(override) ? override.toUpperCase() : method
}

/** Sends several requests concurrently, each on its own lane, and checks each answer. */
export class Asking {
  readonly #context: CheckContext
  readonly #lanes: Lane[]
  readonly observation = new Observation()

  constructor(context: CheckContext, lanes: number) {
    this.#context = context
    this.#lanes = Array.from({ length: lanes }, () => new Lane(context.port))
  }

  async ask(questions: readonly Question[]): Promise<void> {
    const left = [...questions]
    const work = async (lane: Lane): Promise<void> => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) await this.#one(lane, next)
    }
    const done = await Promise.allSettled(this.#lanes.map(work))
    const failed = done.find((each) => each.status === 'rejected')
    if (failed) {
      this.close()
      throw failed.reason
    }
  }

  async #one(lane: Lane, question: Question): Promise<void> {
    const id = newId()
    const bytes = bytesOf(question, id, this.#context)
    const answer = await lane.ask(bytes, question.method)
    if (!this.#context.running()) throw new Error('svc serve ended')
    // A fault in a body is reported as for the POST that sent it.
    const method = [413, 415].includes(answer.status) ? question.method : verbOf(question)
    const { secrets, folders } = this.#context
    const bodiless = question.method === 'HEAD' && answer.body === ''
    evaluate({ method, bodiless, target: question.target, sent: bytes.toString('latin1'), answer }, secrets, folders)
    const correlationId = headerOf(answer, 'x-correlation-id')
    const hasCorrelationId = question.headers.some(([name]) => name === 'X-Correlation-Id')
    // What the parser refused has no headers yet, and ends the connection.
    if (correlationId !== id && !hasCorrelationId && !(isLast(answer) && [400, 413, 431].includes(answer.status))) {
      throw new Error(
        `H6 ${question.method} ${question.target} ${answer.status}: answered as ${correlationId}, and asked as ${id}`,
      )
    }
    this.observation.requests += 1
    this.observation.note(kindOf(method, question.target), answer)
  }

  close(): void {
    for (const lane of this.#lanes) lane.close()
  }
}

/** Where a request went, in a word. */
export function kindOf(method: string, target: string): string {
  const path = (target.split('?', 1)[0] ?? '').toLowerCase().replace(/^\/+/, '')
  const words =
    /(authenticate|auth|access-?token|unassignroles|assignroles|health|heartbeat|keys\/create|createkey)/.exec(path)
  return `${method} ${words?.[1]?.replace('-', '').replace('keys/create', 'createkey') ?? 'other'}${path.includes('[]') ? '[]' : ''}`
}
