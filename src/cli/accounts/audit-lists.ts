import { count } from '../../core/base/format.ts'
import { humanTime } from '../../core/base/zone.ts'
import type { AuditLogEntry, AuditSeal, Response } from '../../core/protocol/index.ts'
import { fromEntry } from '../../core/protocol/service/facts.ts'
import type { AuditFacts, PastHolder } from '../../core/protocol/service/service.ts'
import type { ChainHead, ChainVerdict } from '../../core/store/audit/index.ts'
import type { Screen } from '../io/io.ts'
import {
  dateTime,
  document,
  flag,
  integer,
  listOf,
  objectOf,
  oneOf,
  orNull,
  string,
  strings,
} from '../render/document.ts'
import { type Headline, type ListOutput, list, record } from '../render/list.ts'
import { type FactRows, headline, moment, names, pairs, utcMoment } from '../render/table.ts'
import { auditChange } from './lists.ts'

/** The users who held a role at a time. */
export const pastHolders = list<PastHolder>()({
  around: ['store', 'role', 'at'],
  documentOnly: { store: string, answersFrom: dateTime, notCovered: orNull(string) },
  beneath: 'store',
  rows: 'users',
  columns: [
    { key: 'userName', is: string, title: 'NAME', shrink: 2 },
    {
      key: 'disabled',
      is: flag,
      title: 'STATE THEN',
      cell: ({ disabled }) => (disabled ? { text: 'disabled', style: 'caution' } : 'active'),
    },
    {
      key: 'endsAt',
      is: orNull(dateTime),
      title: 'UNTIL',
      cell: ({ endsAt }) => (endsAt === undefined ? '' : moment(endsAt)),
      optional: true,
    },
  ],
})

export const pastHoldersHeadline = (total: number, role: string, at: Date): Headline =>
  total === 0
    ? { mark: 'warn', sentence: `No user had "${role}" on ${precise(at)}` }
    : { mark: 'ok', sentence: `${count(total, 'user')} had "${role}" on ${precise(at)}` }

/** To the second: an audit log has several entries in a minute. */
const precise = (at: Date): string => humanTime(at.getTime())

/** The roles that the answer about a time does not include. */
export const notCovered = (linkedUsers: number): string | undefined =>
  linkedUsers === 0
    ? undefined
    : `roles from claims of an OpenID provider, to which ${count(linkedUsers, 'user is', 'users are')} linked`

/** The changes of a user's roles, oldest first. */
export const roleHistory = list<RoleHistoryRow>()({
  around: ['store', 'userName'],
  beneath: 'store',
  rows: 'changes',
  headline: (rows, { userName }) => ({
    mark: 'ok',
    sentence: `${rows.length === 0 ? 'No changes' : count(rows.length, 'change')} of the roles of ${userName}, oldest first`,
  }),
  columns: [
    { key: 'id', is: integer },
    { key: 'at', is: dateTime, title: 'AT', cell: ({ at }) => moment(at) },
    { key: 'event', is: string, title: 'EVENT' },
    { key: 'change', is: string, title: 'CHANGE', cell: ({ here }) => here.change, shrink: 1 },
    {
      key: 'until',
      is: strings,
      title: 'UNTIL',
      cell: ({ here }) => here.until.join(', '),
      optional: true,
      shrink: 2,
    },
    { key: 'who', is: string, title: 'WHO', shrink: 3 },
    { key: 'reason', is: orNull(string), title: 'WHY', shrink: 1, optional: true },
    { key: 'address', is: orNull(string) },
    { key: 'correlationId', is: string },
  ],
})
export type RoleHistoryRow = Omit<AuditFacts, 'before' | 'after' | 'target'> & {
  readonly change: string
  /** `Deploy 2026-11-28 18:00 UTC`, for what ends by itself. */
  readonly until: readonly string[]
  /** The same with the times of whoever reads the table. */
  readonly here: { readonly change: string; readonly until: readonly string[] }
}

/** `ends`: when roles end by themselves, as `holdingIn` reads that from the entry. */
export const roleChange = (entry: AuditFacts, ends: ReadonlyMap<string, number>): RoleHistoryRow => {
  const texts = (time: (at: Date) => string) => ({
    change: auditChange({ ...entry, reason: undefined }, time),
    until: [...ends].map(([name, at]) => `${names([name])} ${time(new Date(at))}`),
  })
  return { ...entry, ...texts(utcMoment), here: texts(moment) }
}

/** The newest seal. */
export const auditHeads = document<{
  readonly head: string | null
  readonly number: number
  readonly at: Date | null
}>()({
  around: { store: string },
  rows: 'heads',
  members: { head: orNull(string), number: integer, at: orNull(dateTime) },
})

/** The export of the audit log: its file and its head. */
export const auditExports = document<{ readonly file: string; readonly head: string | null }>()({
  around: { store: string },
  rows: 'exports',
  members: { file: string, head: orNull(string) },
})

