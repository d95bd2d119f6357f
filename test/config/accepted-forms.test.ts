import { describe, expect, test } from 'vitest'
import { readSettings, type Setting, type SettingsSpec } from '../../src/core/base/settings/index.ts'
import { configurableKinds } from '../../src/core/checks/plan/index.ts'

const kinds = await configurableKinds()
const context = { env: {}, folder: '/' }

/** Every table of settings that has one of this name: those of the kinds and those of the groups in them. */
function tables(name: string): readonly (readonly [string, SettingsSpec])[] {
  const inside = (at: string, spec: SettingsSpec): readonly (readonly [string, SettingsSpec])[] => [
    ...(Object.hasOwn(spec, name) ? [[at, spec] as const] : []),
    ...Object.entries(spec).flatMap(([key, setting]: [string, Setting]) =>
      setting.type === 'group' || setting.type === 'groups' ? inside(`${at} ${key}`, setting.fields) : [],
    ),
  ]
  return kinds.flatMap((kind) => inside(kind.name, kind.settings))
}

/** The value of one setting, and the problems with it alone. */
function read(name: string, spec: SettingsSpec, raw: Readonly<Record<string, unknown>>) {
  const { [name]: own } = spec
  const table = { [name]: own as Setting }
  const { values, problems, configured } = readSettings(table, raw, context)
  return { value: (values as Readonly<Record<string, unknown>>)[name], problems, configured: [...configured] }
}

describe('K11 tls: off, tls: false and tls: {mode: off} mean the same', () => {
  test.each(tables('tls'))('for %s', (_, spec) => {
    const off = read('tls', spec, { tls: 'off' })
    expect(off.problems).toEqual([])
    expect(JSON.stringify(off.value)).toMatch(/^(false|"off"|\{"mode":"off"\})$/)
    for (const form of [false, { mode: 'off' }]) expect(read('tls', spec, { tls: form })).toEqual(off)
    expect(read('tls', spec, { tls: 'perhaps' }).problems).toHaveLength(1)
  })

  test('for more kinds than one', () => {
    expect(tables('tls').length).toBeGreaterThan(5)
  })
})

describe('K11 user is accepted for username', () => {
  test.each(tables('username'))('for %s', (_, spec) => {
    const read = (raw: object) => readSettings({ username: spec['username'] as Setting }, raw, context)
    expect(read({ user: 'u' })).toEqual(read({ username: 'u' }))
    expect(read({ user: 'u' })).toMatchObject({ values: { username: 'u' }, problems: [] })
    expect([...read({ user: 'u' }).configured]).toEqual(['username'])
    expect(read({ user: 'u', username: 'v' }).problems).toEqual([
      { path: ['user'], message: expect.stringContaining('is not a setting here') },
    ])
  })

  test('and no kind has user as the name of a setting', () => {
    expect(tables('user')).toEqual([])
    expect(tables('username').length).toBeGreaterThan(6)
  })
})

describe('K11 a host that no resolver can know is refused', () => {
  test.each(tables('host'))('for %s', (_, spec) => {
    const problems = (host: string) => read('host', spec, { host }).problems.map(({ message }) => message)
    for (const host of ['db1', 'db_1.internal.', 'bücher.example', '10.0.0.7', '::1', '[fe80::1]', 'fe80::1%eth0']) {
      expect(problems(host)).toEqual([])
    }
    expect(problems('$HOST')).toEqual([
      'contains the variable $HOST, which svc does not replace: write the value itself',
    ])
    for (const variable of [`\${HOST}`, '{{ .Values.host }}', '%HOST%', 'db.$ZONE']) {
      expect(problems(variable).join()).toMatch(/^contains the variable .*, which svc does not replace/)
    }
    expect(problems('db1:5432')).toEqual(['contains a port: write `host: db1` and `port: 5432`'])
    expect(problems('https://db1:5432/x')).toEqual(['is a URL: write only its host, db1'])
    for (const invalid of ['my host', '<your-host>', 'db1/path', '“db1”', 'a@db1']) {
      expect(problems(invalid).join()).toMatch(/^is not a host: write a name or an address/)
    }
  })
})

describe('K11 a status that no answer has is refused', () => {
  test.each(tables('status'))('for %s', (_, spec) => {
    const problems = (status: unknown) => read('status', spec, { status }).problems.map(({ message }) => message)
    expect(problems([200, '2xx', '200-299', '<500', '5XX', '200 - 204'])).toEqual([])
    expect(problems([999])).toEqual(['is "999", which no answer has: write 200, 2xx, 200-299 or <500'])
    for (const status of ['OK', '2XX-ok', '20', '6xx', '<100', '299-200', '0'])
      expect(problems([status])).toHaveLength(1)
  })
})
