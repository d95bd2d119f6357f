import { expect, test } from 'vitest'
import {
  readSettings,
  type Setting,
  type SettingsSpec,
  type Threshold,
  type ThresholdUnit,
} from '../../src/core/base/settings/index.ts'
import { configurableKinds, loadKind } from '../../src/core/checks/plan/index.ts'

/** A wrong value, and what svc says of it: below the setting itself, or below a part of it. */
type Mistake = readonly [value: unknown, message: string, part?: string]

const withoutUnit = {
  duration: [5, 'is 5, without a unit: write 5s or 5ms'],
  bytes: [10, 'is 10, without a unit: write 10KiB or 10MB'],
} as const
const likes: Readonly<Record<ThresholdUnit, string>> = {
  duration: '250ms, 5s, 2m, 48h or 30d',
  bytes: '512B, 64KiB, 512MB or 10GB',
  percent: '80% or 80',
  days: '20 or 20d',
  count: '100',
  ratio: '0.5',
}
const figures = (unit: ThresholdUnit): readonly Mistake[] => [
  ['much', `must be written like ${likes[unit]}, not "much"`],
  ...(unit === 'duration' || unit === 'bytes' ? [withoutUnit[unit]] : []),
]
const within = ({ min, max }: { readonly min?: number; readonly max?: number }): readonly Mistake[] => {
  const range = max === undefined ? `${min} or more` : min === undefined ? `${max} or less` : `${min} to ${max}`
  return [
    ...(min === undefined ? [] : [[min - 1, `is ${min - 1}: give ${range}`] as const]),
    ...(max === undefined ? [] : [[max + 1, `is ${max + 1}: give ${range}`] as const]),
  ]
}
const unitOf: Readonly<Record<ThresholdUnit, string>> = {
  ...{ duration: 'd', bytes: 'GB', percent: '%', days: 'd' },
  ...{ count: '', ratio: '' },
}
/** Warn and limit in the opposite order of the default. */
function crossed(unit: ThresholdUnit, { warn, limit }: Threshold): readonly Mistake[] {
  if (warn === undefined || limit === undefined || warn === limit) return []
  const [first, second] = [9, 2].map((figure) => (unitOf[unit] === '' ? figure : `${figure}${unitOf[unit]}`))
  const value = warn < limit ? { warn: first, limit: second } : { warn: second, limit: first }
  return [[value, 'would fail before it warns: swap warn and limit']]
}

const texts: readonly Mistake[] = [
  [{ a: 1 }, 'must be text, not a map'],
  [1.1, 'must be text: put it in quotes'],
  [' ', 'is empty: give it a value'],
]

const negations: readonly Mistake[] = [
  [{ a: 1 }, 'must be text, or {not: text}'],
  [{ not: 'a', or: 'b' }, 'must be text, or {not: text}'],
  [{ not: ['a'] }, 'must be text, not a list', '.not'],
]

/** The wrong values of each type of setting. */
const mistakes: { readonly [T in Setting['type']]: (setting: Extract<Setting, { type: T }>) => readonly Mistake[] } = {
  text: ({ pattern, doc, negatable }) => [
    ...(negatable ? [...negations, ...texts.slice(1)] : texts),
    ...(pattern?.test('\u0007') === false ? [['\u0007', `has the invalid value "\\u0007": ${doc}`] as const] : []),
  ],
  url: ({ orSecret, protocols }) => {
    const [first = '', ...others] = protocols.map((protocol) => `${protocol.replace(/:$/, '')}://`)
    const schemes = [first, ...others].join(' or ')
    return [
      ...texts.slice(orSecret ? 1 : 0),
      ['nonsense', `has no scheme (${schemes}): write it like ${first}host:port/path`],
      ['nonsense://h', `begins with nonsense:, but must begin with ${schemes}`],
      [`${first}u:hunter2@h`, 'contains a password: remove it, and refer to it with {env: NAME} or {file: /path}'],
    ]
  },
  number: (setting) => [['5', 'must be a number: remove the quotes'], ...within(setting)],
  integer: (setting) => [
    ['5', 'must be a number: remove the quotes'],
    [1.5, 'must be a whole number, not 1.5'],
    ...within(setting),
  ],
  flag: () => [['true', 'must be true or false (without quotes), not "true"']],
  duration: () => figures('duration'),
  countOrOff: (setting) => [['5', 'must be a whole number or off, not "5"'], ...within(setting)],
  bytes: () => figures('bytes'),
  secret: () => [
    ['hunter2', 'must refer to a secret, not contain it: write {env: NAME}, {file: /path} or {keychain: name}'],
    [{ env: 'A', file: '/x' }, 'names its secret twice, by env and file: keep one of them'],
  ],
  choice: ({ values }) => [[3, `must be one of ${values.join(', ')}, not 3`]],
  texts: () => [
    [{ a: 'b' }, 'must be a list of texts, not a map'],
    [[[]], 'must be text, not a list', '[0]'],
  ],
  map: ({ negatable, secrets }) => [
    ...(negatable ? negations.map(([raw, message, part = '']) => [{ a: raw }, message, `.a${part}`] as const) : []),
    ['text', 'must be a map (`name: text`), not "text"'],
    ...(secrets
      ? [
          [
            { a: ['b'] },
            'must refer to a secret, not contain it: write {env: NAME}, {file: /path} or {keychain: name}',
            '.a',
          ] as const,
        ]
      : ([
          [{ a: ['b'] }, 'must be text, not a list', '.a'],
          [
            { Cookie: 'x' },
            'contains a credential: use a setting that accepts {env: NAME} or {file: /path}',
            '.Cookie',
          ],
        ] as const)),
  ],
  template: ({ mistake }) => [
    [{ a: { env: '' } }, 'must be a name: write {env: NAME}, {file: /path} or {keychain: name}', '.a.env'],
    [['{other}'], mistake?.('{other}') ?? '', '[0]'],
  ],
  threshold: ({ unit, default: usual = {} }) => [
    ...figures(unit),
    [{ warn: 'much' }, `must be written like ${likes[unit]}, not "much"`, '.warn'],
    [{ limits: 1 }, 'is not a setting here: did you mean `limit`?', '.limits'],
    ...crossed(unit, usual),
  ],
  every: () => [[[], 'must be a duration, off, or a map such as {Standard: 1m, Advanced: 1h}, not a list']],
  group: () => [[[], 'must be settings (`name: value`), not a list']],
  groups: () => [[{}, 'must be a list (lines that begin with "- "), not a map']],
}

