import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { ProbeError } from '../../../src/core/base/probe-error.ts'
import {
  parseBytes,
  parseDuration,
  parsePercent,
  readSettings,
  type Secret,
  type Setting,
  type SettingsContext,
  type SettingsSpec,
  writeBytes,
  writeDuration,
} from '../../../src/core/base/settings/index.ts'
import { didYouMean } from '../../../src/core/base/suggest.ts'
import { files } from '../../support/engine/files.ts'

const nowhere: SettingsContext = { env: {}, folder: '/' }

/** The value that a setting reads, or the problem that it reports. */
function readSetting(setting: object, value: unknown, context = nowhere): unknown {
  const spec = { it: { doc: 'A thing', ...setting } as Setting }
  const { values, problems } = readSettings(spec, { it: value }, context)
  return problems.length === 0 ? values.it : problems.map(({ path, message }) => [path.join('.'), message].join(' '))
}

test.each([
  ['250ms', 250],
  ['5s', 5_000],
  ['1.5 s', 1_500],
  ['2m', 120_000],
  ['48h', 172_800_000],
  ['30d', 2_592_000_000],
])('the duration %s is %d ms', (written, ms) => {
  expect(readSetting({ type: 'duration' }, written)).toBe(ms)
})

test('a duration without a unit asks for one', () => {
  expect(readSetting({ type: 'duration' }, 5)).toEqual(['it is 5, without a unit: write 5s or 5ms'])
  for (const invalid of ['5', '5 weeks', '-5s', '5sec', '', 's', '1e3s', '1h30m', [], {}, true]) {
    const [problem] = readSetting({ type: 'duration' }, invalid) as string[]
    expect(problem).toMatch(/^it must be written like 250ms, 5s, 2m, 48h or 30d, not /)
  }
  expect(readSetting({ type: 'duration' }, '9999999d')).toEqual(['it is longer than 3650d: give less'])
})

test.each([
  ['512B', 512],
  ['64KiB', 65_536],
  ['64KB', 65_536],
  ['512MB', 512 * 2 ** 20],
  ['10GB', 10 * 2 ** 30],
  ['0.5TiB', 2 ** 39],
])('%s is %d bytes: a megabyte is 2^20 bytes', (written, bytes) => {
  expect(readSetting({ type: 'bytes' }, written)).toBe(bytes)
})

test('bytes without a unit ask for one', () => {
  expect(readSetting({ type: 'bytes' }, 10)).toEqual(['it is 10, without a unit: write 10KiB or 10MB'])
  expect(readSetting({ type: 'bytes' }, '10 gigs')).toEqual([
    'it must be written like 512B, 64KiB, 512MB or 10GB, not "10 gigs"',
  ])
})

test('numbers are written as they are read', () => {
  for (const ms of [0, 1, 250, 1_500, 60_000, 5_400_000, 86_400_000]) expect(parseDuration(writeDuration(ms))).toBe(ms)
  for (const bytes of [0, 1, 1_000, 1_024, 3 * 2 ** 30]) expect(parseBytes(writeBytes(bytes))).toBe(bytes)
  expect(parsePercent('80.5 %')).toBe(80.5)
})

test('a percentage may have its sign or not', () => {
  const percent = { type: 'threshold', unit: 'percent' }
  expect(readSetting(percent, '80%')).toEqual({ limit: 80 })
  expect(readSetting(percent, 80)).toEqual({ limit: 80 })
  expect(readSetting(percent, '80')).toEqual(['it must be written like 80% or 80, not "80"'])
  expect(readSetting(percent, -1)).toEqual(['it must be written like 80% or 80, not -1'])
})

test('a bare threshold is the limit alone', () => {
  const latency = { type: 'threshold', unit: 'duration', default: { warn: 1_000, limit: 3_000 } }
  expect(readSetting(latency, '5s')).toEqual({ limit: 5_000 })
  expect(readSetting(latency, { warn: '2s', limit: '5s' })).toEqual({ warn: 2_000, limit: 5_000 })
})

test('half a threshold keeps the other half, and off removes it', () => {
  const latency = { type: 'threshold', unit: 'duration', default: { warn: 1_000, limit: 3_000 } }
  expect(readSetting(latency, { warn: '2s' })).toEqual({ warn: 2_000, limit: 3_000 })
  expect(readSetting(latency, { limit: '9s' })).toEqual({ warn: 1_000, limit: 9_000 })
  expect(readSetting(latency, { warn: 'off', limit: '9s' })).toEqual({ warn: undefined, limit: 9_000 })
  expect(readSetting(latency, 'off')).toEqual({})
})

