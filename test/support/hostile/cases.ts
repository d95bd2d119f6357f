import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serialize } from 'bson'
import type { KindName } from '../../../src/core/checks/kinds/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { type Behaviour, peer } from '../faults/faults.ts'
import { scriptedFtp } from '../servers/ftp-server.ts'
import { postgresAnswering, postgresMessage } from '../simulated/simulated-postgres.ts'
import { done, errorToken, packets, tdsPeer } from '../simulated/tds.ts'
import {
  bulk,
  datagramServer,
  element,
  grpcHead,
  grpcServer,
  type HostilePeer,
  http2Frame,
  httpAnswer,
  httpServer,
  inChunks,
  ldapBind,
  ldapResult,
  ldapServer,
  mongoServer,
  mysqlError,
  mysqlPackets,
  mysqlServer,
  nameServer,
  nestedBson,
  octets,
  redisServer,
  smtpServer,
  sshPacket,
  sshString,
  textRecords,
} from './servers.ts'

type Raw = Readonly<Record<string, unknown>>
type Text = (size: number) => string

/** One place of one protocol where a peer can put a text. */
export type HostileCase = {
  readonly kind: KindName | 'client' | 'planted'
  readonly place: string
  /** As svc.yaml gives them; `target` is what `serve` returned. */
  readonly settings: (target: HostilePeer & { readonly folder?: string }) => Raw
  readonly mode: ExecutionMode
  readonly serve: (text: string) => Promise<HostilePeer & { readonly folder?: string }>
  /** The texts by their shape. */
  readonly texts: Readonly<Record<string, Text>>
  /** Shapes that a sound peer may send too, such as the blank listing of an empty folder. */
  readonly sound?: readonly string[]
  /** Not sent byte by byte, with the reason. */
  readonly whole?: string
}
export type HostileTarget = Awaited<ReturnType<HostileCase['serve']>>

const repeated =
  (unit: string): Text =>
  (size) =>
    unit.repeat(Math.max(1, Math.floor(size / unit.length)))
const around =
  (lead: string, unit: string, end: string): Text =>
  (size) =>
    lead + repeated(unit)(size) + end
/** As many ends as beginnings. */
const nested =
  (begin: string, end: string, inner = ''): Text =>
  (size) => {
    const depth = Math.max(1, Math.floor(size / (begin.length + end.length)))
    return begin.repeat(depth) + inner + end.repeat(depth)
  }

/** For a text within a line. */
const inLine: HostileCase['texts'] = {
  blanks: repeated(' '),
  backslashes: repeated('\\'),
  quotes: repeated('"'),
  'escaped quotes': repeated('\\"'),
  'open brackets': repeated('['),
  'open objects': repeated('{"a":'),
}
/** For a text of any lines. */
const anyText: HostileCase['texts'] = { ...inLine, 'empty lines': repeated('\r\n'), 'blank lines': repeated('   \r\n') }
/** For a document. */
const inDocument: HostileCase['texts'] = {
  ...anyText,
  'nested lists': nested('[', ']'),
  'nested objects': nested('{"a":', '}', '1'),
  'nested elements': nested('<a>', '</a>'),
  'a text of blanks': around('{"a":"', ' ', '"}'),
  'a text of escapes': around('{"a":"', '\\\\', '"}'),
  'a text of quotes': around('{"a":"', '\\"', '"}'),
  'a long list': around('[', '1,', '1]'),
  'a list of objects': around('[', '{"name":"a"},', '{}]'),
  'many members': (size) =>
    `{${Array.from({ length: Math.max(1, Math.floor(size / 11)) }, (_, index) => `"k${String(index).padStart(5, '0')}":0`).join(',')}}`,
  'one member again and again': around('{', '"name":1,', '"name":1}'),
  'an attribute of blanks': around('<a b="', ' ', '"/>'),
  'an element of blanks': around('<a>', ' ', '</a>'),
}

/** For a document that is announced as XML. */
const inElements: HostileCase['texts'] = {
  blanks: repeated(' '),
  'nested elements': nested('<a>', '</a>'),
  'open elements': repeated('<a>'),
  'an attribute of blanks': around('<a b="', ' ', '"/>'),
  'an element of blanks': around('<a>', ' ', '</a>'),
}

const over =
  (behaviourFor: (text: string) => Behaviour): HostileCase['serve'] =>
  (text) =>
    peer(behaviourFor(text))
const says =
  (answerOf: (text: string) => string | Buffer): HostileCase['serve'] =>
  (text) =>
    peer((socket) => void socket.end(answerOf(text)))
const answersOnce =
  (answerOf: (text: string) => string | Buffer): HostileCase['serve'] =>
  (text) =>
    peer((socket) => void socket.once('data', () => socket.end(answerOf(text))))

const unchanged = (text: string): string => text

/** The cases of a kind by their place: how a peer serves the text there, and what differs from the kind. */
const casesOf = (
  usual: Pick<HostileCase, 'kind' | 'settings' | 'mode' | 'texts'>,
  places: Readonly<Record<string, HostileCase['serve'] | (Pick<HostileCase, 'serve'> & Partial<HostileCase>)>>,
): readonly HostileCase[] =>
  Object.entries(places).map(([place, one]) => ({
    ...usual,
    place,
    ...(typeof one === 'function' ? { serve: one } : one),
  }))

