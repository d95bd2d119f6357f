import fc from 'fast-check'
import { document, type Operation } from '../support/wire/openapi.ts'
import { type Body, bodyOf } from './bodies.ts'
import { headers } from './question-headers.ts'
import { inOddCase, mostly, strange, text, utf8 } from './texts.ts'
import { asText, type Fields, type JsonSchema, resolved, validOf } from './values.ts'

/** A whole request, every part of it as the bytes that go over the wire, one character each; `{{…}}` is a secret. */
export type Question = {
  readonly method: string
  readonly target: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Body | undefined
}

type Parameter = { readonly name: string; readonly in: string; readonly schema: JsonSchema; readonly $ref?: string }

/** Every path and verb of the document. */
export const places = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).flatMap(([verb, operation]) =>
    verb === 'parameters' ? [] : [{ path, verb: verb.toUpperCase(), operation: operation as Operation }],
  ),
)

/** The schema of the bodies of the operation at a path, whatever the verb. */
const schemaAt = (path: string): JsonSchema | undefined => {
  const post = document.paths[path]?.['post'] as
    | { requestBody?: { content?: Record<string, { schema: JsonSchema }> } }
    | undefined
  return post?.requestBody?.content?.['application/json']?.schema
}

const anyVerb = fc.constantFrom(
  ...[
    'GET',
    'HEAD',
    'POST',
    'PUT',
    'DELETE',
    'OPTIONS',
    'PATCH',
    'TRACE',
    'PROPFIND',
    'SEARCH',
    'M-SEARCH',
    'LINK',
    'QUERY',
  ],
)

const segment = mostly(
  fc.constantFrom(
    'credentials',
    'login',
    'Credentials',
    'logout',
    'digest',
    'openid',
    'nope',
    'agent-1',
    'agent.three',
  ),
  fc.oneof(
    fc.constantFrom(
      '%',
      '%zz',
      '%00',
      '%ff',
      '%2e%2e',
      '%2f',
      'a%2Fb',
      '..',
      '.',
      '.json',
      'x.xml',
      'x.json.csv',
      '*',
      '~',
    ),
    text.map((each) => encodeURIComponent(each.toWellFormed())),
    text.map(utf8),
  ),
)

/** A path as it may be written: R1, and beyond. */
const spelled = (path: string): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 10, arbitrary: fc.constant(path) },
    { weight: 2, arbitrary: inOddCase(path) },
    {
      weight: 2,
      arbitrary: fc.constantFrom(
        ...[`${path}/`, `${path}//`, path.replaceAll('/', '//').slice(1), `${path}.json`, `${path}.csv`, `${path}.JSV`],
        ...[
          `${path}.xml`,
          `${path}.`,
          `${path}/.`,
          `${path}/..`,
          `/.${path}`,
          `${path};a=b`,
          `${path}%20`,
          `${path}#x`,
        ],
        ...[`/${path}`, `${path}\\`, `${path}%2f`, `${path}/x`, path.slice(1), `http://localhost${path}`, `${path} x`],
      ),
    },
    {
      weight: 1,
      arbitrary: fc
        .nat(path.length - 1)
        .map((at) => `${path.slice(0, at)}%${path.charCodeAt(at).toString(16).padStart(2, '0')}${path.slice(at + 1)}`),
    },
  )

const formats = ['json', 'csv', 'JSON', 'xml', 'nagios', 'prtg', 'prometheus', 'html', '', 'jsv', '../x', '%00']
const callbacks = [
  'cb',
  'a.b.c',
  '',
  '$_',
  '1x',
  'a-b',
  'alert(1)',
  'a..b',
  'x'.repeat(51),
  'é',
  '</script>',
  'constructor',
]

const query = (operation: Operation, schema: JsonSchema | undefined): fc.Arbitrary<string> => {
  const declared = ((operation.parameters ?? []) as readonly Parameter[]).filter(({ in: where }) => where === 'query')
  const pairs = declared.map(({ name, schema: each }) =>
    fc
      .tuple(mostly(fc.constant(name), inOddCase(name)), mostly(validOf(name, each), strange, 8), fc.nat(3))
      .map(([written, value, there]): Fields => (there > (name in required ? 0 : 2) ? [[written, value]] : [])),
  )
  const fields = Object.keys(schema ? (resolved(schema).properties ?? {}) : {})
  const others: fc.Arbitrary<Fields> = fc.array(
    fc.tuple(fc.constantFrom('x', '__proto__', 'ss-id', 'continue', 'Password', 'debug', ...fields), strange),
    { maxLength: 3 },
  )
  const headerArbitrary = fc.tuple(
    mostly(
      fc.constant<Fields>([]),
      fc.constantFrom(...formats).map((value): Fields => [['format', value]]),
      2,
    ),
    mostly(
      fc.constant<Fields>([]),
      fc.constantFrom(...callbacks).map((value): Fields => [['callback', value]]),
      5,
    ),
    mostly(fc.constant<Fields>([]), others, 3),
  )
  return fc
    .tuple(fc.tuple(...pairs), headerArbitrary, mostly(fc.constant(''), garbage, 20))
    .map(([own, more, rest]) =>
      [...own.flat(), ...more.flat()]
        .map(encodedPair)
        .concat(rest === '' ? [] : [rest])
        .join('&'),
    )
    .map((joined) => (joined === '' ? '' : `?${joined.slice(0, 6_000)}`))
}
const required: Readonly<Record<string, true>> = { ExecutionMode: true, ServerType: true }