test('a threshold that fails before it warns is refused, in both directions', () => {
  const most = { type: 'threshold', unit: 'duration', default: { warn: 1_000, limit: 3_000 } }
  const least = { type: 'threshold', unit: 'percent', default: { warn: 20, limit: 10 } }
  const invalid = ['it would fail before it warns: swap warn and limit']
  expect(readSetting(most, { warn: '5s', limit: '2s' })).toEqual(invalid)
  expect(readSetting(least, { warn: 5, limit: 10 })).toEqual(invalid)
  expect(readSetting(least, { warn: 30, limit: 15 })).toEqual({ warn: 30, limit: 15 })
})

test('a threshold names the half that is wrong', () => {
  const latency = { type: 'threshold', unit: 'duration' }
  expect(readSetting(latency, { warn: 5, limit: '3s', wran: 1 })).toEqual([
    'it.wran is not a setting here: did you mean `warn`?',
    'it.warn is 5, without a unit: write 5s or 5ms',
  ])
})

test('days may be a number or a duration', () => {
  expect(readSetting({ type: 'threshold', unit: 'days', isMinimum: true }, { warn: 20, limit: '72h' })).toEqual({
    warn: 20,
    limit: 3,
  })
})

test('numbers stay within their range', () => {
  const port = { type: 'integer', min: 1, max: 65_535 }
  expect(readSetting(port, 65_535)).toBe(65_535)
  expect(readSetting(port, 0)).toEqual(['it is 0: give 1 to 65535'])
  expect(readSetting(port, 1.5)).toEqual(['it must be a whole number, not 1.5'])
  expect(readSetting(port, '80')).toEqual(['it must be a number: remove the quotes'])
  expect(readSetting(port, Number.NaN)).toEqual(['it must be a whole number, not NaN'])
  expect(readSetting({ type: 'number', min: 0 }, -1)).toEqual(['it is -1: give 0 or more'])
  expect(readSetting({ type: 'number', max: 5 }, 6)).toEqual(['it is 6: give 5 or less'])
  expect(readSetting({ type: 'number' }, Number.POSITIVE_INFINITY)).toEqual(['it must be a number, not Infinity'])
})

test('text that YAML reads as another type asks for quotes', () => {
  expect(readSetting({ type: 'text' }, 1.1)).toEqual(['it must be text: put it in quotes'])
  expect(readSetting({ type: 'text' }, true)).toEqual(['it must be text: put it in quotes'])
  expect(readSetting({ type: 'text' }, ['a'])).toEqual(['it must be text, not a list'])
  expect(readSetting({ type: 'text' }, ' ')).toEqual(['it is empty: give it a value'])
  expect(readSetting({ type: 'text', pattern: /^a+$/ }, 'b')).toEqual(['it has the invalid value "b": A thing'])
})

test('a flag is true or false, and nothing similar', () => {
  expect(readSetting({ type: 'flag' }, false)).toBe(false)
  expect(readSetting({ type: 'flag' }, 'yes')).toEqual(['it must be true or false (without quotes), not "yes"'])
})

test('an invalid choice suggests a similar one', () => {
  const choice = { type: 'choice', values: ['disable', 'require', 'verify-full'] }
  expect(readSetting(choice, 'require')).toBe('require')
  expect(readSetting(choice, 'Requier')).toEqual([
    'it must be one of disable, require, verify-full, not "Requier": did you mean require?',
  ])
})

test('one text abbreviates a list of one, and a whole number its text', () => {
  expect(readSetting({ type: 'texts' }, 'a')).toEqual(['a'])
  expect(readSetting({ type: 'texts' }, ['2xx', 404])).toEqual(['2xx', '404'])
  expect(readSetting({ type: 'texts' }, 200)).toEqual(['200'])
  expect(readSetting({ type: 'texts' }, ['a', 1.1, null])).toEqual([
    'it.1 must be text: put it in quotes',
    'it.2 must be text, not nothing',
  ])
  expect(readSetting({ type: 'texts' }, { a: 1 })).toEqual(['it must be a list of texts, not a map'])
})

test('a map contains texts, and values that read the same as text', () => {
  expect(readSetting({ type: 'map' }, { Accept: 'text/plain', Empty: '', '$.count': 5, '$.ok': true })).toEqual({
    Accept: 'text/plain',
    Empty: '',
    '$.count': '5',
    '$.ok': 'true',
  })
  expect(readSetting({ type: 'map' }, { Version: 1.1 })).toEqual(['it.Version must be text: put it in quotes'])
  expect(readSetting({ type: 'map' }, ['a'])).toEqual(['it must be a map (`name: text`), not a list'])
})