const password = { env: 'HOSTILE_PASSWORD' }
const account = { username: 'monitor', password }

const ldapOf = ({ port }: HostilePeer): Raw => ({ url: `ldap://127.0.0.1:${port}` })
const ldapSignedIn = (target: HostilePeer): Raw => ({ ...ldapOf(target), username: 'cn=monitor', password })
const ldapSearching = (target: HostilePeer): Raw => ({
  ...ldapSignedIn(target),
  base: 'dc=example',
  entry: { filter: '(uid=alice)', atLeast: 2 },
})

const ldap: readonly HostileCase[] = casesOf(
  { kind: 'ldap', settings: ldapOf, mode: 'Standard', texts: anyText },
  {
    'instead of LDAP': answersOnce(unchanged),
    'in its refusal of a sign-in': {
      serve: over((text) =>
        ldapServer((operation) =>
          operation === ldapBind ? [ldapResult(0x61, 49, `AcceptSecurityContext error, data 52e,${text}v4563`)] : [],
        ),
      ),
      settings: ldapSignedIn,
    },
    'in its refusal of a search': {
      serve: over((text) =>
        ldapServer((operation) => [
          operation === ldapBind ? ldapResult(0x61, 0, '') : ldapResult(0x65, 53, `busy${text}`),
        ]),
      ),
      settings: ldapSignedIn,
    },
    'in the notice before it closes the connection': over((text) => ldapServer(() => [ldapResult(0x78, 52, text)], 0)),
    'in its refusal of StartTLS': {
      serve: over((text) => ldapServer(() => [ldapResult(0x78, 2, text)])),
      settings: (target) => ({ ...ldapOf(target), startTls: true }),
      mode: 'Basic',
    },
    'in the attributes of the entry that it must have': {
      serve: over((text) =>
        ldapServer((operation) => {
          const attribute = element(0x30, octets('vendorName'), element(0x31, octets(text)))
          return operation === ldapBind
            ? [ldapResult(0x61, 0, '')]
            : [element(0x64, octets(text), element(0x30, attribute)), ldapResult(0x65, 0, '')]
        }),
      ),
      settings: ldapSearching,
      mode: 'Advanced',
    },
    'in the names of many attributes': {
      serve: over((text) =>
        ldapServer((operation) => {
          const names = Array.from({ length: text.length / 20 }, (_, index) => octets(`${text.slice(0, 4)}${index}`))
          const attributes = names.map((name) => element(0x30, name, element(0x31)))
          return operation === ldapBind
            ? [ldapResult(0x61, 0, '')]
            : [element(0x64, octets(''), element(0x30, ...attributes)), ldapResult(0x65, 0, '')]
        }),
      ),
      settings: ldapSearching,
      mode: 'Advanced',
      texts: { blanks: inLine.blanks as Text, 'open brackets': inLine['open brackets'] as Text },
    },
    'as elements within elements': {
      serve: over((text) =>
        ldapServer(() => {
          const depth = Math.floor(text.length / 6)
          const heads = Buffer.alloc(depth * 6)
          for (let level = 0; level < depth; level += 1) {
            heads[level * 6] = 0x30
            heads[level * 6 + 1] = 0x84
            heads.writeUInt32BE((depth - level - 1) * 6, level * 6 + 2)
          }
          return [element(0x64, octets(''), heads)]
        }),
      ),
      texts: { 'nested elements': repeated(' ') },
    },
  },
)

const mongoOf = ({ port }: HostilePeer): Raw => ({ url: `mongodb://127.0.0.1:${port}/` })
const mongo: readonly HostileCase[] = casesOf(
  { kind: 'mongo', settings: mongoOf, mode: 'Basic', texts: anyText },
  {
    'instead of MongoDB': answersOnce(unchanged),
    'in its refusal': over((text) => mongoServer(Buffer.from(serialize({ ok: 0, code: 13, errmsg: text })))),
    'as documents within documents': {
      serve: over((text) => mongoServer(nestedBson(text.length))),
      texts: { 'nested documents': repeated(' ') },
    },
    'in what it says about itself': {
      serve: over((text) =>
        mongoServer(
          Buffer.from(
            serialize({
              ok: 1,
              maxWireVersion: 25,
              minWireVersion: 0,
              setName: text,
              primary: text,
              hosts: [text],
              [text.slice(0, 9)]: text,
            }),
          ),
        ),
      ),
      settings: (target) => ({ ...mongoOf(target), role: 'primary', replicaSet: 'rs' }),
      mode: 'Advanced',
    },
  },
)

const redisOf = ({ port }: HostilePeer): Raw => ({ url: `redis://127.0.0.1:${port}` })
const redisWith = (info: (text: string) => string): HostileCase['serve'] =>
  over((text) =>
    redisServer((command) => (command === 'PING' ? '+PONG\r\n' : command === 'INFO' ? info(text) : `-ERR ${text}\r\n`)),
  )
