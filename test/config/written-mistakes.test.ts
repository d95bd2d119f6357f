import { chown, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readSettings, type Setting, type SettingsSpec } from '../../src/core/base/settings/index.ts'
import { configurableKinds, loadKind } from '../../src/core/checks/plan/index.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import { file, folder, here, load, problemsOf, refused } from './given.ts'
import { type Planted, planted } from './planted-mistakes.ts'
import { runTimeFaults } from './run-time-faults.ts'

/** The settings of an entry, found where they begin: `types.App[0].url` → its place and what is said of it. */
const subject = ([setting]: Planted['says']): string =>
  setting === '' ? 'types.App[0]' : `types.App[0].${setting}`.replaceAll('.[', '[')

async function findings({ entry, env = {}, files = {} }: Planted) {
  const home = await folder()
  for (const [name, content] of Object.entries(files)) await file(join(home, name), content)
  const yaml = `types:\n  App:\n    - ${entry.replaceAll('FOLDER', home)}\n`
  const path = await file(join(home, 'svc.yaml'), yaml)
  const config = await loadConfig({ ...here(env, home), path, tolerant: true })
  const strip = (line: string): string => line.replace(/^.*?svc\.yaml:/, '')
  const mistakes = config.invalidEntries.flatMap(({ mistakes: own }) =>
    own.map(({ line, column, message }) => `${line}:${column}: ${message}`),
  )
  return { mistakes, warnings: config.warnings.map(strip) }
}

describe('each fault of a run whose cause is in svc.yaml is found when the file is read', () => {
  test.each(planted)('H73 $says.0 of $entry', async (row) => {
    const { mistakes, warnings } = await findings(row)
    const [finding = '', ...more] = row.warns ? warnings : mistakes
    expect(more).toEqual([])
    const [, line, column, message = ''] = /^(\d+):(\d+): (.*)$/s.exec(finding) ?? []
    expect([finding, line]).toEqual([finding, '3'])
    // A mistake of one setting is placed at its key or its value, and not at the entry.
    if (row.says[0] !== '') expect(Number(column)).toBeGreaterThan(7)
    expect(message.slice(0, subject(row.says).length)).toBe(subject(row.says))
    const text = message.slice(subject(row.says).length + 1)
    if (typeof row.says[1] === 'string') expect(text).toBe(row.says[1])
    else expect(text).toMatch(row.says[1])
    expect(row.warns ? mistakes : []).toEqual([])
  })

  test('H73 every fault of class data or internal in the source is planted, or known to have another cause', async () => {
    const text = await readFile(new URL('faults-of-others.txt', import.meta.url), 'utf8')
    const others = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    const all = [...new Set(planted.flatMap(({ sites }) => sites)), ...others].toSorted()
    // A new fault belongs to `planted`, with a svc.yaml that causes it, or to faults-of-others.txt.
    expect(runTimeFaults().toSorted()).toEqual(all)
  })

  test('there are enough of them, so that neither search has become blind', () => {
    expect(runTimeFaults().length).toBeGreaterThan(300)
    expect(planted.length).toBeGreaterThan(60)
  })
})

/** Every setting of every kind, with its path. */
const settingsOf = (spec: SettingsSpec, path: readonly string[] = []): readonly (readonly [string, Setting])[] =>
  Object.entries(spec).flatMap(([name, setting]) => {
    const here = [...path, name]
    return 'fields' in setting ? settingsOf(setting.fields, here) : [[here.join('.'), setting] as const]
  })
const kinds = [await loadKind('host'), ...(await configurableKinds())]
const settings = kinds.flatMap((kind) =>
  settingsOf(kind.settings).map(([path, setting]) => ({ kind: kind.name, path, setting })),
)

describe('settings that are written in every kind', () => {
  test('H73 every setting with a file of certificates, and every map with names of headers, is looked at', () => {
    const unmarked = settings.filter(({ path, setting }) => {
      if (/(?:^|\.)caFile$/.test(path)) return !('file' in setting && setting.file === 'certificates')
      // grpc has a check of its own for its metadata.
      return /(?:^|\.)headers?$/.test(path) && setting.type === 'map' && !setting.mistake
    })
    expect(unmarked.map(({ kind, path }) => `${kind} ${path}`)).toEqual(['grpc headers'])
  })

  test('H74 a threshold says which side of it is a fault, in its words and for its mistakes', () => {
    const minimum = /^(?:Minimum|Available|Free|How long until|Number of standbys)/
    const unmarked = settings.flatMap(({ kind, path, setting }) => {
      if (setting.type !== 'threshold') return []
      const { warn, limit } = setting.default ?? {}
      if (warn !== undefined && limit !== undefined && warn !== limit) return []
      return (setting.isMinimum === true) === minimum.test(setting.doc) ? [] : [`${kind} ${path}: ${setting.doc}`]
    })
    expect(unmarked).toEqual([])
  })
})

