import { describe, expect, test } from 'vitest'
import { CookieJar } from '../../../src/core/base/net/http/cookies.ts'
import { createRedactor, noRedaction, sanitize } from '../../../src/core/base/net/text.ts'
import { ProbeError } from '../../../src/core/base/probe-error.ts'
import { answerOf, type Content, evaluateHealth } from '../../../src/core/checks/assert/content.ts'
import { select } from '../../../src/core/checks/assert/document.ts'
import { readXml, xmlEnd } from '../../../src/core/checks/assert/xml.ts'
import { classify } from '../../../src/core/checks/engine/classify.ts'
import { canonical, recordTexts } from '../../../src/core/checks/kinds/dns.ts'
import { readFigures, splitOutput } from '../../../src/core/checks/kinds/exec/index.ts'
import { ReplyReader as FtpReplies } from '../../../src/core/checks/kinds/ftp/control.ts'
import { filesIn, linesOf } from '../../../src/core/checks/kinds/ftp/list.ts'
import { subCode } from '../../../src/core/checks/kinds/ldap/codes.ts'
import { LdapFrames, resultOf } from '../../../src/core/checks/kinds/ldap/message.ts'
import { read as readJson } from '../../../src/core/checks/kinds/oidc/provider.ts'
import { readToken } from '../../../src/core/checks/kinds/oidc/token-checks.ts'
import { RespReader } from '../../../src/core/checks/kinds/redis/resp.ts'
import { parseLaunchd, parseSystemd, parseWindows } from '../../../src/core/checks/kinds/service.ts'
import { SmtpReplyReader } from '../../../src/core/checks/kinds/smtp/connection.ts'
import { sanitizeServerText } from '../../../src/core/client/failure.ts'
import { describeHostile, excessiveGrowth, type Hostile, ofSize, sizesUpTo } from '../../support/hostile/growth.ts'
import { hostileUnits } from '../../support/hostile/texts.ts'

const at = new Date(0)
const contentOf = async (text: string, xml: boolean): Promise<Content> => {
  const body = Buffer.from(text)
  const read = xml ? await readXml(body) : undefined
  return { address: 'peer:1', headers: {}, body, more: false, redact: noRedaction, at, xml: read }
}

/** The text as a peer may send it: in pieces of so many bytes. */
const inPieces = (text: string, size: number, take: (piece: Buffer) => void): void => {
  const bytes = Buffer.from(text)
  for (let from = 0; from < bytes.length; from += size) take(bytes.subarray(from, from + size))
}

/** An answer of LDAP in which a server says something. */
function ldapAnswer(text: string): Buffer {
  const element = (tag: number, content: Buffer): Buffer => {
    const head = Buffer.from([tag, 0x84, 0, 0, 0, 0])
    head.writeUInt32BE(content.length, 2)
    return Buffer.concat([head, content])
  }
  const result = [element(0x0a, Buffer.from([49])), element(4, Buffer.alloc(0)), element(4, Buffer.from(text))]
  return element(0x30, Buffer.concat([element(2, Buffer.from([1])), element(0x61, Buffer.concat(result))]))
}

type Reader = {
  readonly read: (text: string) => unknown
  /** Characters of the longest text that gets there, or that is worth the time. */
  readonly upTo: number
  readonly texts?: readonly Hostile[]
}

const bare: readonly Hostile[] = hostileUnits.map((unit) => ({ lead: '', unit, end: '' }))

const inXml: readonly Hostile[] = [
  ...bare,
  ...hostileUnits.map((unit) => ({ lead: '<a>', unit, end: '</a>' })),
  ...hostileUnits.map((unit) => ({ lead: '<a b="', unit, end: '"/>' })),
  { lead: '<a ', unit: 'b="c" ', end: '/>' },
  { lead: '<a ', unit: 'b ', end: '/>' },
  { lead: '<a ', unit: "b='", end: '/>' },
  { lead: '<a>', unit: '<b/>', end: '</a>' },
  { lead: '<a>', unit: '<b>c</b>', end: '</a>' },
  { lead: '<a>', unit: '<b>', end: '</a>' },
  { lead: '<a>', unit: '</b>', end: '' },
  { lead: '<a>', unit: '<!-- -->', end: '</a>' },
  { lead: '<a>', unit: '<!--', end: '</a>' },
  { lead: '<a>', unit: '<![CDATA[', end: '</a>' },
  { lead: '<a>', unit: '<![CDATA[x]]>', end: '</a>' },
  { lead: '<a>', unit: '<?b ?>', end: '</a>' },
  { lead: '<a>', unit: '<?b', end: '</a>' },
  { lead: '<a>', unit: '&amp;', end: '</a>' },
  { lead: '<a>', unit: '&#x26;', end: '</a>' },
  { lead: '<a>', unit: '<!DOCTYPE ', end: '</a>' },
  { lead: '<VAST version="4.0">', unit: '<Ad id="1"><InLine><Error>e</Error></InLine></Ad>', end: '</VAST>' },
]