const redis: readonly HostileCase[] = casesOf(
  { kind: 'redis', settings: redisOf, mode: 'Basic', texts: anyText },
  {
    'instead of Redis': answersOnce(unchanged),
    'in its refusal': { serve: answersOnce((text) => `-ERR ${text}\r\n`), texts: inLine },
    'in INFO': { serve: redisWith(bulk), mode: 'Advanced' },
    'in the figures of INFO': {
      serve: redisWith((text) =>
        bulk(`role:${text}\r\nused_memory:${text}\r\nslave0:ip=${text},state=${text}\r\ndb0:keys=${text}`),
      ),
      settings: (target) => ({ ...redisOf(target), role: 'primary', replicas: 1 }),
      mode: 'Advanced',
      texts: inLine,
    },
    'in lists within lists': {
      serve: answersOnce(unchanged),
      texts: { 'nested lists': repeated('*1\r\n'), 'empty lists': around('*10000\r\n', '*0\r\n', '') },
    },
    'in many replies': { serve: answersOnce(unchanged), texts: { replies: repeated('+\r\n') } },
  },
)

const ftpOf = ({ port }: HostilePeer): Raw => ({
  host: '127.0.0.1',
  port,
  tls: 'off',
  latency: { limit: '1h' },
  ...account,
})
const ftpScript =
  (script: (text: string) => Parameters<typeof scriptedFtp>[0]): HostileCase['serve'] =>
  (text) =>
    scriptedFtp(script(text))
const ftpFolder = (target: HostilePeer): Raw => ({ ...ftpOf(target), folder: '/in', files: { limit: 1 } })
const ftp: readonly HostileCase[] = casesOf(
  { kind: 'ftp', settings: ftpOf, mode: 'Standard', texts: inLine },
  {
    'instead of FTP': { serve: says(unchanged), texts: anyText },
    'in its banner': says((text) => `220 ${text}\r\n`),
    'in the lines of its banner': {
      serve: says((text) => `220-\r\n${text}\r\n220 x\r\n`),
      texts: { ...anyText, 'empty replies': repeated('220-\r\n') },
    },
    'in its refusal of a sign-in': ftpScript((text) => ({ answers: { PASS: `530 ${text}` } })),
    'in the name of its folder': {
      serve: ftpScript((text) => ({ answers: { PWD: `257 "${text}" x`, FEAT: `211-x\r\n ${text}\r\n211 End` } })),
      // A folder may have any name.
      sound: Object.keys(inLine),
    },
    'in its passive port': {
      serve: ftpScript((text) => ({ answers: { EPSV: `229 (|||${text}`, PASV: `227 (1,2,3${text}` } })),
      texts: { ...inLine, bars: repeated('('), digits: repeated('1,2,3,4,') },
    },
    'in a listing': {
      serve: ftpScript((text) => ({ listing: `${text}\r\n`, answers: { FEAT: '211 None' } })),
      settings: ftpFolder,
      mode: 'Advanced',
      texts: {
        ...anyText,
        'files of blanks': repeated(`-rw-r--r-- 1 o g 5 Nov 21 04:27 ${' '.repeat(40)}\r\n`),
        'a file of blanks': around('-rw-r--r-- 1 o g 5 Nov 21 04:27 ', ' ', ''),
        'many files': repeated('-rw-r--r-- 1 o g 5 Nov 21 04:27 a\r\n'),
      },
      sound: ['blanks', 'blank lines', 'empty lines'],
    },
    'in a listing with exact dates': {
      serve: ftpScript((text) => ({ listing: `${text}\r\n` })),
      settings: ftpFolder,
      mode: 'Advanced',
      texts: {
        ...anyText,
        facts: repeated('type=file;'),
        'many files': repeated('type=file;modify=20261121042700; a\r\n'),
      },
      // The line of facts names an entry of no known type.
      sound: ['blanks', 'blank lines', 'empty lines', 'facts'],
    },
  },
)

const smtpOf = ({ port }: HostilePeer): Raw => ({ host: '127.0.0.1', port, tls: 'off', recipient: 'a@svc.test' })
const smtp: readonly HostileCase[] = casesOf(
  { kind: 'smtp', settings: smtpOf, mode: 'Standard', texts: inLine },
  {
    'instead of SMTP': { serve: says(unchanged), texts: anyText },
    'in its banner': says((text) => `220 ${text}\r\n`),
    'in the lines of its banner': {
      serve: says((text) => `${text}220 x\r\n`),
      texts: { 'empty lines': repeated('220-\r\n'), 'blank lines': repeated(`220-${' '.repeat(40)}\r\n`) },
    },
    'in its extensions': {
      serve: over((text) =>
        smtpServer('220 x\r\n', (command) =>
          command === 'EHLO'
            ? `250-x\r\n250-AUTH ${text.slice(0, 15_000)}\r\n250 SIZE ${text.slice(0, 900)}\r\n`
            : '550 no\r\n',
        ),
      ),
      settings: (target) => ({ ...smtpOf(target), size: '1MB' }),
      mode: 'Advanced',
    },
    'in many extensions': {
      serve: over((text) =>
        smtpServer('220 x\r\n', (command) => (command === 'EHLO' ? `250-x\r\n${text}250 x\r\n` : '550 no\r\n')),
      ),
      mode: 'Advanced',
      texts: { 'empty lines': repeated('250-\r\n'), blanks: repeated(`250-${' '.repeat(40)}\r\n`) },
    },
    'in its refusal of a recipient': {
      serve: over((text) =>
        smtpServer('220 x\r\n', (command) => (command === 'RCPT' ? `550 ${text}\r\n` : '250 x\r\n')),
      ),
      mode: 'Advanced',
    },
  },
)