type VerdictRow = Omit<ChainVerdict, 'head' | 'began'> & {
  readonly intact: boolean
  readonly head: string | null
  readonly firstSeal: number | null
  readonly firstSealAt: Date | null
  readonly comparedWithHead: boolean
}
const problemShape = objectOf({
  seal: integer,
  kind: oneOf('edit', 'deletion', 'swap', 'insertion', 'seal', 'cut'),
  sentence: string,
})
/** The verification of an audit log, in a store or a file. */
export const verdicts = document<VerdictRow>()({
  around: { target: string },
  rows: 'verdicts',
  members: {
    intact: flag,
    problems: listOf(problemShape),
    more: integer,
    seals: integer,
    entries: integer,
    pruned: integer,
    unsealed: integer,
    head: orNull(string),
    firstSeal: orNull(integer),
    firstSealAt: orNull(dateTime),
    entriesBefore: integer,
    repeated: integer,
    torn: integer,
    withdrawn: integer,
    earlier: integer,
    comparedWithHead: flag,
  },
})

export const auditOf = (entry: AuditLogEntry): AuditFacts => fromEntry(entry) as AuditFacts

const sealOf = (seal: AuditSeal | undefined) => seal && { number: seal.Number ?? 0, hash: seal.Hash ?? '' }

/** The verdict on an audit in a store. The figures of a stream are 0. */
export function verdictOf({ Problems = [], Head, Began, ...counts }: Response<'verifyAudit'>): ChainVerdict {
  const began = Began && { number: Began.Number ?? 0, at: Began.At?.getTime() ?? 0 }
  return {
    repeated: 0,
    torn: 0,
    withdrawn: 0,
    earlier: 0,
    ...fromEntry(counts),
    problems: Problems.map(fromEntry),
    head: sealOf(Head),
    began,
  } as ChainVerdict
}

const headText = (head: ChainHead | undefined): string | null => (head ? `${head.number}:${head.hash}` : null)
export const isIntact = ({ problems }: ChainVerdict): boolean => problems.length === 0

/** A verdict as JSON, as a record for each problem in a pipe, and as sentences and facts on a terminal. */
export function verdictText(
  verdict: ChainVerdict,
  { target, isCompared }: { readonly target: string; readonly isCompared: boolean },
  { json, screen }: ListOutput,
): string {
  const { problems, began } = verdict
  const head = headText(verdict.head)
  if (json) {
    const { head: _, began: __, ...rest } = verdict
    const row: VerdictRow = {
      ...rest,
      intact: isIntact(verdict),
      head,
      firstSeal: began?.number ?? null,
      firstSealAt: began ? new Date(began.at) : null,
      comparedWithHead: isCompared,
    }
    return verdicts.text({ target }, [row])
  }
  if (!screen.isTTY) {
    if (isIntact(verdict)) return record([target, 'intact', head ?? ''])
    return problems
      .map(({ seal, kind, sentence }) => record([target, 'broken', String(seal), kind, sentence]))
      .join('\n')
  }
  return onTerminal(verdict, { target, isCompared, head }, screen)
}

function onTerminal(
  verdict: ChainVerdict,
  { target, isCompared, head }: { readonly target: string; readonly isCompared: boolean; readonly head: string | null },
  screen: Screen,
): string {
  const { problems, more, seals, entries, pruned, unsealed, began, entriesBefore } = verdict
  const { repeated, torn, withdrawn, earlier } = verdict
  const [first] = problems
  const top = first
    ? headline(
        'fail',
        `The audit is broken${first.seal === 0 ? '' : ` at seal ${first.seal}`}: ${first.sentence}`,
        screen,
      )
    : headline(
        'ok',
        `The audit is intact: ${count(entries, 'entry', 'entries')} in ${count(seals, 'seal', 'seals')}`,
        screen,
      )
  const others = problems.slice(1).map(({ seal, sentence }) => `  seal ${seal}: ${sentence}`)
  const facts: FactRows = [
    ['Head', head ?? 'none: the audit has no entry'],
    ['Not sealed yet', unsealed === 0 ? '' : count(unsealed, 'entry', 'entries')],
    ['Deleted by age', pruned === 0 ? '' : count(pruned, 'refusal', 'refusals')],
    ['Repeated', repeated === 0 ? '' : count(repeated, 'line', 'lines')],
    ['Torn', torn === 0 ? '' : count(torn, 'line', 'lines')],
    ['Withdrawn', withdrawn === 0 ? '' : `${count(withdrawn, 'entry', 'entries')} whose change was refused`],
    ['In an earlier part', earlier === 0 ? '' : count(earlier, 'entry', 'entries')],
    [
      'Covers',
      began
        ? `what was done since ${precise(new Date(began.at))}, when seal ${began.number} was made${entriesBefore === 0 ? '' : `, also to the ${count(entriesBefore, 'entry', 'entries')} from before`}`
        : '',
    ],
    ['End', isCompared ? '' : 'not compared: entries that were cut from the end show only with --head'],
    ['Audit', target],
  ]
  const rest = more === 0 ? [] : [`  and ${count(more, 'more problem', 'more problems')}`]
  return [top, ...others, ...rest, pairs(facts, screen)].join('\n')
}
