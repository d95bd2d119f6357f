import fc from 'fast-check'
import { mostly, text, utf8 } from './texts.ts'
import { asText, type Fields, fieldsOf, type JsonSchema } from './values.ts'

export type Body = { readonly type: string | undefined; readonly bytes: string; readonly chunked: boolean }

type Kind = 'json' | 'form' | 'multipart' | 'csv' | 'jsv' | 'text' | 'whatever'

/** By its name: how fields are written, and the media types that say so. */
const types: Readonly<Record<Kind, readonly string[]>> = {
  json: ['application/json', 'application/json; charset=utf-8', 'text/json', 'APPLICATION/JSON;charset="UTF-8"'],
  form: ['application/x-www-form-urlencoded', 'application/x-www-form-urlencoded; charset=utf-8'],
  multipart: ['multipart/form-data; boundary=b', 'multipart/form-data; boundary="b"; charset=utf-8'],
  csv: ['text/csv', 'text/csv; header=present'],
  jsv: ['application/jsv', 'text/jsv; charset=utf-8'],
  text: ['text/plain', 'text/plain;charset=UTF-8'],
  whatever: [
    ...['application/xml', 'application/octet-stream', 'a', 'no/;such/', ';', 'application/json; charset=latin1'],
    ...['multipart/form-data', 'multipart/form-data; boundary=', `multipart/form-data; boundary=${'x'.repeat(80)}`],
    ...['application/json; charset=utf-16', 'text/csv; charset=x', 'application/json; a="', '\x80\xff'],
  ],
}

/** Bodies by a schema, or of no schema; and what calls itself one thing and is another. */
export function bodyOf(schema: JsonSchema | undefined, batch: boolean): fc.Arbitrary<Body | undefined> {
  const fields = schema === undefined ? fc.constant<Fields>([]) : fieldsOf(batch ? (schema.items ?? {}) : schema)
  const kind = fc.constantFrom<Kind>(
    ...(batch ? (['json', 'json', 'text'] as const) : (Object.keys(types) as Kind[])),
    'json',
    'json',
  )
  const right = kind.chain((name) =>
    fc.record({
      type: fc.constantFrom(...types[name]),
      bytes: batch ? batched(fields) : fields.map((each) => written(name, each)),
      chunked: fc.constantFrom(false, false, true),
    }),
  )
  const problems = fc.record({
    type: fc.option(fc.constantFrom(...Object.values(types).flat()), { nil: undefined }),
    bytes: fc.oneof(
      fields.chain((each) => spoiled(written('json', each))),
      fields.map((each) => written('csv', each)),
      raw,
    ),
    chunked: fc.boolean(),
  })
  return mostly<Body | undefined>(right, fc.oneof(problems, problems, fc.constant(undefined)), 5)
}

const batched = (fields: fc.Arbitrary<Fields>): fc.Arbitrary<string> =>
  fc
    .oneof(
      { weight: 8, arbitrary: fc.array(fields, { maxLength: 3 }) },
      {
        weight: 1,
        arbitrary: fc
          .constantFrom(64, 65)
          .chain((count) => fields.map((each) => Array.from({ length: count }, () => each))),
      },
    )
    .map((items) => `[${items.map((each) => written('json', each)).join(',')}]`)

function written(kind: Kind, fields: Fields): string {
  switch (kind) {
    case 'form':
      return fields
        .map((pair) => pair.map((each) => encodeURIComponent(asText(each).toWellFormed())).join('='))
        .join('&')
    case 'multipart':
      return utf8(`${fields.map(part).join('')}--b--\r\n`)
    case 'csv':
      return utf8(
        `${fields.map(([name]) => cell(name)).join(',')}\r\n${fields.map(([, value]) => cell(asText(value))).join(',')}\r\n`,
      )
    case 'jsv':
      return utf8(`{${fields.map(([name, value]) => `${quoted(name)}:${quoted(value)}`).join(',')}}`)
    default:
      // By hand, because a name may be there twice, and `__proto__` is one.
      return utf8(`{${fields.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`)
  }
}

const part = ([name, value]: readonly [string, unknown]): string =>
  `--b\r\nContent-Disposition: form-data; name="${name.replaceAll(/["\r\n\\]/g, '')}"\r\n\r\n${asText(value)}\r\n`

/** JSV, in which a text with a special character is quoted. */
function quoted(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(quoted).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .map(([key, each]) => `${quoted(key)}:${quoted(each)}`)
      .join(',')}}`
  }
  const text = asText(value)
  return text === '' || /[":,{}[\]\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

const cell = (value: string): string => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value)

/** One byte too few, too many, or another. */
const spoiled = (bytes: string): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.nat(bytes.length),
      fc.constantFrom('', '"', '\\', '\0', '\xff', '{', ']', ',', '\\ud800', '/*', "'"),
      fc.nat(2),
    )
    .map(([at, put, drop]) => bytes.slice(0, at) + put + bytes.slice(at + drop))

const raw = fc.oneof(
  fc.constantFrom(
    '',
    'null',
    '0',
    '""',
    '[]',
    '[[]]',
    '{',
    '[',
    '{}{}',
    '\xef\xbb\xbf{}',
    '\xff\xfe{\0}\0',
    '{"a":1e999}',
    '--b',
    '--b--',
  ),
  fc.constantFrom('{"a":', '[', '{"Meta":').map((open) => open.repeat(5_000)),
  fc.constantFrom(60_000, 300_000).map((size) => `{"UserName":"${'x'.repeat(size)}"}`),
  fc.constant('{}'),
  fc.constant(`{"UserName":"${'x'.repeat(1_100_000)}"}`),
  text.map(utf8),
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
)
