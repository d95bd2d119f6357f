import { describe, expect, test } from 'vitest'
import { load } from './given.ts'

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

  test('M17 serve.timezone changes no rule, and one warning says so where a when: has no zone', async () => {
    const source = one(`monitors: ["Sql/*"], ${good}`)
    const { silences, warnings } = await load(`${source}serve: {timezone: Europe/Berlin}\n`)
    expect(silences?.[0]?.timezone).toBe('UTC')
    expect(warnings).toEqual([
      expect.stringMatching(
        /serve\.timezone is for texts alone: a `when:` without `timezone:` is in UTC; write `timezone: Europe\/Berlin`/,
      ),
    ])
    const written = one(`monitors: ["Sql/*"], timezone: UTC, ${good}`)
    expect((await load(`${written}serve: {timezone: Europe/Berlin}\n`)).warnings).toEqual([])
    await expect(load(`${source}serve: {timezone: Berlin}\n`)).rejects.toThrow('is not a time zone: use an IANA name')
  })

  test('M7 without the section nothing is silenced, and an empty one is none', async () => {
    expect((await load(types)).silences).toBeUndefined()
    expect((await load(`${types}silences:\n`)).silences).toBeUndefined()
  })
})
