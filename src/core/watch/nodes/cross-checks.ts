import type { NodeAnswer, Question } from '../states/index.ts'
import { mostQuestions } from './policy.ts'
import type { CrossChecks, NodeRow, OthersQuestion } from './types.ts'

/** For how long a question counts among those of a minute. Milliseconds. */
const minuteMs = 60_000

/** The questions of a node to others, and its answers to theirs. Both are part of its row. */
export class CrossCheckBook {
  readonly #node: string
  #questions: readonly Question[] = []
  /** When it asked, and the process of the node that was asked, by number. */
  readonly #askedAt = new Map<number, { readonly at: number; readonly epoch: number | undefined }>()
  /** The open questions of other nodes, with its answer once it has one. */
  readonly #inquiries = new Map<string, { readonly question: OthersQuestion; reaches: boolean | undefined }>()

  constructor(node: string) {
    this.#node = node
  }

  get facts(): CrossChecks {
    const answers = [...this.#inquiries.values()].flatMap(({ question: { from: node, epoch, id }, reaches }) =>
      reaches === undefined ? [] : [{ node, epoch, id, reaches }],
    )
    return { questions: this.#questions, answers }
  }

  asks(questions: readonly Question[], rows: readonly NodeRow[], now: number): void {
    for (const { id, node } of questions)
      if (!this.#askedAt.has(id))
        this.#askedAt.set(id, { at: now, epoch: rows.find((one) => one.node === node)?.epoch })
    for (const [id, { at }] of this.#askedAt)
      if (now - at >= minuteMs && questions.every((one) => one.id !== id)) this.#askedAt.delete(id)
    this.#questions = questions.slice(0, mostQuestions)
  }

  mayAsk(now: number): boolean {
    return [...this.#askedAt.values()].filter(({ at }) => now - at < minuteMs).length < mostQuestions
  }

  looked({ from, epoch, id }: OthersQuestion, reaches: boolean | undefined): void {
    const inquiry = this.#inquiries.get(questionName(from, epoch, id))
    if (inquiry) inquiry.reaches = reaches
  }

  /** New questions to this node about monitors that it can run, and answers to its own. */
  receive(
    rows: readonly NodeRow[],
    isAble: (key: string) => boolean,
    now: number,
  ): { readonly questions: readonly OthersQuestion[]; readonly answers: readonly NodeAnswer[] } {
    const own = rows.find(({ node }) => node === this.#node)?.epoch
    const others = rows.filter(({ node, isLive, isIsolated }) => node !== this.#node && isLive && !isIsolated)
    const open = new Map<string, OthersQuestion>()
    for (const { node: from, epoch, facts } of others)
      for (const question of (facts?.crossChecks?.questions ?? []).slice(0, mostQuestions))
        if (question.node === this.#node) open.set(questionName(from, epoch, question.id), { ...question, from, epoch })
    for (const name of this.#inquiries.keys()) if (!open.has(name)) this.#inquiries.delete(name)
    const news = [...open].filter(([name, { key }]) => !this.#inquiries.has(name) && isAble(key))
    for (const [name, question] of news) this.#inquiries.set(name, { question, reaches: undefined })
    const answers = this.#questions.flatMap(({ id, node }): readonly NodeAnswer[] => {
      const row = others.find((one) => one.node === node)
      const answer = row?.facts?.crossChecks?.answers.find((one) => one.node === this.#node && one.id === id)
      if (answer && answer.epoch === own) return [{ id, reaches: answer.reaches }]
      // One that has restarted since does not know the question.
      const question = this.#askedAt.get(id)
      const isGone = row === undefined || (question?.epoch !== undefined && row.epoch !== question.epoch)
      return isGone && question !== undefined && now > question.at ? [{ id, reaches: false }] : []
    })
    return { questions: news.map(([, question]) => question), answers }
  }
}

const questionName = (from: string, epoch: number, id: number): string => `${from} ${epoch} ${id}`