const encodedPair = ([name, value]: readonly [string, unknown]): string =>
  `${encodeURIComponent(name.toWellFormed())}=${encodeURIComponent(asText(value).toWellFormed()).replaceAll('%20', '+')}`

const garbage = fc.oneof(
  fc.constantFrom('%', '%ff', '%c3', '&&&', '=', '?', '?x', '#', 'a=b=c', '+', '[]', '%00', `Password={{annPassword}}`),
  fc.constant(Array.from({ length: 1_030 }, (_, i) => `a${i % 10}`).join('&')),
  text.map(utf8),
)

/**
 * By the schema of its body: who may call an operation, and with what. The proof demands that each of these succeeds, which a
 * request of which every part is drawn seldom does.
 */
const accepted: Readonly<Record<string, { readonly key?: string; readonly body: object }>> = {
  Authenticate: { body: { provider: 'credentials', UserName: 'Ann', Password: '{{annPassword}}' } },
  GetAccessToken: { body: { RefreshToken: '{{annRefresh}}' } },
  AssignRoles: { key: 'annKey', body: { UserName: 'Ned', Roles: ['Editor'] } },
  UnAssignRoles: { key: 'annKey', body: { UserName: 'Ned', Roles: ['Ops'] } },
  CreateKey: { key: 'annKey', body: { Name: 'agent-1', UserName: 'Ned' } },
  ReportHeartbeat: { key: 'halKey', body: { Name: 'agent-1' } },
  HealthCheckRequest: { key: 'annKey', body: { ExecutionMode: 'Basic', ServerType: 'Sql' } },
}

/** The accepted requests of one operation, or of batches of it: at each path, with the same body. */
const acceptedAt = fc.constantFrom(
  ...Object.entries(accepted).flatMap(([name, { key, body }]) =>
    [false, true].flatMap((isBatch) => {
      const paths = places.flatMap(({ path, verb }) => {
        const { $ref, items } = schemaAt(path) ?? {}
        const of = isBatch ? items?.$ref : $ref
        return verb === 'POST' && of?.split('/').at(-1) === name ? [path] : []
      })
      return paths.length === 0 ? [] : [{ paths, key, body: isBatch ? [body] : body }]
    }),
  ),
)
const acceptedQuestion = acceptedAt.chain(({ paths, key, body }) =>
  fc.constantFrom(...paths).map(
    (path): Question => ({
      method: 'POST',
      target: path.replace('{provider}', 'credentials').replace('{Name}', 'agent-1'),
      headers: [['Host', 'localhost'], ...(key === undefined ? [] : [['Authorization', `Bearer {{${key}}}`] as const])],
      body: { type: 'application/json', bytes: JSON.stringify(body), chunked: false },
    }),
  ),
)

const anyQuestion: fc.Arbitrary<Question> = fc.constantFrom(...places).chain(({ path, verb, operation }) => {
  const schema = schemaAt(path)
  return fc
    .record({
      method: mostly(fc.constant(verb), anyVerb, 8),
      path: fc
        .tuple(spelled(path), segment)
        .map(([written, value]) => written.replace(/\{\w+\}/gi, value.replaceAll('$', '$$$$'))),
      query: query(operation, schema),
      headers,
      body: bodyOf(schema, path.endsWith('[]')),
      oddBody: fc.nat(20),
    })
    .map(({ method, path: written, query: request, headers: headerArbitrary, body, oddBody }) => ({
      method,
      target: `${written}${request}`,
      headers: headerArbitrary,
      // A body where none belongs is ignored and ends the connection, so there is seldom one.
      body: method === 'POST' || method === 'DELETE' || oddBody < 2 ? body : undefined,
    }))
})

/** Requests at what the document describes: wrong in every way that HTTP can carry, right, and a few that are accepted. */
export const question: fc.Arbitrary<Question> = fc.oneof(
  { weight: 25, arbitrary: anyQuestion },
  { weight: 1, arbitrary: acceptedQuestion },
)
