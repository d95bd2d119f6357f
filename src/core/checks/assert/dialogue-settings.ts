import { quote } from '../../base/net/text.ts'
import type { SettingsSpec, Values } from '../../base/settings/index.ts'
import { isPattern, patternProblem } from './expectation.ts'

/** The names of the dialogues in talk.ts. */
const protocols = ['imap', 'pop3', 'amqp', 'mqtt', 'nats', 'memcached', 'beanstalkd', 'zookeeper', 'kafka'] as const
export type ReadyProtocol = (typeof protocols)[number]

/** The protocols that get to TLS by a command of their own. */
export const startTlsProtocols = ['smtp', 'imap', 'pop3', 'ftp', 'ldap', 'xmpp', 'postgres', 'mysql'] as const
export type StartTlsProtocol = (typeof startTlsProtocols)[number]

const stepFields = {
  send: {
    type: 'text',
    observed: true,
    doc: `What to send, e.g. "USER monitor\\r\\n". \${name} stands for a value or for what an earlier step captured, {nonce} for 16 random characters`,
  },
  expect: {
    type: 'text',
    doc: 'The line to wait for after that: a text that it contains, or /pattern/. Lines before it are skipped',
  },
  capture: {
    type: 'texts',
    doc: `Names for the groups of the pattern, for \${name} in later steps. Messages do not show the values`,
  },
  starttls: { type: 'flag', default: false, doc: 'Begin TLS at the end of this step (kind tcp without tls)' },
} as const satisfies SettingsSpec

export const dialogueSettings = {
  dialogue: {
    type: 'groups',
    fields: stepFields,
    doc: 'Steps in place of `send` and `expect`, in this order. The first that fails ends the dialogue',
  },
  protocol: {
    type: 'choice',
    observed: true,
    values: protocols,
    doc: 'A ready dialogue, which shows that a server of this protocol serves. It needs no account',
  },
  values: {
    type: 'map',
    secrets: true,
    doc: `Secrets for \${name} in \`dialogue\`. svc sends them only within TLS or to loopback`,
  },
} as const satisfies SettingsSpec
export type DialogueSettings = Partial<Values<typeof dialogueSettings>>
export type DialogueStep = Values<typeof stepFields>

const maxSteps = 32
const valueName = /^[A-Za-z]\w*$/
export const placeholder = /\$\{([A-Za-z]\w*)\}/g

/** Why the settings of a dialogue cannot be combined, or undefined. `isTls`: the connection begins with TLS. */
export function dialogueProblem(
  settings: DialogueSettings & Readonly<Record<string, unknown>>,
  isTls: boolean,
): string | undefined {
  const { dialogue, protocol, values = {} } = settings
  const own = ['dialogue', 'protocol'].find((one) => settings[one] !== undefined)
  if (own === undefined) return Object.keys(values).length === 0 ? undefined : 'values needs dialogue'
  const other = ['send', 'sendHex', 'expect', 'lead', 'xml', 'measure'].find((one) => settings[one] !== undefined)
  if (other !== undefined) return `${own} takes the place of ${other}: remove one of them`
  if (dialogue === undefined) return Object.keys(values).length === 0 ? undefined : 'values needs dialogue'
  if (protocol !== undefined) return 'dialogue and protocol exclude each other: remove one of them'
  if (dialogue.length === 0 || dialogue.length > maxSteps) return `dialogue needs 1 to ${maxSteps} steps`
  const names = new Set(Object.keys(values))
  let isSecure = isTls
  for (const [index, step] of dialogue.entries()) {
    const problem =
      stepProblem(step, names) ?? (step.starttls && isSecure ? 'begins TLS, which has begun before' : undefined)
    if (problem !== undefined) return `dialogue: step ${index + 1} ${problem}`
    for (const one of step.capture ?? []) names.add(one)
    isSecure ||= step.starttls
  }
  const invalid = [...names].find((one) => !valueName.test(one))
  return invalid === undefined ? undefined : `dialogue: ${quote(invalid, 40)} is not a name: use letters, digits and _`
}

function stepProblem({ send, expect, capture = [], starttls }: DialogueStep, names: ReadonlySet<string>) {
  if (send === undefined && expect === undefined && !starttls) return 'has neither send, expect nor starttls'
  const unknown = [...(send ?? '').matchAll(placeholder)].find(([, one = '']) => !names.has(one))
  if (unknown) return `sends ${unknown[0]}, which is neither in values nor captured before`
  if (expect !== undefined && /[\r\n]./.test(expect)) return 'expects several lines: write a step for each'
  const isRegExp = expect !== undefined && isPattern(expect)
  const problem = isRegExp ? patternProblem(expect) : undefined
  if (problem !== undefined) return `expects ${problem}`
  const groups = isRegExp ? groupsIn(expect) : 0
  if (capture.length === 0 || capture.length === groups) return undefined
  return `captures ${capture.length}, but expect has ${groups} groups: write it like /^PING :(\\S+)/`
}

/** How many groups a valid pattern has. */
const groupsIn = (pattern: string): number =>
  (new RegExp(`${pattern.slice(1, pattern.lastIndexOf('/'))}|`).exec('')?.length ?? 1) - 1

/** Where a dialogue ended. */
export type DialogueEnding = {
  readonly ended: 'met' | 'closed' | 'silent' | 'full' | 'refused' | 'unjudged'
  /** The number of the last step that was reached. */
  readonly step: number
  readonly steps: number
  /** Continues the address. Empty for `met`. */
  readonly message: string
}

/** The class of each ending but `met`. */
export const faultOf = {
  closed: 'protocol',
  silent: 'timeout',
  full: 'protocol',
  refused: 'protocol',
  unjudged: 'data',
} as const
