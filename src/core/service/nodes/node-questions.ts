import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { lookupWith, resolveHost } from '../../base/net/connect.ts'
import { sendBounded } from '../../base/net/http/get.ts'
import { nodeQuestion } from '../../protocol/service/service.ts'

/** Milliseconds that a node has for its answer. */
const patienceMs = 3_000
/** Bytes of an answer: an id and a MAC. */
const maxAnswer = 512
/** Questions that were answered: none is answered twice. */
const mostAnswered = 1_000

/** Two nodes, and the nonce of the question of `asker` to `other`. */
type Exchange = { readonly asker: string; readonly other: string; readonly nonce: string }

/** An answer says: I have no store, my schedule keeps up, a witness answers, and I have your configuration. */
const macOf = (key: string, what: 'question' | 'answer', { asker, other, nonce }: Exchange, parts: readonly string[]) =>
  createHmac('sha256', Buffer.from(key, 'hex'))
    .update(JSON.stringify([`svc nodes 1 ${what}`, asker, other, nonce, ...parts]))
    .digest('hex')

const isSame = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))

const questionShape = /^(\S{1,320}) ([0-9a-f]{32}) ([0-9a-f]{64})$/
const answerShape = /^(\S{1,64}) ([0-9a-f]{64})\n$/

/**
 * Questions and answers between nodes that have no store: whether the other one speaks. Both sides prove that they know the key
 * that they have read from the store. The answer is bound to the question by its nonce, to both names, to a process and
 * to a configuration, and contains nothing else: who has not the key learns nothing, and a recorded answer is worth
 * nothing. So it may come in plain HTTP, or under any certificate.
 */
export class NodeQuestions {
  readonly #node: string
  readonly #process: string
  readonly #answered = new Set<string>()
  /** Undefined: this process has never read it. It then asks nobody and answers nobody. */
  key: string | undefined

  constructor(node: string, process: string) {
    this.#node = node
    this.#process = process
  }

  /** Whether the node at this address says that it speaks. `config`: of this node. Never rejects. */
  async ask(other: string, address: string, config: string): Promise<boolean> {
    const { key } = this
    if (key === undefined || !URL.canParse(address)) return false
    const exchange: Exchange = { asker: this.#node, other, nonce: randomBytes(16).toString('hex') }
    const signal = AbortSignal.timeout(patienceMs)
    try {
      const { status, bytes } = await sendBounded(new URL(nodeQuestion.path, address), {
        method: 'GET',
        headers: {
          [nodeQuestion.header]: `${exchange.asker} ${exchange.nonce} ${macOf(key, 'question', exchange, [])}`,
          Connection: 'close',
        },
        lookup: lookupWith((host) => resolveHost(host, signal)),
        signal,
        rejectUnauthorized: false,
        maxBytes: maxAnswer,
        tooLarge: () => new Error('the answer of a node is too large'),
      })
      const [, process, mac] = answerShape.exec(bytes.toString('latin1')) ?? []
      if (status !== 200 || process === undefined || mac === undefined || process === this.#process) return false
      return isSame(mac, macOf(key, 'answer', exchange, [process, config]))
    } catch {
      return false
    }
  }

  /**
   * The answer to a question. Undefined: it is not of a node with this key, has been answered before, or this node does not
   * speak for that one. Whoever asks cannot tell these apart. `speaksFor`: the configuration of this node if it does.
   */
  answer(question: unknown, speaksFor: (asker: string) => string | undefined): string | undefined {
    const { key } = this
    const [, asker, nonce, mac] = (typeof question === 'string' && questionShape.exec(question)) || []
    if (key === undefined || asker === undefined || nonce === undefined || mac === undefined) return undefined
    const exchange: Exchange = { asker, other: this.#node, nonce }
    if (!isSame(mac, macOf(key, 'question', exchange, [])) || this.#answered.has(nonce)) return undefined
    this.#answered.add(nonce)
    const [oldest] = this.#answered
    if (this.#answered.size > mostAnswered && oldest !== undefined) this.#answered.delete(oldest)
    const config = speaksFor(asker)
    if (config === undefined) return undefined
    return `${this.#process} ${macOf(key, 'answer', exchange, [this.#process, config])}\n`
  }
}
