import { expect, onTestFinished, test } from 'vitest'
import { notifyPart } from '../../../src/core/service/notify/notify.ts'
import { SilenceKeeper } from '../../../src/core/service/silences/silence-keeper.ts'
import { statesPart } from '../../../src/core/service/watch/states.ts'
import { receiverKinds } from '../../../src/core/watch/notify/index.ts'
import type { OutboxRows } from '../../../src/core/watch/outbox/index.ts'
import { faultOf, load } from '../../config/given.ts'
import { neverWatching } from '../../support/notify/notice.ts'
import { outboxRows } from '../../support/notify/outbox-rows.ts'
import { receiverRows } from '../../support/notify/receiver-rows.ts'

const needy = receiverKinds.filter(({ needsStore }) => needsStore).map(({ name }) => name)
const ofKind = (kind: string, volatile: boolean): string =>
  JSON.stringify({
    notify: [
      { name: 'ops', kind, ...receiverRows[kind]?.settings, ...(volatile ? { volatile } : {}) },
      { name: 'chat', kind: 'webhook', url: 'https://a.example' },
    ],
  })

/** The part of a server that starts with this file. `rows`: undefined without a store. */
async function part(yaml: string, rows: OutboxRows | undefined) {
  const config = await load(yaml)
  const silences = new SilenceKeeper({ config, store: undefined, now: Date.now })
  const options = { config, version: '0', states: statesPart(), silences, watching: neverWatching }
  const opened = notifyPart({ ...options, rows: rows && (async () => rows) })
  onTestFinished(async () => await opened.close?.())
  return opened
}

test('W23 mail and PagerDuty need a store', () => {
  expect(needy).toEqual(expect.arrayContaining(['email', 'pagerduty']))
})

test.for(needy)(
  'W23 without a store, svc serve does not start with a receiver of %s that is not volatile',
  async (kind) => {
    const { open } = await part(ofKind(kind, false), undefined)
    const fault = await faultOf((async () => await open?.())())
    expect(fault.message).toBe(
      `The receiver ops (${kind}) needs a store, without which each restart repeats its messages`,
    )
    expect(fault.details.hints?.join(' ')).toContain('volatile: true')
  },
)

test.for(needy)(
  'W23 without a store, svc serve does not reload with a receiver of %s that is not volatile',
  async (kind) => {
    const { open, reload } = await part(ofKind(kind, true), undefined)
    await open?.()
    const fault = await faultOf((async () => await reload?.(await load(ofKind(kind, false))))())
    expect(fault.message).toContain(`ops (${kind})`)
    const commit = await reload?.(await load(ofKind(kind, true)))
    expect(commit).toBeTypeOf('function')
  },
)

test.for(needy)('W23 with a store, a receiver of %s need not be volatile', async (kind) => {
  const { open, reload } = await part(ofKind(kind, false), outboxRows())
  await open?.()
  expect(await reload?.(await load(ofKind(kind, false)))).toBeTypeOf('function')
})
