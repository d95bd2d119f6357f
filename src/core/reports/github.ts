import { read } from './read.ts'
import {
  describeResult,
  type EntryReading,
  isBad,
  isConsequence,
  type Reading,
  type Report,
  results,
  shownFault,
} from './reading.ts'

type Command = 'error' | 'warning' | 'notice'

/** The older command syntax works anywhere in a line, so text must not contain it. */
const defused = (text: string): string => text.replaceAll('##[', '# #[')
const escapeData = (text: string): string =>
  defused(text).replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
const escapeProperty = (text: string): string => escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C')

const annotation = (command: Command, title: string, message: string): string =>
  `::${command} title=${escapeProperty(title)}::${escapeData(message)}\n`

/**
 * Workflow commands of GitHub Actions. Every line is a complete command with escaped text, so no message can start a
 * command of its own. A step shows ten annotations of each kind: root causes come first, and checks that did not run
 * because of them are notices. What was not checked is a warning.
 */
export default {
  name: 'github',
  contentType: 'text/plain; charset=utf-8',
  render: (entries) => {
    const all = entries.map(read).flatMap(annotations)
    return [...pick(all, 'error'), ...pick(all, 'warning'), ...pick(all, 'notice')].join('')
  },
} satisfies Report

type Annotation = { readonly command: Command; readonly line: string }

const pick = (all: readonly Annotation[], command: Command): readonly string[] =>
  all.filter((item) => item.command === command).map((item) => item.line)

function annotations(reading: EntryReading): readonly Annotation[] {
  const make = (command: Command, title: string, message: string): Annotation => ({
    command,
    line: annotation(command, `${reading.type} ${title}`.trim(), message),
  })
  const where = `${reading.headline} (${reading.mode}, ${reading.target})`
  if (reading.error) {
    return [make('error', 'not checked', [`${where}: ${reading.error.message}`, ...reading.error.hints].join('\n'))]
  }
  const all = results(reading)
    .filter((result) => result.level !== 'ok')
    .map((result) => make(commandOf(result), [result.monitor, result.check].filter(Boolean).join(' '), long(result)))
  // An unhealthy answer always leaves at least one error annotation.
  const marked = !isBad(reading.level) || all.some((item) => item.command === 'error')
  return [...all, make(marked ? 'notice' : 'error', 'health', marked ? where : [where, ...reading.causes].join('\n'))]
}

const commandOf = (result: Reading): Command =>
  isConsequence(result) ? 'notice' : result.level === 'fail' ? 'error' : 'warning'

function long(result: Reading): string {
  const fault = shownFault(result)
  return [`${describeResult(result)}${fault ? ` (${fault})` : ''}`, ...result.details].join('\n')
}
