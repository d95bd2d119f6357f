/**
 * Writes docs/gates.md: what `svc health` as a gate exits with, in every combination, by the rules in tools/gates.
 *
 *     node tools/gates.ts
 */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { everyCombination, selection } from './gates/combinations.ts'
import { type Box, condense, type Dimension } from './gates/condense.ts'
import {
  type Choice,
  choices,
  type File,
  files,
  formats,
  type Requirement,
  requirements,
  type Server,
  servers,
  type Type,
  types,
} from './gates/dimensions.ts'
import {
  endsAtOnce,
  exitOf,
  fileOutcome,
  manyServers,
  nagiosCode,
  type Outcome,
  outcomeOf,
  type Place,
  placeOf,
  serverOutcome,
} from './gates/rules.ts'

const code = (text: string): string => `\`${text}\``
const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n')

/** `any`, the values that are in the list, or those that are not if they are fewer. */
function valueList(values: readonly string[], { values: all }: Dimension): string {
  if (values.length === all.length) return 'any'
  const absent = all.filter((value) => !values.includes(value))
  const [words, prefix] = absent.length * 2 < values.length ? [absent, 'any but '] : [values, '']
  return prefix + words.map((word) => (/^(?:-|SVC)/.test(word) ? code(word) : word)).join(', ')
}

const rowsOf = (boxes: readonly Box[], dimensions: readonly Dimension[]): readonly (readonly string[])[] =>
  boxes.map(({ values, outcome }) => [
    ...values.map((list, at) => valueList(list, dimensions[at] as Dimension)),
    outcome,
  ])

const flagsOf = ({ flags }: Choice): string => flags.join(' ') || 'none'
const variablesOf = ({ variables, empty }: Choice): string =>
  empty === undefined ? variables.join(' ') || 'none' : `${empty}=`
const currentOf = ({ hasCurrentProfile }: Choice): string => (hasCurrentProfile ? 'yes' : 'no')

function placeWords(place: Place): string {
  if (place.at === 'nowhere') return `**exit ${place.outcome.exit}**, ${place.outcome.reason}`
  if (place.at === 'this machine') {
    return `this machine, the svc.yaml of ${place.by.startsWith('the') ? place.by : code(place.by)}`
  }
  return `the server of ${place.by.startsWith('current') ? `the ${place.by}` : code(place.by)}`
}

function placeTable(): string {
  const dimension = (name: string, of: (choice: Choice) => string): Dimension => ({
    name,
    values: [...new Set(choices.map(of))],
  })
  const dimensions = [
    dimension('flags', flagsOf),
    dimension('variables', variablesOf),
    dimension('current profile', currentOf),
  ]
  const keyOf = (values: readonly string[]): string => values.join('|')
  const places = new Map(
    choices.map((choice) => [
      keyOf([flagsOf(choice), variablesOf(choice), currentOf(choice)]),
      placeWords(placeOf(choice)),
    ]),
  )
  const boxes = condense(dimensions, (values) => places.get(keyOf(values)) ?? '')
  return table([...dimensions.map(({ name }) => name), 'what is checked'], rowsOf(boxes, dimensions))
}

const outcomeWords = ({ exit, reason }: Outcome): string => `**${exit}** ${reason}`

/** A row for each target, and a second one if a required configuration changes an outcome. */
function outcomeTable(
  head: string,
  targets: readonly { readonly name: string; readonly at: (type: Type, requirement: Requirement) => Outcome }[],
): string {
  const rows = targets.flatMap(({ name, at }) => {
    const [usual, required] = (['nothing', '--require-config'] as const).map((requirement) =>
      types.map((type) => outcomeWords(at(type, requirement))),
    )
    if (!usual || !required) return []
    if (usual.join() === required.join()) return [[name, 'any', ...usual]]
    return [
      [name, 'no', ...usual],
      ['', 'yes', ...required],
    ]
  })
  return table([head, 'required', ...types.map((type) => (type.startsWith('-') ? code(type) : type))], rows)
}

const serverTable = (): string =>
  outcomeTable(
    'at the URL',
    servers.map((server: Server) => ({
      name: server,
      at: (type, requirement) => serverOutcome(server, type, requirement),
    })),
  )

function fileTable(): string {
  const row = (name: string, file: File, isNamed: boolean) => ({
    name,
    at: (type: Type, requirement: Requirement) => fileOutcome(file, type, requirement, isNamed),
  })
  return outcomeTable('svc.yaml', [
    ...files.map((file) =>
      row(file === 'that does not exist' ? `${file}, in the folder of the account` : file, file, false),
    ),
    row('that does not exist, of `--config` or `SVC_CONFIG`', 'that does not exist', true),
  ])
}

