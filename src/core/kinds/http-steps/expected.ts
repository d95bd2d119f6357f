import { type Content, evaluateAssertions } from '../../assert/content.ts'
import type { Result } from '../../engine/index.ts'
import { isValue, type RequestStep, type Step } from './settings.ts'
import type { StepValues } from './values.ts'

/** Values by path, in the two sorts of document. */
export type Documents = { readonly json?: Texts; readonly xml?: Texts }
type Texts = Readonly<Record<string, string>> | undefined

/** What an answer that ends the waiting of `until` has. */
export type Ending = Documents & { readonly status: readonly string[] | undefined }
/** What an answer that is a failure of its own has, and what that means. */
export type Meaning = Documents & { readonly says: string }

const isXml = (path: string): boolean => /^(?:count\()?\//.test(path)

/** `expect` says by the form of a path which document it leads into. */
function documentsOf(expect: Texts): Documents {
  const entries = Object.entries(expect ?? {})
  const part = (wanted: boolean): Texts => {
    const found = entries.filter(([path]) => isXml(path) === wanted)
    return found.length === 0 ? undefined : Object.fromEntries(found)
  }
  return { json: part(false), xml: part(true) }
}

/** What a step expects, as written. */
export function expectedOf(step: RequestStep): Documents {
  const { json, xml } = documentsOf(step.expect)
  return { json: both(step.json, json), xml: both(step.xml, xml) }
}
const both = (one: Texts, other: Texts): Texts => (one && other ? { ...one, ...other } : (one ?? other))

export const endingOf = ({ until }: Step): Ending | undefined =>
  until && { ...documentsOf(until.expect), status: until.status }

export const meaningsOf = ({ fails }: Step): readonly Meaning[] =>
  (fails ?? []).map(({ expect, says }) => ({ ...documentsOf(expect), says }))

/** All that a step holds an answer against. */
export const allExpected = (step: RequestStep | Step): readonly Documents[] => [
  expectedOf(step),
  ...('until' in step ? [endingOf(step) ?? {}] : []),
  ...('fails' in step ? meaningsOf(step) : []),
]

/** With the values of this run. */
export const filledWith = <D extends Documents>(documents: D, values: StepValues): D => ({
  ...documents,
  json: filled(documents.json, values),
  xml: filled(documents.xml, values),
})

const filled = (expected: Texts, values: StepValues): Texts =>
  expected &&
  Object.fromEntries(
    // Written as a comparison, so that a value is never taken for a pattern.
    Object.entries(expected).map(([path, one]) => [path, isValue(one) ? `=${values.fill(one, String)}` : one]),
  )

/** What of the expected values is not there or is another. */
export const unmetIn = (content: Content, { json, xml }: Documents): readonly Result[] =>
  evaluateAssertions(content, { json, xml }).filter(({ status }) => status === 'failed')
