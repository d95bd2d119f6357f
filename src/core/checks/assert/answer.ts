import { showBytes, showDuration } from '../../base/format.ts'
import { createRedactor, quote, sanitize } from '../../base/net/text.ts'
import type { SettingsSpec, Threshold, Values } from '../../base/settings/index.ts'
import {
  atMost,
  checksOn,
  fail,
  type KindCost,
  type latencySetting,
  ok,
  type Result,
  runIncludes,
  warn,
} from '../engine/index.ts'
import { type Content, evaluateAssertions } from './content.ts'
import { listen, type TalkingConnection } from './conversation.ts'
import { dialogueCheck } from './dialogue.ts'
import { expectedValues } from './document.ts'
import { isPattern, patternProblem, withPatternBudget } from './expectation.ts'
import { assertionProblem } from './link-settings.ts'
import { measureFields, measuresIn } from './measure.ts'
import { holdsNonce, type Nonce, valuesWithNonce, withNonce } from './nonce.ts'
import { readXml, xmlEnd } from './xml.ts'

/** Listening ends this many milliseconds before the deadline, so that the data received until then can be reported. */
const reserveMs = 150

/** The cost of a run for the server, of a kind with these settings. */
export const answerCost = {
  unit: 'messages',
  Basic: [1, 0],
  Standard: [1, 0],
  Advanced: [1, 0],
  adds: [
    { setting: 'send', from: 'Basic', requests: 1 },
    { setting: 'sendHex', from: 'Basic', requests: 1 },
    { setting: 'dialogue', each: true, from: 'Basic', requests: 1 },
    { setting: 'protocol', from: 'Basic', requests: 2 },
  ],
} as const satisfies KindCost

/** The settings of what a monitor sends once it is connected. */
export const sendSettings = {
  send: {
    type: 'text',
    observed: true,
    doc: 'What to send once connected, e.g. "PING\\r\\n"; never a secret. {nonce} stands for 16 random characters, different for each connection',
  },
  sendHex: {
    type: 'text',
    observed: true,
    pattern: /^[0-9A-Fa-f]{2}(?: ?[0-9A-Fa-f]{2})*$/,
    doc: 'What to send instead of `send` to a server of a binary protocol: its bytes in hexadecimal, e.g. "0000 0008 04d2 162f"; never a secret',
  },
} as const satisfies SettingsSpec
type Sending = Partial<Values<typeof sendSettings>>

/** Whether a monitor sends anything. */
export const sendsAnything = ({ send, sendHex }: Sending): boolean => send !== undefined || sendHex !== undefined

/** The bytes to send, undefined where a monitor sends nothing. */
function bytesToSend({ send, sendHex, lead = '' }: AnswerSettings, nonce: Nonce): Buffer | undefined {
  if (sendHex !== undefined) return Buffer.from(sendHex.replaceAll(' ', ''), 'hex')
  const text = withNonce(send, nonce)
  return text === undefined
    ? undefined
    : Buffer.from(`${lead.replaceAll('{length}', String(Buffer.byteLength(text)))}${text}`)
}

const documentSettings = {
  xml: {
    ...expectedValues('xml'),
    doc: 'Values expected in an XML answer: a map from a path, such as /Reply/@Success, to text, /pattern/ or comparison; {nonce} is that of `send`. Anything before the first < is ignored',
  },
  measure: { type: 'groups', fields: measureFields, doc: 'Figures, dates and counts to read from an XML answer' },
} as const satisfies SettingsSpec

const check = checksOn<TalkingConnection>()

/** The settings of which one lets a run see more than that the port listens or completes a TLS handshake. */
const enough = ['send', 'sendHex', 'expect', 'xml', 'measure', 'dialogue', 'protocol'] as const