/** The exit code of Nagios for each exit code, and whether `--wait` ends at once. */
function formatTable(): string {
  const outcomes = [...everyCombination()].map(outcomeOf)
  const byExit = Map.groupBy(outcomes, ({ exit }) => exit)
  const rows = [...byExit]
    .toSorted(([one], [other]) => one - other)
    .map(([exit, all]) => {
      const states = [...new Set(all.map((outcome) => nagiosCode(outcome)))].toSorted()
      const labels = states.map((state) => `${state} ${['OK', 'WARNING', 'CRITICAL', 'UNKNOWN'][state]}`)
      return [
        String(exit),
        labels.join(', or ') + (exit === 0 ? ' if it warns' : ''),
        endsAtOnce.has(exit) ? 'at once' : 'when its time is over',
      ]
    })
  return table(['exit code', 'with `-o nagios`', '`--wait` ends'], rows)
}

/** The exit code of many servers, for each pair of codes that servers can have. */
function manyTable(): string {
  const codes = [
    ...new Set(servers.flatMap((server) => types.map((type) => serverOutcome(server, type, 'nothing').exit))),
    serverOutcome('svc without a configuration', '-t App', '--require-config').exit,
  ].toSorted((a, b) => a - b)
  const distinct = [...new Set(codes)]
  return table(
    ['a server, and another', ...distinct.map(String)],
    distinct.map((one) => [`**${one}**`, ...distinct.map((other) => String(manyServers([one, other])))]),
  )
}

const figure = (value: number): string => value.toLocaleString('en-US')

/** How often each reason leads to a 0. */
function greenTable(): string {
  const green = [...everyCombination()].filter((combination) => exitOf(combination) === 0)
  const kindOf = (combination: (typeof green)[number]): string => {
    const { server = '', requirement } = combination
    const required = requirement === 'nothing' ? 'no' : 'yes'
    if (outcomeOf(combination).reason === 'only itself') return `svc checked only itself, and says so|${required}`
    if (server.startsWith('ServiceStack')) return `ServiceStack answered Success|${required}`
    return `the checks of a configured svc passed|${required}`
  }
  const rows = [...Map.groupBy(green, kindOf)].map(([kind, all]) => [...kind.split('|'), figure(all.length)])
  return table(['why it is 0', 'required', 'combinations'], rows.toSorted())
}

export function gatesPage(): string {
  return `${[
    '<!-- Written by tools/gates.ts from the rules in tools/gates; changes here are lost. -->',
    '# Gates',
    `\`svc health\` is a gate where a script goes on if it exits with 0. This page has the exit code of every combination of
${requirements.length} ways to require a configuration, ${choices.length} choices of a place, ${types.length} ways to name server types, ${formats.length} formats, \`--wait\` and
${servers.length} servers or ${files.length} files, and the reason in a word. Neither the page nor its rules are taken from the program:
\`npm test\` runs the command in a fifth of ${figure(selection().length)} of these combinations, and \`npm run test:peers\` in all ${figure([...everyCombination()].length)} with at most
one flag and one variable for the place.`,
    '## Every 0',
    greenTable(),
    `Required means \`--require-config\` or \`SVC_REQUIRE_CONFIG=1\`: a gate needs it, because svc without a configuration checks
itself. A server is then asked for its configuration before the checks. A value of the variable other than 0 and 1 is exit
2 ([decision](decisions/0039-gates.md)).`,
    '## What is checked',
    'A flag overrides every variable, and a variable the current profile. Two flags, or two variables, that mean different places are a mistake, except that `SVC_SERVER` overrides `SVC_PROFILE`. A variable that is set but empty is one, too.',
    placeTable(),
    '## A server',
    'In these tables, the configured targets have the type App, and lack Ftp.',
    serverTable(),
    '## This machine',
    fileTable(),
    '## Many servers',
    'With `--server` repeated, `--profile` with `*` or `--fleet`, each row has the code that its server has in the table above. The command exits with 0 if all are 0, with 3 if any server is unhealthy, could not be reached (6) or timed out (7), else with 12 if any is not configured, else with the code that all others than 0 share, else with 10. `SVC_TOKEN`, `--watch`, `--interval`, `--until`, `--within` and `--wait` beside several servers are exit 2.',
    manyTable(),
    '## Formats and `--wait`',
    'The exit code is the same in every format but `nagios`, and with and without `--wait`.',
    formatTable(),
  ].join('\n\n')}\n`
}

if (import.meta.main) writeFileSync(fileURLToPath(new URL('../docs/gates.md', import.meta.url)), gatesPage())
