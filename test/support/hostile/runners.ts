/**
 * CI runners, each with the rule by which it finds commands in the log of a job, and the variables by which a job knows it. The
 * rules are those of the sources of actions/runner (ActionCommand), of microsoft/azure-pipelines-agent (Command), of TeamCity's
 * service messages and of GitLab's job log. Where a rule depends on a list of known commands, every name counts as known.
 */
type Runner = {
  readonly env: Readonly<Record<string, string>>
  /** The commands in what a job prints. */
  readonly commandsIn: (output: string) => readonly string[]
}

/** .NET and Java end a line at each of these. */
const linesOf = (output: string): readonly string[] => output.split(/\r\n|[\r\n]/)

/** The text from each occurrence of a prefix to the next `]` of its line. */
const bracketed = (prefix: string) => (output: string) =>
  linesOf(output).flatMap((line) =>
    line
      .split(prefix)
      .slice(1)
      .filter((rest) => rest.includes(']'))
      .map((rest) => prefix + rest.slice(0, rest.indexOf(']') + 1)),
  )

/** `::name parameters::data` at the beginning of a line, after blanks. A name that nobody knows may end `::stop-commands::`. */
function workflowCommands(output: string): readonly string[] {
  return linesOf(output).flatMap((line) => {
    const text = line.replace(/^[\s\x85]+/, '')
    const end = text.indexOf('::', 2)
    const [name = ''] = text.slice(2, Math.max(2, end)).split(' ')
    return text.startsWith('::') && end !== -1 && name !== '' ? [text] : []
  })
}

/** A section needs the control sequence that clears its line. */
const sections = /section_(?:start|end):\d+:[\w.-]+(?:\[[^\]]*\])?\r\x1b\[0K/g

export const runners: Readonly<Record<string, Runner>> = {
  'GitHub Actions': {
    env: { CI: 'true', GITHUB_ACTIONS: 'true' },
    commandsIn: (output) => [...workflowCommands(output), ...bracketed('##[')(output)],
  },
  'Azure Pipelines': {
    env: { TF_BUILD: 'True' },
    commandsIn: (output) => [...bracketed('##vso[')(output), ...bracketed('##[')(output)],
  },
  TeamCity: { env: { TEAMCITY_VERSION: '2026.1' }, commandsIn: bracketed('##teamcity[') },
  GitLab: { env: { CI: 'true', GITLAB_CI: 'true' }, commandsIn: (output) => output.match(sections) ?? [] },
}

/** The commands of every runner in an output, as it is and without colours, which other programs remove. */
export const commandsIn = (output: string): readonly string[] =>
  [output, output.replace(/\x1b\[[\d;]*m/g, '')].flatMap((text) =>
    Object.entries(runners).flatMap(([name, runner]) => runner.commandsIn(text).map((each) => `${name}: ${each}`)),
  )

/** The answer of the reproduction of the case: a command of each runner that only writes to the log. */
export const harmless = "A ##vso[task.debug]hello ##teamcity[message text='hello'] ##[debug]hello ::debug::hello"

/** Commands and parts of commands, blanks, and what is removed or wraps. */
export const commandParts: readonly string[] = [
  '##vso[task.debug]hello',
  "##teamcity[message text='hello']",
  '##[debug]hello',
  '::debug::hello',
  '::stop-commands::token',
  '::token::',
  '::add::',
  'section_start:1:a\r\x1b[0K',
  'section_end:1:a[collapsed=true]\r\x1b[0K',
  '#',
  '##',
  '#[',
  'vso[',
  ']',
  ':',
  '::',
  ':::',
  '::1',
  '\\',
  '"',
  '&',
  '<',
  '\u00ad',
  '\u200b',
  '\x1b[1m',
  '\n',
  ' ',
  '  ',
  'word',
  'a longer sentence of words',
]