/** A monitor, or a part of one, with a wrong value of each setting that has one left, and the problems of it. */
type Round = { readonly raw: unknown; readonly problems: readonly string[] }

const noValue = 'has no value: give it one, or remove the line'
function roundsOf(name: string, setting: Setting): readonly Round[] {
  const own = (mistakes[setting.type] as (setting: Setting) => readonly Mistake[])(setting)
  const rounds = [...own, [null, noValue] as const].map(([raw, message, part = '']: Mistake) => ({
    raw,
    problems: [`${name}${part} ${message}`],
  }))
  if (setting.type === 'group') return [...rounds, ...allRounds(name, setting.fields)]
  if (setting.type !== 'groups') return rounds
  const items = allRounds(`${name}[0]`, setting.fields)
  return [...rounds, ...items.map(({ raw, problems }) => ({ raw: [raw], problems }))]
}

function allRounds(prefix: string, spec: SettingsSpec): readonly Round[] {
  const names = Object.keys(spec).sort()
  const unknown = names.length > 15 ? '; LISTING lists the settings' : `, or use one of ${names.join(', ')}`
  const columns = Object.entries(spec).map(([name, setting]) => ({
    name,
    missing: setting.required ? [`${prefix}.${name} is missing: add \`${name}:\` (${setting.doc})`] : [],
    rounds: roundsOf(`${prefix}.${name}`, setting),
  }))
  return Array.from({ length: Math.max(...columns.map(({ rounds }) => rounds.length)) + 1 }, (_, index) => ({
    raw: {
      ...Object.fromEntries(columns.flatMap(({ name, rounds }) => (rounds[index] ? [[name, rounds[index].raw]] : []))),
      nonsense: 1,
    },
    problems: [
      `${prefix}.nonsense is not a setting here: remove it${unknown}`,
      ...columns.flatMap(({ rounds, missing }) => rounds[index]?.problems ?? missing),
    ],
  }))
}

test.each([await loadKind('host'), ...(await configurableKinds())])(
  'K11 every setting of the kind $name refuses each wrong value of its type, and names its place',
  ({ settings }) => {
    for (const { raw, problems } of allRounds('', settings)) {
      const read = readSettings(settings, raw, { env: {}, folder: '/', listing: 'LISTING' })
      const messages = read.problems.map(
        ({ path, message }) =>
          `${path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('')} ${message}`,
      )
      expect(messages.toSorted()).toEqual(problems.toSorted())
    }
  },
)

/** The places of lists whose entries have names: no two of them are equal in a report. */
const namedLists = (spec: SettingsSpec, path: readonly string[] = []): readonly (readonly string[])[] =>
  Object.entries(spec).flatMap(([key, setting]) => {
    if (setting.type === 'group') return namedLists(setting.fields, [...path, key])
    return setting.type === 'groups' && 'name' in setting.fields ? [[...path, key]] : []
  })
const lists = (await configurableKinds()).flatMap(({ name, settings }) =>
  namedLists(settings).map((path) => ({ kind: name, list: path.join('.'), path, settings })),
)

test.each(lists)('K11 two entries of $list of the kind $kind with one name are a mistake', ({ path, settings }) => {
  const problemsOf = (entries: readonly object[]) => {
    const raw = path.reduceRight((inner: unknown, key) => ({ [key]: inner }), entries)
    return readSettings(settings, raw, { env: {}, folder: '/', listing: 'LISTING' }).problems
  }
  const expectedProblem = {
    path: [...path, 1, 'name'],
    message: 'is "a", as in entry 1 of the list: give it another name',
  }
  expect(problemsOf([{ name: 'a' }, { name: 'a' }])).toContainEqual(expect.objectContaining(expectedProblem))
  expect(problemsOf([{ name: 'a' }, { name: 'b' }]).map(({ message }) => message)).not.toContain(
    expectedProblem.message,
  )
})

test('there are such lists in several kinds', () => {
  expect(new Set(lists.map(({ kind }) => kind)).size).toBeGreaterThan(5)
})