const sshHello = 'SSH-2.0-x\r\n'
const sftpOf = ({ port }: HostilePeer): Raw => ({ host: '127.0.0.1', port, ...account })
const sftp: readonly HostileCase[] = casesOf(
  { kind: 'sftp', settings: sftpOf, mode: 'Standard', texts: inLine },
  {
    'instead of SSH': { serve: says(unchanged), texts: { ...anyText, banners: repeated('SSH-\n') } },
    'in its banner': says((text) => `SSH-2.0-${text}\r\n`),
    'before its banner': { serve: says((text) => `${text}\r\n${sshHello}`), texts: anyText },
    'in its algorithms': {
      serve: says((text) =>
        Buffer.concat([
          Buffer.from(sshHello),
          sshPacket(
            Buffer.concat([
              Buffer.from([20]),
              Buffer.alloc(16),
              ...Array.from({ length: 10 }, () => sshString(text.slice(0, text.length / 10))),
              Buffer.alloc(5),
            ]),
          ),
        ]),
      ),
      texts: { ...inLine, commas: repeated(','), names: repeated('a,') },
    },
    'in its reason to disconnect': says((text) =>
      Buffer.concat([
        Buffer.from(sshHello),
        sshPacket(Buffer.concat([Buffer.from([1, 0, 0, 0, 2]), sshString(text.slice(0, 30_000)), sshString('')])),
      ]),
    ),
    'in many packets to be ignored': {
      serve: says((text) =>
        Buffer.concat([
          Buffer.from(sshHello),
          ...Array.from({ length: Math.floor(text.length / 16) }, () =>
            sshPacket(Buffer.concat([Buffer.from([2]), sshString('')])),
          ),
        ]),
      ),
      texts: { packets: repeated(' ') },
    },
  },
)

const pages: readonly (readonly [place: string, (text: string) => string | Buffer, HostileCase['texts']])[] = [
  ['in the body', (text) => httpAnswer(text), inDocument],
  ['in chunks of one byte', (text) => inChunks(text), { blanks: repeated(' '), 'nested lists': nested('[', ']') }],
  ['in XML', (text) => httpAnswer(text, 'Content-Type: application/xml\r\n'), inElements],
  ['in a header', (text) => httpAnswer('{}', `Content-Type: ${text}\r\n`), inLine],
  ['in a cookie', (text) => httpAnswer('{}', `Set-Cookie: a=${text}; Path=${text}\r\n`), inLine],
  [
    'in many headers',
    (text) => httpAnswer('{}', text),
    { headers: repeated('Set-Cookie: a=b; Path=/\r\n'), 'blank headers': repeated('a:                \r\n') },
  ],
  ['in the status', (text) => `HTTP/1.1 200 ${text}\r\nContent-Length: 2\r\n\r\n{}`, inLine],
  ['in a redirect', (text) => httpAnswer('', `Location: ${text}\r\n`, 302), inLine],
  [
    'in a redirect to a path',
    (text) => httpAnswer('', `Location: /${text.replaceAll('"', '%22')}\r\n`, 302),
    { ...inLine, dots: repeated('../../'), slashes: repeated('/'), parameters: repeated('a=b&') },
  ],
  ['before the answer', (text) => text, { ...anyText, 'interim answers': repeated('HTTP/1.1 100 Continue\r\n\r\n') }],
]
const htmlTexts: HostileCase['texts'] = {
  'open links': repeated('<a href="'),
  'links of blanks': repeated('<a href="          ">'),
  'open comments': repeated('<!--'),
  references: repeated('&amp;'),
}
const httpCases = (
  kind: HostileCase['kind'],
  settings: HostileCase['settings'],
  mode: ExecutionMode,
): readonly HostileCase[] =>
  pages.map(([place, answer, texts]) => ({
    kind,
    place,
    settings,
    mode,
    serve: over((text) => httpServer(() => answer(text))),
    texts,
  }))

