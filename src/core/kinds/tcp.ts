import { type Content, evaluateAssertions } from '../assert/content.ts'
import { type Heard, listen } from '../assert/conversation.ts'
import { asOneAnswer, isPattern, patternProblem } from '../assert/expectation.ts'
import { assertionProblem } from '../assert/link-settings.ts'
import { measureFields } from '../assert/measure.ts'
import { holdsNonce, newNonce, valuesWithNonce, withNonce } from '../assert/nonce.ts'
import { loadXmlParser, readXml, xmlEnd } from '../assert/xml.ts'
import {
  addressChoices,
  atMost,
  eachAddress,
  evaluateUnreached,
  fail,
  monitorKind,
  type Result,
  type Unreached,
} from '../engine/index.ts'
import { showBytes } from '../format.ts'
import { connectTcp } from '../net/connect.ts'
import { type Hide, hiding, quoted, said } from '../net/text.ts'
import type { Threshold } from '../settings/index.ts'

type Answer = {
  readonly see: 'answer'
  readonly address: string
  readonly ms: number
  readonly hide: Hide
  readonly whole?: boolean
  readonly nonce: string
} & Heard
type Document = { readonly see: 'document'; readonly content: Content; readonly nonce: string }
type Seen = { readonly see: 'connect'; readonly address: string; readonly ms: number } | Answer | Document | Unreached

/** Listening ends this long before the deadline, so that what was heard until then can be told. */
const reserveMs = 150

/** Connects, says and hears what it is told to, and hangs up. Retries nothing. */
export default monitorKind({
  name: 'tcp',
  title: 'A TCP port accepts connections and answers',
  preload: loadXmlParser,
  settings: {
    host: { type: 'text', required: true, doc: 'Host name or address' },
    port: { type: 'integer', required: true, min: 1, max: 65_535, doc: 'TCP port' },
    latency: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 1_000, limit: 3_000 },
      doc: 'How long a connection may take, and then the answer',
    },
    send: {
      type: 'text',
      doc: 'What to say once connected, e.g. "PING\\r\\n"; never a secret. {nonce} in it stands for 16 random characters, others for each connection',
    },
    lead: {
      type: 'text',
      doc: 'What goes before `send`; {length} in it stands for the number of bytes of `send`, e.g. "Frame {length} "',
    },
    expect: {
      type: 'text',
      doc: 'What the peer must say: a text that its answer contains, or /pattern/. With `send` alone, anything; with `xml` or `measure`, a whole document. {nonce} is that of `send`',
    },
    xml: {
      type: 'map',
      doc: 'Values expected in an XML answer: path such as /Reply/@Success to text, /pattern/ or comparison, in which {nonce} is that of `send`. What stands before its first < is left out',
    },
    measure: { type: 'groups', fields: measureFields, doc: 'Figures, dates and counts of an XML answer' },
    maxAnswer: { type: 'bytes', default: 4096, doc: 'How much of the answer is read' },
    addresses: {
      type: 'choice',
      values: addressChoices,
      doc: 'Which addresses of the name: `first`, `all` (each by itself) or `any` (in order, until one accepts). Without it: `first`, and `all` in Advanced',
    },
  },
  checks: [
    { name: 'connect', depth: 'Basic', doc: 'The port accepts a connection, in time' },
    {
      name: 'answer',
      depth: 'Basic',
      doc: 'With `send` or `expect`: the peer says what it should, in time',
      when: ['send', 'expect', 'xml', 'measure'],
    },
    { name: 'xml', depth: 'Basic', doc: 'XML values of the answer are as expected', when: ['xml'] },
    {
      name: 'measure',
      depth: 'Basic',
      doc: 'Figures, dates and counts in the answer are within their thresholds',
      when: ['measure'],
    },
    { name: 'addresses', depth: 'Advanced', doc: 'Told when a name has more addresses than are probed' },
  ],
  target: ({ host, port }) => ({ host, port }),
  validate: (settings) => {
    if (settings.lead !== undefined && settings.send === undefined) return 'lead needs send'
    if (holdsNonce(settings.expect, settings.xml) && !holdsNonce(settings.send)) {
      return 'expects {nonce}, which send does not say: put it there too'
    }
    const lost =
      settings.expect !== undefined && isPattern(settings.expect) ? patternProblem(settings.expect) : undefined
    if (lost !== undefined) return `expect: ${lost}`
    const wrong = settings.measure?.find(({ path }) => path.includes('$'))
    if (wrong) return `measure ${quoted(wrong.name, 64)}: the answer is read as XML, write its path like /Reply/Job`
    return assertionProblem({ xml: settings.xml, measure: settings.measure }, 'this monitor', [])
  },
  async *observe(settings, context): AsyncGenerator<Seen> {
    const { host, port, lead = '', maxAnswer, xml, measure } = settings
    const reads = xml !== undefined || (measure ?? []).length > 0
    const which = settings.addresses ?? (context.mode === 'Advanced' ? 'all' : 'first')
    yield* eachAddress<Seen>(context, { host, port, which, check: 'connect' }, async function* (target) {
      const start = context.now()
      const nonce = newNonce()
      const [send, expect] = [withNonce(settings.send, nonce), withNonce(settings.expect, nonce)]
      const socket = await connectTcp(target.ip, port, target.signal)
      try {
        yield { see: 'connect', address: target.address, ms: context.now() - start }
        if (send === undefined && expect === undefined && !reads) return
        target.step('answer')
        const asked = context.now()
        if (send !== undefined) socket.write(`${lead.replaceAll('{length}', String(Buffer.byteLength(send)))}${send}`)
        const wanted = expect ?? (reads ? xmlEnd() : undefined)
        const heard = await listen(
          socket,
          wanted,
          maxAnswer,
          Math.max(context.msLeft() - reserveMs, context.msLeft() / 2),
        )
        const hide = hiding(send === undefined ? [] : [said(send, 4096)], '[what was sent]')
        const { address } = target
        yield { see: 'answer', address, ms: context.now() - asked, hide, whole: reads, nonce, ...heard }
        if (!reads || heard.ended !== 'met') return
        const begin = heard.bytes.indexOf('<')
        const body = begin < 0 ? heard.bytes : heard.bytes.subarray(begin)
        const content = { address, headers: {}, body, more: false, hide, at: context.date(), xml: await readXml(body) }
        yield { see: 'document', content, nonce }
      } finally {
        socket.destroy()
      }
    })
  },
  evaluate: (seen, settings) => {
    if (seen.see === 'unreached') return evaluateUnreached(seen)
    if (seen.see === 'answer') return evaluateAnswer(seen, settings)
    if (seen.see === 'document') {
      const xml = valuesWithNonce(settings.xml, seen.nonce)
      return asOneAnswer(() => evaluateAssertions(seen.content, { xml, measure: settings.measure }, true))
    }
    return atMost({
      check: 'connect',
      what: `${seen.address} accepted in`,
      value: seen.ms,
      unit: 'duration',
      threshold: settings.latency,
      address: seen.address,
    })
  },
})

