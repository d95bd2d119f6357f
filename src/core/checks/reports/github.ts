import { withoutHashes } from '../../base/sanitize.ts'
import { read } from './read.ts'
import {
  describeResult,
  detailsWithFault,
  type EntryReading,
  isBad,
  isConsequence,
  type Reading,
  type Report,
  results,
} from './reading.ts'

type Command = 'error' | 'warning' | 'notice'

/** The older command syntax, and that of other runners, works anywhere in a line, so text must not contain it. */
const escapeData = (text: string): string =>
  withoutHashes(text).replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
const escapeProperty = (text: string): string => escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C')

const annotation = (command: Command, title: string, message: string): string =>
  `::${command} title=${escapeProperty(title)}::${escapeData(message)}\n`

/**
 * Workflow commands of GitHub Actions. Every line is a complete command with escaped text, so no message can start a
 * command of its own. The verdict on each type has the command of its state: a step that fails without an error
 * annotation looks like a defect of the step. A step shows ten annotations of each kind: the verdicts come first, then
 * root causes, and checks that did not run because of them are notices. What was not checked is a warning.
 */
export default {
  name: 'github',
  contentType: 'text/plain; charset=utf-8',
  render: (entries) => {
    const readings = entries.map(read)
    const all = [...readings.map(verdict), ...readings.flatMap(annotations)]
    return [...pick(all, 'error'), ...pick(all, 'warning'), ...pick(all, 'notice')].join('')
  },
} satisfies Report

type Annotation = { readonly command: Command; readonly line: string }

const pick = (all: readonly Annotation[], command: Command): readonly string[] =>
  all.filter((item) => item.command === command).map((item) => item.line)

const make = ({ type, server }: EntryReading, command: Command, title: string, message: string): Annotation => ({
  command,
  line: annotation(command, [server, type, title].filter(Boolean).join(' '), message),
})

/** One annotation for each answer, with the causes that no other annotation shows as an error. */
function verdict(reading: EntryReading): Annotation {
  const { headline, mode, target, error, level } = reading
  const where = `${headline} (${[mode, target].filter(Boolean).join(', ')})`
  if (error) return make(reading, 'error', 'not checked', [`${where}: ${error.message}`, ...error.hints].join('\n'))
  const isExplained = !isBad(level) || annotations(reading).some(({ command }) => command === 'error')
  // With --fail-on warn, warnings fail the step.
  const fails = isBad(level) || reading.exitCode !== 0
  const command = fails ? 'error' : level === 'warn' ? 'warning' : 'notice'
  return make(reading, command, 'health', [where, ...(isExplained ? [] : reading.causes)].join('\n'))
}

const annotations = (reading: EntryReading): readonly Annotation[] =>
  results(reading)
    .filter((result) => result.level !== 'ok')
    .map((result) =>
      make(reading, commandOf(result), [result.monitor, result.check].filter(Boolean).join(' '), long(result)),
    )

const commandOf = (result: Reading): Command =>
  isConsequence(result) || result.isLoad ? 'notice' : result.level === 'fail' ? 'error' : 'warning'

const long = (result: Reading): string => [describeResult(result), ...detailsWithFault(result)].join('\n')
