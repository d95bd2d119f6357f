import { describe, expect, test } from 'vitest'
import { load, problemsOf, refused } from './given.ts'

const types = `types:
  Sql: [{kind: tcp, name: orders, host: db1, port: 5432}]
`
const one = (more: string): string => `${types}silences:\n  - {${more}}\n`
const good = 'when: "0 2 * * SUN", for: 2h, reason: patches'

describe('the section silences of svc.yaml', () => {
  test('M7 the time zone is UTC by default, and every setting is read', async () => {
    const { silences } = await load(
      `${one(`monitors: ["Sql/*"], ${good}`)}  - {monitors: tcp orders, when: "@daily", timezone: Europe/Berlin, for: 30m, reason: backup}\n`,
    )
    expect(silences).toEqual([
      { monitors: ['Sql/*'], when: '0 2 * * SUN', timezone: 'UTC', forMs: 7_200_000, reason: 'patches' },
      { monitors: ['tcp orders'], when: '@daily', timezone: 'Europe/Berlin', forMs: 1_800_000, reason: 'backup' },
    ])
  })

  test('M7 without the section nothing is silenced, and an empty one is none', async () => {
    expect((await load(types)).silences).toBeUndefined()
    expect((await load(`${types}silences:\n`)).silences).toBeUndefined()
  })

  test.for([
    ['no list', `${types}silences: {monitors: ["*"]}\n`, 'silences must be a list'],
    ['no monitors', one(good), 'silences[0].monitors is missing'],
    ['an empty list of monitors', one(`monitors: [], ${good}`), 'silences[0].monitors'],
    [
      'a monitor that does not exist',
      one(`monitors: [tcp order], ${good}`),
      'silences[0].monitors[0] is "tcp order", which is not a monitor of this file: did you mean `tcp orders`?',
    ],
    [
      'a pattern that matches nothing',
      one(`monitors: ["Sql/*", "Ftp/*"], ${good}`),
      'silences[0].monitors[1] is "Ftp/*"',
    ],
    ['no reason', one('monitors: ["*"], when: "@daily", for: 1h'), 'silences[0].reason is missing'],
    ['a blank reason', one('monitors: ["*"], when: "@daily", for: 1h, reason: " "'), 'silences[0].reason is empty'],
    [
      'a reason of 201 characters',
      one(`monitors: ["*"], when: "@daily", for: 1h, reason: ${'x'.repeat(201)}`),
      'silences[0].reason has the invalid value',
    ],
    ['31 days', one('monitors: ["*"], when: "@yearly", for: 31d, reason: x'), 'silences[0].for is 31d'],
    ['59 seconds', one('monitors: ["*"], when: "@daily", for: 59s, reason: x'), 'silences[0].for is 59s'],
    [
      'windows that touch',
      one('monitors: ["*"], when: "@daily", for: 24h, reason: x'),
      'silences[0] cannot be used: for 24 h does not end before it begins again, 24 h later',
    ],
    ['four fields', one('monitors: ["*"], when: "0 2 * *", for: 1h, reason: x'), 'has 4 fields: write 5'],
    [
      'an unknown time zone',
      one('monitors: ["*"], when: "@daily", timezone: Europe/Berlim, for: 1h, reason: x'),
      'did you mean Europe/Berlin?',
    ],
    [
      'the former name of the section',
      `${types}quiet:\n  - {monitors: ["*"], ${good}}\n`,
      'quiet is not a setting here: write `silences`',
    ],
    ['an unknown setting', one(`monitors: ["*"], ${good}, until: 4h`), 'silences[0].until is not a setting here'],
  ] as const)('M7 %s is a mistake', async ([, text, message]) => {
    expect(problemsOf(await refused(text)).join('\n')).toContain(message)
  })
})