const inJson: readonly Hostile[] = [
  ...bare,
  ...hostileUnits.map((unit) => ({
    lead: '{"Status":"Failure","StatusMessage":"',
    unit: JSON.stringify(unit).slice(1, -1),
    end: '"}',
  })),
  { lead: '{"a":[', unit: '{"b":"c"},', end: '{}]}' },
  { lead: '{"Status":"Failure","MonitorSummaries":[', unit: '{"MonitorName":"a","Status":"Failure"},', end: '{}]}' },
]

const inReplies: readonly Hostile[] = [
  ...bare,
  { lead: '220-', unit: 'a', end: '\r\n' },
  { lead: '', unit: '220-a\r\n', end: '220 b\r\n' },
  { lead: '', unit: '220 a\r\n', end: '' },
  { lead: '220-a\r\n', unit: '\r\n', end: '220 b\r\n' },
]

const inResp: readonly Hostile[] = [
  ...bare,
  { lead: '-', unit: 'ERR ', end: '\r\n' },
  { lead: '', unit: '+OK\r\n', end: '' },
  { lead: '', unit: '*1\r\n', end: '' },
  { lead: '*10000\r\n', unit: '$1\r\na\r\n', end: '' },
  { lead: '$100000\r\n', unit: 'a', end: '\r\n' },
]

const inLists: readonly Hostile[] = [
  ...bare,
  ...[' ', '0', 'a', 'a ', '0 ', '\t', '漢'].flatMap((unit) =>
    ['', '-rw-r--r-- 1 ', '-rw-r--r-- 1 a b 1 ', '11-21-24 ', '11-21-24 04:27AM ', 'type=file;', 'modify='].map(
      (lead) => ({ lead, unit, end: '!' }),
    ),
  ),
  { lead: '', unit: '-rw-r--r-- 1 a b 1 Nov 21 04:27 c\r\n', end: '' },
  { lead: '', unit: 'type=file;modify=20261121042700; c\r\n', end: '' },
  { lead: '', unit: 'type=file;', end: ' c' },
]

const inPluginOutput: readonly Hostile[] = [
  ...bare,
  ...[
    ' ',
    "'",
    "''",
    "'a ",
    "a'",
    '=',
    'a=',
    '1',
    '1;',
    'a=1;',
    'a=1 ',
    'a= ',
    "'a'=1 ",
    '|',
    '|\n',
    'a=1\n',
    ':',
    '@1:',
    '.',
    '1.',
    'e1',
  ].flatMap((unit) =>
    ['OK | ', "OK | '", 'OK | a=', 'OK | a=1', 'OK | a=1;', 'OK\nso | a=1 '].map((lead) => ({ lead, unit, end: '!' })),
  ),
]