test('a map contains no credentials', () => {
  for (const header of ['Authorization', 'proxy-authorization', 'Cookie']) {
    expect(readSetting({ type: 'map' }, { [header]: 'Bearer hunter2' })).toEqual([
      `it.${header} contains a credential: use a setting that accepts {env: NAME} or {file: /path}`,
    ])
  }
})

test('groups are checked at each level', () => {
  const fields = {
    port: { type: 'integer', required: true, doc: 'Port' },
    on: { type: 'flag', default: true, doc: '' },
  }
  expect(readSetting({ type: 'group', fields }, { port: 1 })).toEqual({ port: 1, on: true })
  expect(readSetting({ type: 'group', fields }, { prot: 1 })).toEqual([
    'it.prot is not a setting here: did you mean `port`?',
    'it.port is missing: add `port:` (Port)',
  ])
  expect(readSetting({ type: 'groups', fields }, [{ port: 1 }, { port: 'x' }])).toEqual([
    'it.1.port must be a number, not "x"',
  ])
  expect(readSetting({ type: 'groups', fields }, { port: 1 })).toEqual([
    'it must be a list (lines that begin with "- "), not a map',
  ])
})

test('a URL is limited to its protocols, and never contains or repeats a password', () => {
  const url = { type: 'url', protocols: ['postgres', 'postgresql'] }
  expect(readSetting(url, 'postgres://monitor@db1/orders')).toBe('postgres://monitor@db1/orders')
  const holds = ['it contains a password: remove it, and refer to it with {env: NAME} or {file: /path}']
  expect(readSetting(url, 'postgres://monitor:hunter2@db1/orders')).toEqual(holds)
  expect(readSetting(url, 'postgres://db1/orders?sslmode=require&Password=hunter2')).toEqual(holds)
  expect(readSetting(url, 'https://u:hunter2@db1')).toEqual([
    'it begins with https:, but must begin with postgres:// or postgresql://',
  ])
  expect(readSetting(url, 'monitor:hunter2@db1')).toEqual([
    'it begins with monitor:, but must begin with postgres:// or postgresql://',
  ])
  expect(readSetting(url, '//hunter2 db1')).toEqual([
    'it has no scheme (postgres:// or postgresql://): write it like postgres://host:port/path',
  ])
  expect(readSetting(url, 'postgres:orders')).toEqual(['it has no host: write it after the //'])
})

test('a text in a list may be empty only where the setting allows it', () => {
  const list = ['-a', '', 'b']
  expect(readSetting({ type: 'texts' }, list)).toEqual(['it.1 is empty: give it a value'])
  expect(readSetting({ type: 'texts', allowsEmpty: true }, list)).toEqual(list)
})

test('defaults replace omitted settings, and only those', () => {
  const spec = {
    host: { type: 'text', required: true, doc: 'Host' },
    port: { type: 'integer', default: 80, doc: 'Port' },
    note: { type: 'text', doc: 'Note' },
  } as const satisfies SettingsSpec
  expect(readSettings(spec, { host: 'a' }, nowhere).values).toEqual({ host: 'a', port: 80 })
  expect(readSettings(spec, undefined, nowhere).problems).toEqual([
    { path: ['host'], message: 'is missing: add `host:` (Host)' },
  ])
  expect(readSettings(spec, { host: 'a', port: null }, nowhere).problems).toEqual([
    { path: ['port'], message: 'has no value: give it one, or remove the line' },
  ])
  for (const invalid of ['text', ['a'], 5]) {
    expect(readSettings(spec, invalid, nowhere).problems[0]?.message).toMatch(/^must be settings/)
  }
})

test('names that each object inherits are unknown like any others', () => {
  const raw = JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1, "toString": 2}') as unknown
  const { problems } = readSettings({}, raw, nowhere)
  expect(problems.map(({ path }) => path[0])).toEqual(['__proto__', 'constructor', 'toString'])
  expect('polluted' in {}).toBe(false)
})

test('all problems are reported together', () => {
  const spec = { a: { type: 'integer', doc: 'A' }, b: { type: 'duration', doc: 'B' } } as const
  expect(readSettings(spec, { a: 'x', b: 1, c: 2 }, nowhere).problems.map(({ path }) => path)).toEqual([
    ['c'],
    ['a'],
    ['b'],
  ])
})

const secretOf = (value: unknown, context: SettingsContext): Secret =>
  readSetting({ type: 'secret' }, value, context) as Secret

