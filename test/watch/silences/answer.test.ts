import { expect, test } from 'vitest'
import { silenceOperations } from '../../../src/core/service/silences/silence-answer.ts'
import { SilenceKeeper } from '../../../src/core/service/silences/silence-keeper.ts'

/** 02:30 on a Sunday. */
const now = Date.UTC(2026, 10, 29, 2, 30)
const window = (monitors: readonly string[]) => ({
  ...{ monitors, when: '0 2 * * SUN', timezone: 'UTC', forMs: 3_600_000, reason: 'patches' },
})

test('M8 a caller who reads one type learns how many windows of svc.yaml concern others', async () => {
  const config = {
    types: {},
    silences: [window(['Sql/*']), window(['App/*', 'Sql/postgres orders']), window(['App/*'])],
  } as never
  const rows = { list: async () => [] } as never
  const keeper = new SilenceKeeper({ config, store: { rows: async () => rows, now: () => now }, now: () => now })
  const { getSilences } = silenceOperations({
    keeper,
    config: () => config,
    subjects: async () => [],
    mute: async () => [],
  })
  const { Silences, HiddenSilences } = await getSilences({ reads: (type) => type === 'Sql', readsAll: false })
  expect(Silences?.map(({ Monitors }) => Monitors)).toEqual([['Sql/*'], ['Sql/postgres orders']])
  expect(HiddenSilences).toBe(1)
  expect(await getSilences({ reads: () => true, readsAll: true })).toMatchObject({ HiddenSilences: undefined })
})

test('M9 an acknowledgement names one monitor: a pattern would silence faults that nobody has seen', async () => {
  const types = { Sql: { monitors: [{ name: 'postgres orders' }, { name: 'http *.example.com' }] } }
  const config = { types, silences: [] } as never
  const added: unknown[] = []
  const keeper = { now, add: async (entries: readonly unknown[]) => added.push(...entries) } as never
  const subject = (monitor: string) => ({
    subject: { key: monitor, type: 'Sql', monitor, check: 'connect' },
    state: { level: 'failed', incident: { id: monitor, level: 'failed' } },
  })
  const subjects = async () => [subject('postgres orders'), subject('http *.example.com')] as never
  const { acknowledge } = silenceOperations({ keeper, config: () => config, subjects, mute: async () => [] })
  const ack = async (Monitor: string) => await acknowledge({ Monitor, Reason: 'INC-7' }, { who: 'ann' } as never)
  await expect(ack('Sql/*')).rejects.toThrow('must name one monitor')
  await expect(ack('*')).rejects.toThrow('must name one monitor')
  expect(added).toEqual([])
  await ack('Sql/http *.example.com')
  await ack('postgres orders')
  expect(added).toHaveLength(2)
})