const readers: Readonly<Record<string, Reader>> = {
  XML: {
    read: async (text) => {
      const answer = answerOf(await contentOf(text, true))
      return [select(answer, '/a/*'), select(answer, '/VAST/Ad/InLine/Error')]
    },
    upTo: 1e5,
    texts: inXml,
  },
  'XML in pieces': {
    read: (text) => {
      const isWhole = xmlEnd()
      const bytes = Buffer.from(text)
      for (let to = 64; to <= bytes.length; to += 64) if (isWhole(bytes.subarray(0, to))) return
    },
    upTo: 1e5,
    texts: inXml,
  },
  JSON: {
    read: async (text) => {
      const content = await contentOf(text, false)
      return [evaluateHealth(content), select(answerOf(content), '$.a[*].b')]
    },
    upTo: 1e5,
    texts: inJson,
  },
  'JSON of an OpenID provider': { read: (text) => readJson(Buffer.from(text)), upTo: 1e6, texts: inJson },
  'a token': { read: (text) => readToken(text, noRedaction), upTo: 1e6 },
  'replies of FTP': {
    read: (text) => new FtpReplies('peer', sanitize).push(Buffer.from(text)),
    upTo: 1e5,
    texts: inReplies,
  },
  'replies of FTP in pieces': {
    read: (text) => {
      const replies = new FtpReplies('peer', sanitize)
      inPieces(text, 1, (piece) => replies.push(piece))
    },
    upTo: 1e4,
    texts: inReplies,
  },
  'replies of SMTP': {
    read: (text) => new SmtpReplyReader('peer', sanitize).push(Buffer.from(text)),
    upTo: 1e5,
    texts: inReplies,
  },
  'a listing of FTP': { read: (text) => filesIn(linesOf(Buffer.from(text)), at), upTo: 1e5, texts: inLists },
  'a line of a listing of FTP': { read: (text) => filesIn([text], at), upTo: 1e5, texts: inLists },
  'replies of Redis': {
    read: (text) => new RespReader('peer', sanitize).push(Buffer.from(text)),
    upTo: 1e6,
    texts: inResp,
  },
  'replies of Redis in pieces': {
    read: (text) => {
      const replies = new RespReader('peer', sanitize)
      inPieces(text, 1, (piece) => replies.push(piece))
    },
    upTo: 1e5,
    texts: inResp,
  },
  'answers of LDAP': {
    read: (text) => {
      const [message] = new LdapFrames('peer').take(ldapAnswer(text))
      return message && subCode(resultOf(message)?.text ?? '')
    },
    upTo: 1e6,
  },
  'answers of LDAP in pieces': {
    read: (text) => {
      const frames = new LdapFrames('peer')
      const answer = ldapAnswer(text)
      for (let from = 0; from < answer.length; from += 16) frames.take(answer.subarray(from, from + 16))
    },
    upTo: 1e5,
  },
  'bytes that are not LDAP': { read: (text) => new LdapFrames('peer').take(Buffer.from(text)), upTo: 1e5 },
  cookies: { read: (text) => new CookieJar().take(text, '/', at), upTo: 1e5 },
  'records of DNS': {
    read: (text) => [canonical('CNAME', text), recordTexts('TXT', [[text]]).map((one) => canonical('TXT', one))],
    upTo: 1e5,
  },
  'what systemctl prints': { read: (text) => parseSystemd(text, 0), upTo: 1e5 },
  'what launchctl prints': { read: (text) => parseLaunchd(text), upTo: 1e5 },
  'what sc.exe prints': { read: (text) => parseWindows(text), upTo: 1e5 },
  'what a plug-in prints': { read: (text) => readFigures(splitOutput(text).data), upTo: 1e5, texts: inPluginOutput },
  'the error of a driver': { read: (text) => classify(new Error(text), 'peer', 1), upTo: 1e6 },
  'a text to be shown': { read: (text) => sanitize(text), upTo: 1e6 },
  'a text that may hold a secret': { read: (text) => createRedactor(['a a a', '\\"\\"'])(text), upTo: 1e6 },
  'a text of a server to be shown': { read: (text) => sanitizeServerText(text), upTo: 1e6 },
}

/** Reads a text that may be refused: a fault counts as read. */
const ignoringFaults =
  (read: (text: string) => unknown) =>
  async (text: string): Promise<void> => {
    try {
      await read(text)
    } catch (error) {
      if (!(error instanceof ProbeError)) throw error
    }
  }

describe('the CPU time of reading text from a peer grows in proportion to the text', () => {
  test.each(Object.entries(readers))(
    '%s',
    async (_, { read, upTo, texts = bare }) => {
      const problems: string[] = []
      for (const hostile of texts) {
        const textOf = (size: number): string => ofSize(hostile, size)
        const problem = await excessiveGrowth(ignoringFaults(read), textOf, sizesUpTo(upTo), { allocates: true })
        if (problem !== undefined) problems.push(`${problem} of ${describeHostile(hostile)}`)
      }
      expect(problems).toEqual([])
    },
    300_000,
  )
})