const urlOf = ({ port }: HostilePeer, path = ''): string => `http://127.0.0.1:${port}${path}`
const http = [
  ...httpCases(
    'http',
    (target) => ({ url: urlOf(target), json: { '$.Status': '/^a+ $/', '$.a.b[*].c': '> 1' }, redirects: 3 }),
    'Advanced',
  ),
  ...httpCases(
    'http',
    (target) => ({
      url: urlOf(target),
      xml: { '/VAST/Ad/@id': '/x/' },
      measure: [{ name: 'ads', path: '/VAST/Ad', count: { limit: 3 } }],
    }),
    'Advanced',
  )
    .slice(0, 3)
    .map((one) => ({ ...one, place: `${one.place}, read as XML` })),
  ...httpCases(
    'http',
    (target) => ({
      url: urlOf(target),
      contains: 'a word',
      matches: '(a+ +)+$',
      version: { expected: '1', json: '$.v' },
    }),
    'Advanced',
  )
    .slice(0, 1)
    .map((one) => ({ ...one, place: 'in a body that a pattern reads', texts: { ...inDocument, ...htmlTexts } })),
  ...httpCases('http', (target) => ({ url: urlOf(target), health: true }), 'Advanced')
    .slice(0, 2)
    .map((one) => ({ ...one, place: `${one.place} of a health check` })),
]

const httpSteps = httpCases(
  'http-steps',
  (target) => ({
    url: urlOf(target),
    allowWrites: true,
    steps: [
      {
        name: 'first',
        path: '/',
        status: ['2xx', '3xx'],
        capture: { one: '$.a', two: 'cookie:a', three: 'header:Location' },
      },
      { name: 'second', path: '/', json: { '$.b': `\${one}` } },
    ],
  }),
  'Advanced',
)

const inHealth: HostileCase['serve'] = over((text) => {
  const summary = { MonitorName: text, Status: 'Failure', ErrorMessages: [text] }
  const health = { Status: 'Failure', StatusMessage: text, FailedMonitorCount: 1, MonitorSummaries: [summary] }
  return httpServer(() => httpAnswer(JSON.stringify(health)))
})

const svc = [
  ...httpCases('svc', (target) => ({ url: urlOf(target) }), 'Advanced'),
  ...httpCases('svc', (target) => ({ url: urlOf(target) }), 'Advanced')
    .slice(0, 1)
    .map((one) => ({
      ...one,
      place: 'in a run document',
      serve: over((text) => httpServer(() => httpAnswer(text, 'Content-Type: application/vnd.svc.run+json\r\n'))),
    })),
  ...httpCases('svc', (target) => ({ url: urlOf(target) }), 'Advanced')
    .slice(0, 1)
    .map((one) => ({ ...one, place: 'in a health document', serve: inHealth })),
]

const client: readonly HostileCase[] = [
  ...httpCases('client', (target) => ({ url: urlOf(target) }), 'Basic'),
  ...casesOf(
    { kind: 'client', settings: (target) => ({ url: urlOf(target) }), mode: 'Basic', texts: inLine },
    { 'in a health document': inHealth },
  ),
]

const discovery = (port: number, more: Raw = {}): string => {
  const issuer = `http://127.0.0.1:${port}`
  return JSON.stringify({
    issuer,
    authorization_endpoint: `${issuer}/auth`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    grant_types_supported: ['client_credentials'],
    ...more,
  })
}
/** A provider that answers some paths with a text, and the others as a sound one would. */
const provider =
  (answers: (text: string, port: number) => Readonly<Record<string, string | Buffer>>): HostileCase['serve'] =>
  async (text) => {
    let port = 0
    const started = await peer(
      httpServer((path) => {
        const sound = {
          '/.well-known/openid-configuration': httpAnswer(discovery(port)),
          '/jwks': httpAnswer('{"keys":[]}'),
          '/token': httpAnswer('{"error":"invalid_request"}', 'Content-Type: application/json\r\n', 400),
        }
        return { ...sound, ...answers(text, port) }[path] ?? httpAnswer('', '', 404)
      }),
    )
    port = started.port
    return started
  }
const oidcOf = (target: HostilePeer): Raw => ({ issuer: urlOf(target), clientId: 'svc', clientSecret: password })
const tokenOf = (token: string): Buffer =>
  httpAnswer(JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: 60 }))
