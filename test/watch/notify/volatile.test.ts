import { expect, onTestFinished, test } from 'vitest'
import { notifyPart } from '../../../src/core/service/notify/notify.ts'
import { QuietKeeper } from '../../../src/core/service/quiet/quiet-keeper.ts'
import { statesPart } from '../../../src/core/service/watch/states.ts'
import type { OutboxRows } from '../../../src/core/watch/outbox/index.ts'
import { faultOf, load } from '../../config/given.ts'
import { neverWatching } from '../../support/notify/notice.ts'
import { outboxRows } from '../../support/notify/outbox-rows.ts'

const mail = (more: string): string =>
  `notify: [{name: ops, email: {server: "smtps://m", from: a@b.c, to: [d@e.f]}${more}}, {name: chat, webhook: {url: "https://a.example"}}]`

/** The part of a server that starts with this file. `rows`: undefined without a store. */
async function part(yaml: string, rows: OutboxRows | undefined) {
  const config = await load(yaml)
  const quiet = new QuietKeeper({ config, store: undefined, now: Date.now })
  const options = { config, version: '0', states: statesPart(), quiet, watching: neverWatching }
  const opened = notifyPart({ ...options, rows: rows && (async () => rows) })
  onTestFinished(async () => await opened.close?.())
  return opened
}

test('W23 without a store, svc serve does not start with a receiver of mail that is not volatile', async () => {
  const { open } = await part(mail(''), undefined)
  const fault = await faultOf((async () => await open?.())())
  expect(fault.message).toBe('The receiver ops (email) needs a store, without which each restart repeats its messages')
  expect(fault.details.hints?.join(' ')).toContain('volatile: true')
})

test('W23 without a store, svc serve does not reload with a receiver of mail that is not volatile', async () => {
  const { open, reload } = await part(mail(', volatile: true'), undefined)
  await open?.()
  const fault = await faultOf((async () => await reload?.(await load(mail(''))))())
  expect(fault.message).toContain('ops (email)')
  const commit = await reload?.(await load(mail(', volatile: true')))
  expect(commit).toBeTypeOf('function')
})

test('W23 with a store, a receiver of mail need not be volatile', async () => {
  const { open, reload } = await part(mail(''), outboxRows())
  await open?.()
  expect(await reload?.(await load(mail('')))).toBeTypeOf('function')
})