const http = (more: string): string => `types:\n  App:\n    - {kind: http, url: 'http://127.0.0.1/', ${more}}\n`
const query = (more: string): string =>
  `types:\n  Sql:\n    - {kind: sqlite, path: /srv/a.db, queries: [{name: q, sql: SELECT 1, ${more}}]}\n`

describe('settings that contradict each other', () => {
  test.each([
    [
      query('atLeast: 5, atMost: 3'),
      'queries[0].atLeast is 5, above `atMost:` (3), so that every value breaks one of them',
    ],
    [
      query('rows: 1, leastRows: 2'),
      'queries[0].leastRows is 2, above `rows:` (1), so that every value breaks one of them',
    ],
    [query('atMost: {warn: 5, limit: 3}'), 'queries[0].atMost would fail before it warns: swap warn and limit'],
    [query('atLeast: {warn: 3, limit: 5}'), 'queries[0].atLeast would fail before it warns: swap warn and limit'],
    [
      http("measure: [{name: m, path: '$.a[*]', least: 3, count: 1}]"),
      'measure[0].least is 3, above `count:` (1), so that every value breaks one of them',
    ],
    [http('json: {$.a: x, "$[\'a\']": y}'), `json.$['a'] means the same as "$.a": keep one of them`],
    [http('headers: {X-A: x, x-a: y}'), 'headers.x-a means the same as "X-A": keep one of them'],
    [http('header: {Server: x, server: y}'), 'header.server means the same as "Server": keep one of them'],
    [http('status: []'), 'status is an empty list, which nothing meets: name one, or remove the line'],
    [
      http("json: {$.a: '>= x'}"),
      'json.$.a cannot be judged: >= x is not a comparison with a number: write >= 3, or use a /pattern/ for a text that begins this way',
    ],
  ])('H74 %j is refused at its place', async (yaml, message) => {
    const [problem = '', ...more] = problemsOf(await refused(yaml))
    expect(more).toEqual([])
    expect(problem.replace(/^3:\d+: types\.\w+\[0\]\./, '')).toBe(message)
  })

  test('H74 what only looks like one of them is accepted', async () => {
    for (const yaml of [
      query('atLeast: 3, atMost: 3'),
      query('atLeast: {warn: 5}, atMost: 3'),
      query('atMost: {warn: 3, limit: 3}'),
      http(
        "json: {'$.checks.database:ping[0]': ok, '$.build version': '1', \"$['a.b']\": x, '$.2xx': '>= 1', '$.a-b[*].c': y}",
      ),
      http("version: {json: '$.build-info:version', expected: '1'}"),
      http('header: {X-Served-By: /a/}'),
      query('expect: x').replace('SELECT 1', `"SELECT ';' -- ; SELECT 2"`),
    ])
      expect((await load(yaml)).warnings).toEqual([])
  })
})

const reload = { matched: [], emptyInclude: false }

test('H73 a reload and validate refuse such a mistake, and svc serve starts with a monitor that says it', async () => {
  const home = await folder()
  const path = await file(join(home, 'svc.yaml'), http('json: {state: ok}'))
  const says = 'types.App[0].json.state is not a JSON path such as $.a.b[0].c: write $.state'
  for (const options of [{}, { reload }])
    await expect(loadConfig({ ...here({}, home), path, ...options })).rejects.toThrow(says)
  const { types } = await loadConfig({ ...here({}, home), path, tolerant: 'entries' })
  expect(types.App?.monitors.map(({ kind, settings: own }) => [kind.name, own])).toEqual([
    ['configuration', expect.objectContaining({ level: 'not checked', message: expect.stringContaining(says) })],
  ])
})