/** `latency` is the threshold of the kind. */
const answerCheck = (latency: Latency) =>
  check({
    depth: 'Basic',
    results: { answer: 'The peer sends the expected answer in time; needs `send` or `expect`' },
    settings: {
      latency,
      ...sendSettings,
      lead: {
        type: 'text',
        observed: true,
        doc: 'Prefix of `send`; {length} stands for the number of bytes of `send`, e.g. "Frame {length} "',
      },
      expect: {
        type: 'text',
        doc: 'Expected answer: a text that it contains, or /pattern/. Without it, `send` accepts any answer, and `xml` or `measure` require a whole document. {nonce} is that of `send`',
      },
      ...documentSettings,
      maxAnswer: { type: 'bytes', default: 4096, doc: 'Maximum size of the answer; svc reads no more' },
    },
    when: ['send', 'sendHex', 'expect', 'xml', 'measure'],
    applies: (_, { expect, xml, measure = [], ...sending }) =>
      sendsAnything(sending) || expect !== undefined || xml !== undefined || measure.length > 0,
    async observe(connection, settings, { now, msLeft }) {
      const { address, socket, nonce } = connection
      const { maxAnswer, xml, measure = [] } = settings
      const [sent, expect] = [bytesToSend(settings, nonce), withNonce(settings.expect, nonce)]
      const isDocument = xml !== undefined || measure.length > 0
      const since = now()
      if (sent !== undefined) connection.demandTrust?.()
      if (sent !== undefined) socket.write(sent)
      const expected = expect ?? (isDocument ? xmlEnd() : undefined)
      const received = await listen(socket, expected, maxAnswer, Math.max(msLeft() - reserveMs, msLeft() / 2))
      const text = withNonce(settings.send, nonce)
      const redact = createRedactor(text === undefined ? [] : [sanitize(text, 4096)], '[what was sent]')
      connection.answer = { address, ms: now() - since, redact, isDocument, nonce, ...received }
      return connection.answer
    },
    evaluate: (answer, settings) => {
      const { address, bytes, ended, ms, problem, redact, isDocument, nonce } = answer
      const { latency: threshold, maxAnswer } = settings
      const text = bytes.length === 0 ? 'nothing' : quote(redact(bytes))
      if (ended === 'met') {
        // A document is judged by its content.
        const what = `${address} ${isDocument ? `answered ${showBytes(bytes.length)}` : `sent ${text}`} in`
        return atMost({ check: 'answer', what, value: ms, unit: 'duration', threshold })
      }
      const expect = withNonce(settings.expect, nonce)
      const anything = isDocument ? 'a whole XML document' : 'an answer'
      const expected = expect === undefined ? anything : quote(expect, 80)
      const took = ms < 1_000 ? `${Math.round(ms)} ms` : `${Number((ms / 1_000).toFixed(1))} s`
      if (ended === 'closed')
        return fail('answer', 'protocol', `${address} sent ${text} and closed the connection, expected ${expected}`)
      if (ended === 'unjudged') return fail('answer', 'data', `the answer of ${address} ${problem ?? ''}`)
      if (ended === 'full')
        return fail('answer', 'protocol', `${address} sent ${showBytes(maxAnswer)} without ${expected}: ${text}`)
      const half = bytes.length === 0 ? 'accepted the connection but sent nothing' : `sent ${text} and nothing more`
      return fail('answer', 'timeout', `${address} ${half} for ${took}, expected ${expected}`)
    },
  })

/** Milliseconds. A proxy without a server behind it, or an access list, closes a connection much sooner. */
const openMs = 250

/** Waits until the peer closes the connection or sends something, at most `openMs`. */
function observeOpen({ address, socket }: TalkingConnection, now: () => number): Promise<OpenState> {
  const since = now()
  return new Promise((resolve) => {
    const settle =
      (isOpen: boolean) =>
      (data?: unknown): void => {
        clearTimeout(timer)
        for (const [event, listener] of listeners) socket.off(event, listener)
        socket.pause()
        const greeting = Buffer.isBuffer(data) ? data : undefined
        resolve({ address, isOpen, ms: now() - since, greeting })
      }
    const [open, closed] = [settle(true), settle(false)]
    const listeners = [
      ['data', open],
      ['end', closed],
      ['close', closed],
      ['error', closed],
    ] as const
    const timer = setTimeout(() => open(), openMs)
    for (const [event, listener] of listeners) socket.on(event, listener)
    if (socket.destroyed) closed()
  })
}
type OpenState = {
  readonly address: string
  readonly isOpen: boolean
  readonly ms: number
  /** The first bytes of a server that speaks first. */
  readonly greeting: Buffer | undefined
}

/** The setting that lets a run see more than the port. */
function toSeeMore(greeting: Buffer | undefined): string {
  const more = 'use the kind of its server, or send and expect'
  if (greeting === undefined) return `next: ${more}`
  const [word] = /^[!-~]{3,}?(?=[ -]|$)/.exec(greeting.toString('latin1').split(/\r?\n/, 1)[0] ?? '') ?? []
  return word === undefined
    ? `next: it speaks first, but no text; ${more}`
    : `next: expect: ${quote(sanitize(word, 24))}`
}

