import { type Answer, headerOf, isLast } from './answers.ts'
import { newId, type Observation } from './asking.ts'
import { converse } from './connections.ts'
import { type Noise, rubbish, type Talk } from './conversations.ts'
import type { CheckContext } from './fixture.ts'
import { evaluate } from './judge.ts'
import { hiddenMark, type Piece } from './pieces.ts'

/** Requests that are none, by the correlation ids that they would have: never answered, never logged. */
export type Hidden = string[]

/** Holds a conversation, and checks that it was understood as it must be. */
export async function holdTalk(
  context: CheckContext,
  talk: Talk,
  observation: Observation,
  hidden: Hidden,
): Promise<void> {
  const hiddenId = newId()
  hidden.push(hiddenId)
  const pieces = [...talk.wholes, ...(talk.end ? [talk.end] : [])].map((piece) => ({ ...piece, id: newId() }))
  const behind = talk.end ? talk.behind : ''
  const bytes = pieces.map((piece) => piece.bytes.replaceAll('{{id}}', piece.id)).join('') + behind
  const { answers, rest } = await converse(context.port, {
    parts: cut(bytes.replaceAll(hiddenMark, hiddenId), talk.cuts),
    methods: pieces.map(({ method }) => method),
    expected: pieces.length,
    end: talk.leaves,
  })
  if (!context.running()) throw new Error('svc serve ended')
  const summaries = answers.map((answer) => `${answer.status} ${headerOf(answer, 'x-correlation-id')}`)
  const problems = (what: string): Error =>
    new Error(`${what}: ${summaries.join(', ')} for ${pieces.map(({ id }) => id).join(', ')}`)

  if (answers.length > pieces.length) throw problems('more answers than requests')
  for (const [i, answer] of answers.entries()) {
    const piece = pieces[i]
    if (piece) check(piece, answer)
    if (isLast(answer) && i < answers.length - 1) throw problems('an answer behind the last one')
  }
  observation.requests += pieces.length
  const end = answers.at(-1)
  const silent = talk.leaves !== 'waits' || (end && isLast(end))
  // Of what came before an error, answers that are not ready in a moment are lost with the connection.
  const spoiled = talk.end?.kind === 'broken' ? talk.wholes.length > 0 : talk.end && rubbish.has(talk.behind)
  if (silent || spoiled) return
  if (rest.length > 0) throw problems(`half an answer: ${JSON.stringify(rest.toString('latin1').slice(0, 300))}`)
  if (answers.length < pieces.length) throw problems('fewer answers than requests')

  function check(piece: Piece & { readonly id: string }, answer: Answer): void {
    const { kind, method, statuses = [400, 413, 431] } = piece
    const id = headerOf(answer, 'x-correlation-id')
    if (piece.bytes.includes('{{id}}') && id !== piece.id && kind !== 'broken') throw problems('answers out of order')
    if (kind !== 'whole' && !statuses.includes(answer.status)) throw problems(`instead of ${statuses.join(' or ')}`)
    if (kind !== 'whole' && !isLast(answer)) throw problems('the connection stays open')
    const target = /^\s*[A-Z]+ (\S+) HTTP/.exec(piece.bytes)?.[1] ?? '/'
    const where = kind === 'broken' ? { method: 'POST', target: '/assignroles' } : { method, target }
    evaluate({ ...where, bodiless: method === 'HEAD', sent: '', answer }, context.secrets, context.folders)
    observation.note(`${kind} ${method}`, answer)
  }
}

/** Sends garbage: anything that comes back must be a valid answer, and the connection must end. */
export async function makeNoise(
  context: CheckContext,
  { bytes, cuts, leaves }: Noise,
  observation: Observation,
): Promise<void> {
  const filled = bytes.replaceAll('{{id}}', newId).replaceAll(hiddenMark, newId).replaceAll('HEAD ', 'GET ')
  const { answers } = await converse(context.port, {
    parts: cut(filled, cuts),
    methods: [],
    expected: Number.POSITIVE_INFINITY,
    end: leaves,
  })
  if (!context.running()) throw new Error('svc serve ended')
  for (const [i, answer] of answers.entries()) {
    evaluate({ method: '', bodiless: false, target: undefined, sent: '', answer }, context.secrets, context.folders)
    if (isLast(answer) && i < answers.length - 1) throw new Error('an answer behind the last one')
    observation.note('noise', answer)
  }
  observation.requests += 1
}

function cut(bytes: string, cuts: readonly number[]): Buffer[] {
  const at = [...new Set(cuts.map((each) => Math.floor((each / 1_000) * bytes.length)))].sort((a, b) => a - b)
  const starts = [0, ...at]
  return starts
    .map((start, i) => Buffer.from(bytes.slice(start, starts[i + 1]), 'latin1'))
    .filter(({ length }) => length > 0)
}