describe('the files that svc.yaml names', () => {
  const yaml = (more: string): string => http(`token: {file: t}, ${more}`)

  test('H73 they refuse neither a start nor a reload', async () => {
    const home = await folder()
    const path = await file(join(home, 'svc.yaml'), yaml('caFile: /nowhere/ca.pem'))
    for (const options of [{}, { tolerant: 'entries' as const }, { reload }]) {
      const { types, warnings } = await loadConfig({ ...here({}, home), path, ...options })
      expect(types.App?.monitors.map(({ kind }) => kind.name)).toEqual(['http'])
      expect(warnings).toHaveLength(2)
    }
  })

  test.runIf(process.getuid?.() === 0)('H73 one of another account is not looked at', async () => {
    const home = await folder()
    const path = await file(join(home, 'svc.yaml'), yaml('depth: Basic'))
    await file(join(home, 't'), 'a\nb')
    await chown(join(home, 't'), 65_534, 65_534)
    const { warnings } = await loadConfig({ ...here({}, home), path })
    expect(warnings).toEqual([
      expect.stringMatching(
        /token names the file t, which belongs to another account, so that svc has not looked at it$/,
      ),
    ])
    await chown(join(home, 't'), 0, 0)
    expect((await loadConfig({ ...here({}, home), path })).warnings.join()).toContain('cannot contain')
  })

  test('H73 a folder in the place of a file is not read, and a large file is left to the monitors', async () => {
    const home = await folder()
    await mkdir(join(home, 'd'))
    await file(join(home, 'large.pem'), 'x'.repeat(65 * 1_024))
    const at = async (name: string) => {
      const path = await file(join(home, 'svc.yaml'), http(`caFile: ${join(home, name)}`))
      return (await loadConfig({ ...here({}, home), path })).warnings
    }
    expect(await at('d')).toEqual([expect.stringContaining('is not a regular file')])
    expect(await at('large.pem')).toEqual([])
  })
})

test('H73 the mistakes of one file are all found at once, each at its place', async () => {
  const lines = problemsOf(
    await refused(`types:
  App:
    - {kind: http, name: a2, url: 'http://127.0.0.1:8080/', json: {'$..status': ok}}
    - {kind: http, name: a3, url: 'http://127.0.0.1:8080/', json: {'state': ok}}
    - {kind: http, name: a4, url: 'http://127.0.0.1:8080/', headers: {'X Trace': one}}
    - {kind: http, name: a5, url: 'http://127.0.0.1:8080/', headers: {X-Trace: "one\\ntwo"}}
    - {kind: http, name: a6, url: 'http://127.0.0.1:8080/', version: {json: 'build version', expected: '1.0'}}
    - {kind: http, name: a8, url: 'http://127.0.0.1:8080/', json: {'$.status': '!= /pass/'}}
  Sql:
    - {kind: postgres, name: b1, url: 'postgres://mon@127.0.0.1/app?sslmode=require'}
    - {kind: postgres, name: b2, url: 'postgres://mon@127.0.0.1/app', queries: [{name: two, sql: 'SELECT 1; SELECT 2', atMost: 3}]}
`),
  )
  expect(lines.map((line) => line.split(' ', 2).join(' '))).toEqual([
    '3:68: types.App[0].json.$..status',
    '4:68: types.App[1].json.state',
    '5:71: types.App[2].headers.X',
    '6:71: types.App[3].headers.X-Trace',
    '7:71: types.App[4].version.json',
    '8:68: types.App[5].json.$.status',
    '10:34: types.Sql[0].url',
    '11:7: types.Sql[1]',
  ])
})

test('H73 sslmode in the URL of a database means what it means in that of the store', async () => {
  const { databaseTarget } = await import('../../src/core/checks/database/index.ts')
  const mode = (parameter: string) =>
    databaseTarget({ url: `postgres://monitor@db1/app${parameter}`, tls: { mode: 'auto' } }, 5_432).tls.mode
  expect([mode(''), mode('?sslmode=disable'), mode('?sslmode=verify-full')]).toEqual(['auto', 'off', 'verify'])
})

test('H73 a file that is read needs no second reading without a warning', () => {
  const names: string[] = []
  const fileWarning = ({ path, content }: { readonly path: string; readonly content: string }): undefined =>
    void names.push(`${content} ${path}`)
  const spec = { a: { type: 'secret', doc: '' }, b: { type: 'text', file: 'certificates', doc: '' } } as const
  const read = readSettings(spec, { a: { file: 's' }, b: '/c.pem' }, { env: {}, folder: '/', fileWarning })
  expect([names, read.warnings]).toEqual([['secret s', 'certificates /c.pem'], []])
})
