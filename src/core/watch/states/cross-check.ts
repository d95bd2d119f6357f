import type { ExecutionMode } from '../../protocol/index.ts'
import type { Subject, Verdict } from './types.ts'

/** A node that can be asked whether it reaches what this one does not reach. */
export type OtherNode = {
  /** The name of this node. */
  readonly own: string
  /** The name of the node that is asked. */
  readonly other: string
  /** False: this node has asked as often as it may in a minute. */
  readonly mayAsk: boolean
}

/** A question to another node, for as long as it is open. */
export type Question = Subject & {
  /** No other question of this process has it. */
  readonly id: number
  /** The node that is asked. */
  readonly node: string
  readonly depth: ExecutionMode
}

/** The answer of a node to a question. */
export type NodeAnswer = { readonly id: number; readonly reaches: boolean }

/**
 * The question to another node, and its answer, about a subject that this node cannot reach. Times are milliseconds of
 * the time line.
 */
export type CrossCheck = {
  /** When the first of consecutive runs began that did not reach it. */
  readonly since: number
  readonly own: string
  /** The open question. It has no answer if there is none by `until`. */
  readonly question?: Omit<Question, keyof Subject> & { readonly until: number }
  /** The latest answer. None in time counts as one that does not reach it either. */
  readonly answer?: { readonly node: string; readonly reaches: boolean; readonly at: number }
}

/** A node has this long for its answer, besides the time of a confirmation. */
export const answerMs = 10_000
/** An answer counts for this long while no further question may be asked. */
const countsMs = 60_000

/** A run did not reach the peer. While the nodes disagree, each such run asks again; once they agree, none does. */
export function afterUnreachable(
  before: CrossCheck | undefined,
  run: {
    readonly beganAt: number
    readonly depth: ExecutionMode
    readonly now: number
    readonly confirmMs: number
    /** Undefined: nobody can be asked. */
    readonly nodes: OtherNode | undefined
    readonly id: number
  },
): CrossCheck | undefined {
  const { nodes, depth, id } = run
  // An answer counts, also if nobody can be asked by now.
  if (before?.question || before?.answer?.reaches === false) return before
  const isRecent = before?.answer !== undefined && run.now - before.answer.at < countsMs
  if (!nodes?.mayAsk) return nodes && isRecent ? before : undefined
  const { own, other: node } = nodes
  const since = before?.since ?? run.beganAt
  return { ...before, since, own, question: { id, node, depth, until: run.now + run.confirmMs + answerMs } }
}

/** The other node reaches it, by its latest answer. */
export const isContested = (crossCheck: CrossCheck | undefined): boolean => crossCheck?.answer?.reaches === true

/** The other node has not reported yet whether it reaches it. */
export const isUnanswered = (crossCheck: CrossCheck | undefined): boolean =>
  crossCheck?.question !== undefined && crossCheck.answer === undefined

export const answered = (
  { since, own }: CrossCheck,
  answer: { readonly node: string; readonly reaches: boolean; readonly at: number },
): CrossCheck => ({ since, own, answer })

/** The report after all instants have moved. */
export const shiftedCheck = (
  crossCheck: CrossCheck | undefined,
  move: (at: number) => number,
): CrossCheck | undefined => {
  if (!crossCheck) return undefined
  const { question, answer } = crossCheck
  return {
    ...crossCheck,
    since: move(crossCheck.since),
    ...(question && { question: { ...question, until: move(question.until) } }),
    ...(answer && { answer: { ...answer, at: move(answer.at) } }),
  }
}

/** The message of a contested fault, for people. */
export const contestedMessage = ({ own, answer }: CrossCheck, message: string): string =>
  `${own} cannot reach it, ${answer?.node} can: ${message}`.slice(0, mostCharacters)
const mostCharacters = 1_024

/**
 * Whether a run reached what a question is about. Undefined if the run does not tell: no answer follows. A check that a whole run
 * does not report has no fault.
 */
export function reaches(
  verdicts: readonly Verdict[],
  { check, item }: Pick<Subject, 'check' | 'item'>,
): boolean | undefined {
  const own = verdicts.filter((one) => one.check === check && one.item === item)
  if (own.some(({ level }) => level === 'failed')) return false
  if (own.length > 0) return own.every(({ level }) => level !== undefined) ? true : undefined
  if (verdicts.some(({ level }) => level === 'failed')) return false
  return verdicts.length > 0 && verdicts.every(({ level }) => level !== undefined) ? true : undefined
}