const base64url = (text: string): string => Buffer.from(text).toString('base64url')
const oidc: readonly HostileCase[] = [
  ...httpCases('oidc', oidcOf, 'Advanced'),
  ...casesOf(
    { kind: 'oidc', settings: oidcOf, mode: 'Advanced', texts: inLine },
    {
      'in the members of its discovery document': provider((text, port) => ({
        '/.well-known/openid-configuration': httpAnswer(
          discovery(port, {
            issuer: text,
            token_endpoint: `http://127.0.0.1:${port}/${text}`,
            jwks_uri: text,
            grant_types_supported: text.split(' '),
          }),
        ),
      })),
      'in its keys': { serve: provider((text) => ({ '/jwks': httpAnswer(text) })), texts: inDocument },
      'in many keys': {
        serve: provider((text) => ({ '/jwks': httpAnswer(`{"keys":[${text}{}]}`) })),
        texts: {
          'one key again and again': repeated(
            '{"kty":"RSA","kid":"a","use":"sig","alg":"RS256","n":"AQAB","e":"AQAB"},',
          ),
          'empty keys': repeated('{},'),
        },
      },
      'in a key': provider((text) => ({
        '/jwks': httpAnswer(
          JSON.stringify({ keys: [{ kty: 'RSA', kid: text, use: 'sig', alg: text, n: text, e: 'AQAB', x5c: [text] }] }),
        ),
      })),
      'in the modulus of a key': {
        serve: provider((text) => ({
          '/jwks': httpAnswer(
            JSON.stringify({ keys: [{ kty: 'RSA', kid: 'a', use: 'sig', alg: 'RS256', n: text, e: text }] }),
          ),
          '/token': tokenOf(`${base64url('{"alg":"RS256","kid":"a"}')}.${base64url('{"iss":"x"}')}.${text}`),
        })),
        texts: { modulus: repeated('_') },
      },
      'in its answer with a token': { serve: provider((text) => ({ '/token': httpAnswer(text) })), texts: inDocument },
      'in its token': {
        serve: provider((text) => ({ '/token': tokenOf(text) })),
        texts: { ...inLine, dots: repeated('.'), 'blank parts': repeated('a.') },
      },
      'in the claims of its token': {
        serve: provider((text) => ({ '/token': tokenOf(`${base64url('{"alg":"RS256"}')}.${base64url(text)}.AAAA`) })),
        texts: inDocument,
      },
      'in its refusal': provider((text) => ({
        '/token': httpAnswer(
          JSON.stringify({ error: text, error_description: text }),
          'Content-Type: application/json\r\n',
          400,
        ),
      })),
    },
  ),
]

const rabbitmqOf = (target: HostilePeer): Raw => ({
  url: urlOf(target),
  ...account,
  queues: [{ name: 'orders' }],
  messages: { limit: 1 },
  nodes: 2,
})
const rabbitmq: readonly HostileCase[] = [
  ...httpCases('rabbitmq', rabbitmqOf, 'Advanced'),
  ...casesOf(
    { kind: 'rabbitmq', settings: rabbitmqOf, mode: 'Advanced', texts: inLine },
    {
      'in the members of its answers': over((text) => {
        const node = { name: text, running: false, type: text, mem_used: text, mem_limit: text, partitions: [text] }
        return httpServer((path) =>
          httpAnswer(
            JSON.stringify(
              path.startsWith('/api/nodes')
                ? [node]
                : {
                    name: text,
                    tags: text,
                    cluster_name: text,
                    state: text,
                    node: text,
                    queue_totals: { messages_ready: text },
                  },
            ),
          ),
        )
      }),
      'in many nodes': {
        serve: over((text) =>
          httpServer((path) =>
            httpAnswer(path.startsWith('/api/nodes') ? `[${text}{}]` : '{"name":"monitor","tags":["monitoring"]}'),
          ),
        ),
        texts: { 'empty nodes': repeated('{},'), nodes: repeated('{"name":"a","running":false,"partitions":["a"]},') },
      },
    },
  ),
]

const postgresOf =
  (scheme: 'postgres', database: string) =>
  ({ port }: HostilePeer): Raw => ({ url: `${scheme}://m@127.0.0.1:${port}/${database}`, password })
const signedIn = postgresMessage('R', Buffer.alloc(4))
const ready = postgresMessage('Z', 'I')
const postgresCases = (kind: 'postgres' | 'pgbouncer', database: string): readonly HostileCase[] => {
  const settings = postgresOf('postgres', database)
  return casesOf(
    { kind, settings, mode: 'Basic', texts: anyText },
    {
      'instead of PostgreSQL': answersOnce(unchanged),
      'in its error': answersOnce((text) => postgresMessage('E', 'SFATAL\0C28P01\0M', text, '\0\0')),
      'in the fields of its error': {
        serve: answersOnce((text) => postgresMessage('E', text, '\0\0')),
        texts: { fields: repeated('M\0'), 'blank fields': repeated('M      \0') },
      },
      'in many notices': {
        serve: answersOnce((text) =>
          Buffer.concat([
            signedIn,
            ...Array.from({ length: Math.floor(text.length / 12) }, () => postgresMessage('N', 'MHello\0\0')),
          ]),
        ),
        texts: { notices: repeated(' ') },
      },
      'in its version': {
        serve: answersOnce((text) =>
          Buffer.concat([signedIn, postgresMessage('S', 'server_version\0', text, '\0'), ready]),
        ),
        texts: inLine,
      },
      'in a value': { serve: over((text) => postgresAnswering('one', 25, text)), mode: 'Advanced' },
      'in the name of a column': {
        serve: over((text) => postgresAnswering(text, 25, 'x')),
        mode: 'Advanced',
        texts: inLine,
      },
      'in a list of lists': {
        serve: over((text) => postgresAnswering('one', 1009, text)),
        mode: 'Advanced',
        texts: { 'nested lists': nested('{', '}'), quotes: around('{"', '\\"', '"}'), items: around('{', 'a,', 'a}') },
      },
    },
  )
}

