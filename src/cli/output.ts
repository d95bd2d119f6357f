import { Fault } from '../core/errors.ts'
import type { ReportName } from '../core/reports/index.ts'
import { oneOf } from './flags.ts'

export const outputs = [
  'table',
  'json',
  'csv',
  'tsv',
  'ndjson',
  'junit',
  'github',
  'nagios',
  'prtg',
  'prometheus',
] as const
export type Output = (typeof outputs)[number]

/** `--output`, or `--json` for short; the two must not contradict each other. */
export function chooseOutput(flags: { readonly output?: Output | undefined; readonly json: boolean }): Output {
  if (!flags.json) return flags.output ?? 'table'
  if (flags.output === undefined || flags.output === 'json') return 'json'
  throw new Fault('Usage', `--json and --output ${flags.output} contradict each other`, {
    hints: ['Leave one of them out.'],
  })
}

export const parseOutput = (input: string): Output => oneOf('output', outputs, input, 'Formats')

export const isReport = (output: Output): output is Output & ReportName => output !== 'table' && output !== 'json'