test('a secret in the file itself is refused and not repeated', () => {
  expect(readSetting({ type: 'secret' }, 'hunter2')).toEqual([
    'it must refer to a secret, not contain it: write {env: NAME}, {file: /path} or {keychain: name}',
  ])
  for (const invalid of [
    12_345,
    ['hunter2'],
    { env: 'hunter2!' },
    { env: 'A', file: '/hunter2' },
    { plain: 'hunter2' },
    { env: 5 },
    { file: '' },
    { file: 'a\nhunter2' },
    {},
  ]) {
    const problems = readSetting({ type: 'secret' }, invalid) as string[]
    expect(problems).toHaveLength(1)
    expect(problems[0]).not.toContain('hunter2')
  }
  expect(readSetting({ type: 'secret' }, { file: '~/key' })).toEqual([
    'it.file begins with "~", which is not expanded: write the absolute path',
  ])
})

test('a secret is read from the variable when it is used, and is never shown', async () => {
  const env: Record<string, string> = { DB_PASSWORD: 'first' }
  const secret = secretOf({ env: 'DB_PASSWORD' }, { env, folder: '/' })
  expect(await secret.reveal(files)).toBe('first')
  env['DB_PASSWORD'] = 'rotated'
  expect(await secret.reveal(files)).toBe('rotated')
  const output = [
    String(secret),
    JSON.stringify({ secret }),
    inspect({ secret }, { depth: 9, showHidden: true }),
  ].join()
  expect(output).not.toContain('rotated')
  expect(secret.origin).toBe('{env: DB_PASSWORD}')
})

test('a missing variable warns when it is validated and fails when it is used', async () => {
  const { values, problems, warnings } = readSettings(
    { password: { type: 'secret', doc: 'Password' } },
    { password: { env: 'NOT_SET' } },
    { env: { NOT_SET: '' }, folder: '/' },
  )
  expect(problems).toEqual([])
  expect(warnings).toEqual([
    { path: ['password'], message: 'names the variable NOT_SET, which is not set here: checks that need it will fail' },
  ])
  const error: unknown = await values.password?.reveal(files).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(ProbeError)
  expect(error).toMatchObject({
    fault: 'internal',
    message: 'the secret {env: NOT_SET} cannot be read: the variable NOT_SET is set but empty',
  })
})

async function scratch(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'svc-secret-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

test('a secret file is read at each use, beside svc.yaml when its path is relative, one newline trimmed', async () => {
  const folder = await scratch()
  const secret = secretOf({ file: 'key' }, { env: {}, folder })
  for (const [content, expected] of [
    ['s3cret\n', 's3cret'],
    ['s3cret\r\n', 's3cret'],
    ['s3cret\n\n', 's3cret\n'],
    [' s3cret ', ' s3cret '],
    ['x'.repeat(65_536), 'x'.repeat(65_536)],
  ] as const) {
    await writeFile(join(folder, 'key'), content)
    expect(await secret.reveal(files)).toBe(expected)
  }
})

test('an unusable secret file reports why, and none of its content', async () => {
  const folder = await scratch()
  await writeFile(join(folder, 'large'), 's3cret'.repeat(20_000))
  await writeFile(join(folder, 'empty'), '\n')
  await writeFile(join(folder, 'binary'), Buffer.from([0x73, 0xff]))
  execFileSync('sh', ['-c', 'mkfifo "$0"', join(folder, 'pipe')])
  for (const [file, why] of [
    ['missing', 'it does not exist'],
    ['large', 'it is larger than 64 KiB: is it the right file?'],
    ['empty', 'the file is empty'],
    ['binary', 'it is not UTF-8 text'],
    ['pipe', 'it is not a regular file'],
    ['/dev/zero', 'it is not a regular file'],
    ['.', 'it is not a regular file'],
  ] as const) {
    const error: unknown = await secretOf({ file }, { env: {}, folder })
      .reveal(files)
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ProbeError)
    expect(error).toMatchObject({ fault: 'internal', message: `the secret {file: ${file}} cannot be read: ${why}` })
  }
})

test('a missing secret file is a warning where svc can check', () => {
  const { warnings } = readSettings(
    { key: { type: 'secret', doc: 'Key' } },
    { key: { file: '/no/such/key' } },
    { env: {}, folder: '/', fileWarning: () => 'which does not exist: checks that need it will fail' },
  )
  expect(warnings.map(({ message }) => message)).toEqual([
    'names the file /no/such/key, which does not exist: checks that need it will fail',
  ])
})

test('a mistyped word suggests the correct one', () => {
  const words = ['timeout', 'retries', 'dependsOn', 'depth', 'deployment']
  expect(didYouMean('timeuot', words)).toBe('timeout')
  expect(didYouMean('DEPENDSON', words)).toBe('dependsOn')
  expect(didYouMean('depl', words)).toBe('deployment')
  expect(didYouMean('password', words)).toBeUndefined()
  expect(didYouMean('x'.repeat(10_000), words)).toBeUndefined()
  expect(didYouMean('Sqll', ['App', 'Sql'])).toBe('Sql')
})