/** All that a run sees without one of these settings: at a frozen server it sees the same. */
export const seesOnly = {
  TCP: { what: 'only the port is tested, which a frozen server keeps open', without: enough },
  TLS: { what: 'only TLS is tested, which a proxy completes before a frozen server', without: enough },
} as const

const openResult = {
  TCP: { depth: 'Standard', doc: 'The peer does not close the connection at once; without `send` and `expect`' },
  TLS: { depth: 'Advanced', doc: 'States that nothing is tested beyond TLS; without `send` and `expect`' },
} as const

const openCheck = (over: keyof typeof seesOnly) =>
  check({
    depth: openResult[over].depth,
    results: { open: openResult[over].doc },
    applies: ({ answer, hasTalked }) => answer === undefined && hasTalked === undefined,
    observe: async (connection, _, context) => ({
      ...(await observeOpen(connection, context.now)),
      isDeep: runIncludes(context, 'Advanced'),
    }),
    evaluate: ({ address, isOpen, ms, greeting, isDeep }) => {
      // A server may end a connection within TLS because it demands a certificate of the client.
      if (!isOpen && over === 'TCP') {
        return warn(
          'open',
          `${address} accepted the connection and closed it after ${showDuration(ms)} without sending anything`,
          { details: ['often a proxy without a server behind it, an access list, or a limit of connections'] },
        )
      }
      const what = `${address} ${isOpen ? 'keeps' : 'closed'} the connection${isOpen ? ' open' : ''}`
      return isDeep
        ? ok('open', `${what}; ${seesOnly[over].what}`, { details: [toSeeMore(greeting)] })
        : ok('open', what)
    },
  })

const document = check({
  depth: 'Basic',
  results: {
    xml: { doc: 'The XML values of the answer are as expected', when: ['xml'] },
    measure: {
      doc: 'The figures, dates and counts of the answer are within their thresholds',
      when: ['measure'],
      items: measuresIn,
    },
  },
  settings: documentSettings,
  applies: ({ answer }) => answer?.isDocument === true && answer.ended === 'met',
  async observe(
    { address, nonce, answer },
    _,
    { date },
  ): Promise<{ readonly content: Content; readonly nonce: Nonce }> {
    const { bytes, redact } = answer ?? { bytes: Buffer.alloc(0), redact: createRedactor([]) }
    const begin = bytes.indexOf('<')
    const body = begin < 0 ? bytes : bytes.subarray(begin)
    return { content: { address, headers: {}, body, more: false, redact, at: date(), xml: await readXml(body) }, nonce }
  },
  evaluate: ({ content, nonce }, { xml, measure }) => {
    const results = withPatternBudget(() =>
      evaluateAssertions(content, { xml: valuesWithNonce(xml, nonce), measure }, true),
    )
    // JSON results occur only if the assertions contain JSON paths.
    return [results].flat() as Result<'xml' | 'measure'>[]
  },
})

/**
 * The checks of a conversation with a server over TCP, or within TLS: the answer to what is sent, and without anything to
 * expect, that only the connection is tested.
 */
export const answerChecks = (latency: Latency, over: keyof typeof seesOnly) =>
  [answerCheck(latency), dialogueCheck(latency), document, openCheck(over)] as const

type Latency = ReturnType<typeof latencySetting<Threshold>>

type AnswerSettings = Partial<Values<ReturnType<typeof answerCheck>['settings']>>

/** Why settings of `answerChecks` cannot be combined. */
export function answerProblem({ lead, send, sendHex, expect, xml, measure }: AnswerSettings): string | undefined {
  if (send !== undefined && sendHex !== undefined) return 'send and sendHex exclude each other: remove one of them'
  if (lead !== undefined && send === undefined) return 'lead requires send'
  if (holdsNonce(expect, xml) && !holdsNonce(send)) {
    return 'expects {nonce}, which send does not contain: add it there'
  }
  const problem = expect !== undefined && isPattern(expect) ? patternProblem(expect) : undefined
  if (problem !== undefined) return `expect: ${problem}`
  const invalid = measure?.find(({ path }) => path.includes('$'))
  if (invalid) return `measure ${quote(invalid.name, 64)}: the answer is read as XML, so write its path like /Reply/Job`
  return assertionProblem({ xml, measure }, 'this monitor', [])
}
