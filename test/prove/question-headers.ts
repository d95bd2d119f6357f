import fc from 'fast-check'
import { text, utf8 } from './texts.ts'

type Header = readonly [name: string, value: string]

/** Every way to be, or not to be, somebody (A9). */
const credentials: readonly (readonly Header[])[] = [
  [],
  [],
  ...['annKey', 'annKey', 'annKey', 'nedKey', 'halKey', 'halKey', 'louKey', 'revokedKey', 'expiredKey'].map(bearer),
  ...['annBearer', 'nedBearer', 'annRefresh', 'annSession'].map(bearer),
  [['X-ss-id', '{{annSession}}']],
  [['X-ss-id', '{{annPermanent}}']],
  [
    ['X-ss-pid', '{{annPermanent}}'],
    ['X-ss-opt', 'perm'],
  ],
  [['Cookie', 'ss-id={{annSession}}; ss-opt=temp']],
  [['Cookie', 'ss-id={{nedSession}}; ss-opt=temp']],
  [['Cookie', 'ss-pid={{annPermanent}}; ss-opt=perm']],
  [['Cookie', 'ss-tok={{annBearer}}']],
  [['Cookie', '20 Nov 2046 10:00:00 GMT=null; ss-id=; ss-id={{nedSession}}; __proto__=x']],
  [
    ['Cookie', 'ss-id={{annSession}}'],
    ['Authorization', 'Bearer {{nedBearer}}'],
  ],
  ...[
    'Bearer',
    'Bearer ',
    'bearer  x',
    'Bearer {{annKey}}x',
    'Bearer svc_at_garbage',
    'Basic QW5uOng=',
    'Basic',
    '',
  ].map((value): readonly Header[] => [['Authorization', value]]),
  ...['Digest username="Ann", nonce="x", uri="/", response="y"', `Bearer ${'x'.repeat(3_000)}`, 'Bearer \x80\xff'].map(
    (value): readonly Header[] => [['Authorization', value]],
  ),
  [
    ['X-ss-id', '\xff'],
    ['X-ss-opt', 'perm'],
  ],
]

function bearer(name: string): readonly Header[] {
  return [['Authorization', `Bearer {{${name}}}`]]
}

const values: Readonly<Record<string, readonly string[]>> = {
  Accept: [
    ...[
      'application/json',
      'text/csv',
      '*/*',
      'application/health+json',
      'text/html',
      'application/jsv',
      'application/xml',
      'text/xml, application/xml;q=0.9',
      'text/csv;q=0.5, application/json;q=0.1',
    ],
    ...[
      'a',
      '',
      ';',
      'text/*;q=0',
      'application/json;q=x',
      ',,,',
      'text/csv;q=1e9',
      '*/*;q=0, application/health+json;q=NaN',
    ],
  ],
  Origin: ['http://localhost', 'https://evil.example', 'null', '', 'x', 'http://[::1', 'file://'],
  'Sec-Fetch-Site': ['same-origin', 'cross-site', 'none', 'same-site', 'x'],
  Referer: ['http://localhost/', 'https://evil.example/', 'x', ''],
  'X-Http-Method-Override': ['DELETE', 'GET', 'delete', 'TRACE', 'CONNECT', 'OPTIONS', 'x y', 'HEAD', 'PATCH', ''],
  'X-Forwarded-For': ['10.0.0.1', '127.0.0.1', 'x', '10.0.0.1, ::1', '\xff', ''],
  Forwarded: ['for=10.0.0.1'],
  'X-Forwarded-Proto': ['https'],
  'X-Forwarded-Host': ['evil.example'],
  'Cache-Control': ['no-cache', 'max-age=0', 'no-cacheable'],
  'X-Prometheus-Scrape-Timeout-Seconds': ['0.001', '1', '1e308', '-1', 'NaN', '9'],
  'X-Svc-Hops': ['1', '-1', 'x', '1e400'],
  traceparent: ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', '00-x', 'ff-0', ''],
  Range: ['bytes=0-1'],
  'If-None-Match': ['*'],
  'If-Modified-Since': ['Sat, 21 Nov 2026 00:00:00 GMT'],
  'Accept-Encoding': ['gzip, br', 'identity;q=0'],
  'Content-Encoding': ['gzip', 'deflate', 'identity', 'br, gzip', 'x'],
  TE: ['trailers'],
  Trailer: ['X-Ss-Id'],
  'Max-Forwards': ['0'],
  'Keep-Alive': ['timeout=0'],
  'User-Agent': ['PRTG', '', '\xe9'],
  ['__proto__']: ['x'],
  constructor: ['x'],
}

const usual = fc
  .constantFrom(...Object.entries(values))
  .chain(([name, all]) => fc.constantFrom(...all).map((value): Header => [name, value]))

const host = fc.oneof(
  { weight: 30, arbitrary: fc.constantFrom('localhost', '127.0.0.1:8790', '[::1]', 'LOCALHOST:1') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'evil.example',
      '',
      'localhost:99999',
      'localhost:123456',
      'a b',
      '127.0.0.1.',
      'x@localhost',
      '[::1',
      '[::ffff:127.0.0.1]',
      '\xff',
      '127.1',
      '<b>',
      'localhost:65536',
    ),
  },
)

/** Headers that are refused for their size or form. */
const strange: fc.Arbitrary<readonly Header[]> = fc.oneof(
  fc.constantFrom<readonly Header[]>(
    ...[
      Array.from({ length: 70 }, (_, i): Header => [`X-${i}`, 'x']),
      [['X-Large', 'x'.repeat(9_000)] as Header],
      [['Host', 'localhost'] as Header],
      [['Content-Type', 'text/csv'] as Header, ['Content-Type', 'text/csv'] as Header],
      [['Authorization', 'Bearer x'] as Header, ['authorization', 'Bearer y'] as Header],
      [['Expect', 'x'] as Header],
      [['Connection', 'close'] as Header],
      [['Connection', 'upgrade'] as Header, ['Upgrade', 'websocket'] as Header],
      [['X-Correlation-Id', 'an id with spaces'] as Header],
    ],
  ),
  // A line end would make another header of it; everything else is sent as it is.
  text.map((value): readonly Header[] => [['X-Odd', utf8(value).replaceAll(/[\r\n]/g, '')]]),
)

/** All but those that the length of the body and the correlation id need. */
export const headers: fc.Arbitrary<readonly Header[]> = fc
  .tuple(
    host,
    fc.constantFrom(...credentials),
    fc.oneof(
      { weight: 5, arbitrary: fc.constant([]) },
      { weight: 5, arbitrary: fc.array(usual, { minLength: 1, maxLength: 3 }) },
    ),
    fc.oneof({ weight: 25, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: strange }),
  )
  .map(([name, credential, more, odd]) => [['Host', name], ...credential, ...more, ...odd])