const mysqlOf = ({ port }: HostilePeer): Raw => ({ url: `mysql://m@127.0.0.1:${port}/d`, password })
const mysql: readonly HostileCase[] = casesOf(
  { kind: 'mysql', settings: mysqlOf, mode: 'Basic', texts: anyText },
  {
    'instead of MySQL': says(unchanged),
    'in its error': says((text) => mysqlError(text)),
    'in its greeting': says((text) => mysqlPackets(0, Buffer.from(`\x0a${text}\0`, 'latin1'))),
    'in many packets': {
      serve: says((text) =>
        mysqlPackets(0, ...Array.from({ length: Math.floor(text.length / 4) }, () => Buffer.alloc(0))),
      ),
      texts: { 'empty packets': repeated(' ') },
    },
    'in a value': { serve: over((text) => mysqlServer(253, Buffer.from(text))), mode: 'Advanced' },
    'in a value of type JSON': {
      serve: over((text) => mysqlServer(245, Buffer.from(text))),
      mode: 'Advanced',
      texts: inDocument,
    },
  },
)

const sqlserverOf = ({ port }: HostilePeer): Raw => ({
  url: `sqlserver://m@127.0.0.1:${port}/d`,
  password,
  tls: { mode: 'off' },
})
const information = (text: string): Buffer => {
  const token = errorToken({ number: 1, message: text })
  token[0] = 0xab
  return token
}
const sqlserver: readonly HostileCase[] = casesOf(
  { kind: 'sqlserver', settings: sqlserverOf, mode: 'Basic', texts: anyText },
  {
    'instead of SQL Server': answersOnce(unchanged),
    'in its refusal': (text) =>
      tdsPeer({ login: () => [{ number: 18_456, message: text.slice(0, 30_000) }], answer: () => ({ rows: [] }) }),
    'in many errors': {
      serve: (text) =>
        tdsPeer({
          login: () => Array.from({ length: Math.floor(text.length / 60) }, () => ({ number: 18_456, message: ' ' })),
          answer: () => ({ rows: [] }),
        }),
      texts: { errors: repeated(' ') },
    },
    'in many messages': {
      serve: (text) =>
        tdsPeer({
          answer: () =>
            packets(
              4,
              Buffer.concat([...Array.from({ length: Math.floor(text.length / 60) }, () => information(' ')), done()]),
            ),
        }),
      mode: 'Standard',
      texts: { messages: repeated(' ') },
    },
    'in a value': {
      serve: (text) => tdsPeer({ answer: () => ({ rows: [{ one: text.slice(0, 30_000) }] }) }),
      mode: 'Standard',
    },
    'in packets of one byte': {
      serve: (text) =>
        tdsPeer({
          answer: () => {
            const body = Buffer.concat([information(text.slice(0, 30_000)), done()])
            return Buffer.concat(
              [...body].map((one, at) => Buffer.from([4, at === body.length - 1 ? 1 : 0, 0, 9, 0, 0, 0, 0, one])),
            )
          },
        }),
      mode: 'Standard',
      texts: { blanks: repeated(' ') },
    },
  },
)

const dns: readonly HostileCase[] = casesOf(
  {
    kind: 'dns',
    settings: ({ port }) => ({
      server: `127.0.0.1:${port}`,
      query: 'svc.test',
      type: 'TXT',
      expect: ['a word'],
      signed: true,
    }),
    mode: 'Advanced',
    texts: inLine,
  },
  {
    'in a text record': (text) => nameServer(16, textRecords(text.slice(0, 60_000))),
    'in many records': {
      serve: (text) =>
        nameServer(
          1,
          Array.from({ length: Math.min(3_700, Math.floor(text.length / 16)) }, (_, index) =>
            Buffer.from([11, 0, index >> 8, index & 255]),
          ),
        ),
      settings: ({ port }) => ({
        server: `127.0.0.1:${port}`,
        query: 'svc.test',
        type: 'A',
        expect: ['10.0.0.1'],
        exact: true,
        signed: true,
      }),
      texts: { records: repeated(' ') },
    },
  },
)

const grpcOf = ({ port }: HostilePeer): Raw => ({ host: '127.0.0.1', port })
const literal = (name: string, value: string): Buffer => {
  const length = (size: number): Buffer => {
    if (size < 127) return Buffer.from([size])
    const bytes = [127]
    let rest = size - 127
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
    return Buffer.from([...bytes, rest])
  }
  return Buffer.concat([
    Buffer.from([0]),
    length(name.length),
    Buffer.from(name),
    length(value.length),
    Buffer.from(value, 'latin1'),
  ])
}
const dataFrames = (bytes: Buffer, each: number): readonly Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / each) }, (_, at) =>
    http2Frame(0, 0, 1, bytes.subarray(at * each, (at + 1) * each)),
  )