type Wanted = { readonly expect?: string | undefined; readonly latency: Threshold; readonly maxAnswer: number }

function evaluateAnswer(seen: Answer, { expect: given, latency, maxAnswer }: Wanted): Result {
  const { address, bytes, ended, ms, problem } = seen
  const expect = withNonce(given, seen.nonce)
  const told = bytes.length === 0 ? 'nothing' : quoted(seen.hide(bytes))
  if (ended === 'met') {
    return atMost({
      check: 'answer',
      // What is read as a document is judged by what stands in it.
      what: `${address} ${seen.whole ? `answered ${showBytes(bytes.length)}` : `said ${told}`} in`,
      value: ms,
      unit: 'duration',
      threshold: latency,
      address,
    })
  }
  const whole = seen.whole ? 'a whole XML document' : 'an answer'
  const wanted = expect === undefined ? whole : quoted(expect, 80)
  const took = ms < 1_000 ? `${Math.round(ms)} ms` : `${Number((ms / 1_000).toFixed(1))} s`
  if (ended === 'closed')
    return fail('answer', 'protocol', `${address} said ${told} and hung up, expected ${wanted}`, { address })
  if (ended === 'unjudged') return fail('answer', 'data', `what ${address} said ${problem ?? ''}`, { address })
  if (ended === 'full') {
    return fail('answer', 'protocol', `${address} said ${showBytes(maxAnswer)} without ${wanted}: ${told}`, { address })
  }
  const half = bytes.length === 0 ? 'accepted the connection and then said nothing' : `said ${told} and no more`
  return fail('answer', 'timeout', `${address} ${half} for ${took}, expected ${wanted}`, { address })
}