const grpc: readonly HostileCase[] = casesOf(
  { kind: 'grpc', settings: grpcOf, mode: 'Standard', texts: inLine },
  {
    'instead of HTTP/2': { serve: answersOnce(unchanged), texts: anyText },
    'in a message': over((text) =>
      grpcServer(http2Frame(1, 4, 1, grpcHead), ...dataFrames(Buffer.from(`\0\0\0\x0f\xff${text}`, 'latin1'), 16_000)),
    ),
    'in frames of one byte': over((text) =>
      grpcServer(http2Frame(1, 4, 1, grpcHead), ...dataFrames(Buffer.from(`\0\0\0\x0f\xff${text}`, 'latin1'), 1)),
    ),
    'in its status message': {
      serve: over((text) =>
        grpcServer(
          http2Frame(
            1,
            5,
            1,
            Buffer.concat([grpcHead, literal('grpc-status', '13'), literal('grpc-message', text.slice(0, 15_000))]),
          ),
        ),
      ),
      texts: { ...inLine, percents: repeated('%'), escapes: repeated('%20') },
    },
    'in many frames': {
      serve: over((text) =>
        grpcServer(...Array.from({ length: Math.floor(text.length / 17) }, () => http2Frame(6, 0, 0, Buffer.alloc(8)))),
      ),
      texts: { pings: repeated(' ') },
    },
  },
)

const tcpOf = ({ port }: HostilePeer): Raw => ({ host: '127.0.0.1', port })
const tcp: readonly HostileCase[] = casesOf(
  {
    kind: 'tcp',
    settings: (target) => ({ ...tcpOf(target), expect: '/(a+ +)+\\d$/', maxAnswer: '200KB' }),
    mode: 'Standard',
    texts: { ...anyText, ...htmlTexts },
  },
  {
    'in an answer that a pattern reads': says(unchanged),
    'in an answer that has a word': {
      serve: says(unchanged),
      settings: (target) => ({ ...tcpOf(target), send: 'x', expect: 'a word', maxAnswer: '200KB' }),
      texts: anyText,
    },
    'in XML': {
      serve: says(unchanged),
      settings: (target) => ({
        ...tcpOf(target),
        send: 'x',
        xml: { '/Reply/@Success': 'true' },
        measure: [{ name: 'jobs', path: '/Reply/Job', count: { limit: 1 } }],
        maxAnswer: '300KB',
      }),
      texts: {
        ...inDocument,
        ...htmlTexts,
        'many elements': around('<a>', '<b/>', '</a>'),
        'closing elements': repeated('</a>'),
        'open elements': repeated('<a>'),
      },
    },
  },
)

const tls: readonly HostileCase[] = casesOf(
  { kind: 'tls', settings: tcpOf, mode: 'Standard', texts: anyText },
  {
    'instead of TLS': { serve: says(unchanged), whole: 'TLS reads below the sockets of Node' },
    'in records of a handshake': {
      serve: says((text) => Buffer.concat([...text].map((one) => Buffer.from([22, 3, 3, 0, 1, one.charCodeAt(0)])))),
      texts: { records: repeated('\0') },
      whole: 'TLS reads below the sockets of Node',
    },
  },
)

/** A program that prints a text. */
function printing(text: string, exitCode: number): HostilePeer & { readonly folder: string } {
  const folder = mkdtempSync(join(tmpdir(), 'svc-hostile-'))
  writeFileSync(join(folder, 'text'), text)
  writeFileSync(join(folder, 'plugin'), `#!/bin/sh\ncat '${join(folder, 'text')}'\nexit ${exitCode}\n`, { mode: 0o755 })
  return {
    port: 0,
    folder,
    [Symbol.asyncDispose]: () => Promise.resolve(rmSync(folder, { recursive: true, force: true })),
  }
}
const exec: readonly HostileCase[] = casesOf(
  { kind: 'exec', settings: ({ folder = '' }) => ({ command: join(folder, 'plugin') }), mode: 'Basic', texts: anyText },
  {
    'in the output of a program': (text) => Promise.resolve(printing(text, 2)),
    'in performance data': {
      serve: (text) => Promise.resolve(printing(`CRITICAL | ${text}`, 2)),
      texts: {
        ...anyText,
        figures: repeated('a=1;2;3 '),
        'open figures': repeated("'a="),
        'quoted figures': repeated("'a b'=1 "),
      },
    },
  },
)

const host: readonly HostileCase[] = casesOf(
  {
    kind: 'host',
    settings: ({ port }) => ({ clock: { reference: `127.0.0.1:${port}` } }),
    mode: 'Standard',
    texts: inLine,
  },
  {
    'in the answers of a time server': (text) =>
      datagramServer((request) => {
        const answer = Buffer.from(text.slice(0, 40_000))
        if (answer.length >= 48) {
          answer[0] = 0x24
          request.copy(answer, 24, 40, 48)
        }
        return [answer.subarray(0, 20), answer]
      }),
  },
)

export const hostileCases: readonly HostileCase[] = [
  ...ldap,
  ...mongo,
  ...redis,
  ...ftp,
  ...smtp,
  ...sftp,
  ...http,
  ...httpSteps,
  ...svc,
  ...client,
  ...oidc,
  ...rabbitmq,
  ...postgresCases('postgres', 'd'),
  ...postgresCases('pgbouncer', 'pgbouncer').filter(({ place }) => place !== 'in a list of lists'),
  ...mysql,
  ...sqlserver,
  ...dns,
  ...grpc,
  ...tcp,
  ...tls,
  ...exec,
  ...host,
]
