import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import { checked, type RunKindOptions, runKind, secret } from '../../support/engine/run-kind.ts'
import { conflictingRow, type PlantedFault, subscribed } from '../../support/faults/postgres-faults.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { memory } from '../../support/store/readings.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

const word = 'correct horse'

suiteWith(postgresMissing, 'PostgreSQL: logical subscriptions', () => {
  let publisher: PostgresServer
  let subscriber: PostgresServer
  let subscription: PlantedFault
  const check = async (
    settings: Partial<Values<typeof postgres.settings>> = {},
    options: RunKindOptions = {},
  ): Promise<Result> =>
    checked(
      await runKind(
        postgres,
        { url: subscriber.url('monitor'), password: secret(word), ...settings },
        'Standard',
        options,
      ),
      'subscriptions',
    )
  beforeAll(async () => {
    publisher = await startPostgres(['wal_level=logical'])
    subscriber = await startPostgres()
    await subscriber.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'`)
    expect(await check()).toMatchObject({ status: 'ok', message: 'none' })
    subscription = await subscribed(publisher, subscriber)
  })
  afterAll(async () => {
    await subscription.end()
    await subscriber.remove()
    await publisher.remove()
  })

  test('PostgreSQL: a subscription whose worker hears from its publisher is sound, without any privilege', async () => {
    const result = await check()
    expect(result).toMatchObject({ status: 'ok', measurement: { unit: 'milliseconds', warn: 35_000, limit: 60_000 } })
    expect(result.message).toMatch(/^events in postgres: last message from its publisher .* ago/)
    expect(await check({ subscriptions: { limit: -1 } })).toMatchObject({ status: 'failed', fault: 'threshold' })
  })
  test('PostgreSQL: errors of a subscription that grow from run to run warn once, and fail when they grow again', async () => {
    let at = Date.now()
    let id = 2
    const options = memory(() => at)
    /** Runs each minute. Between two runs, the worker fails and recovers, or does not. */
    const next = async (fails: boolean, status: Result['status']): Promise<Result> => {
      if (fails) {
        id += 1
        await (await conflictingRow(publisher, subscriber, id)).end()
      }
      at += 60_000
      return await until(async () => {
        const result = await check({}, options)
        return result.status === status && result
      }, 60_000)
    }
    await next(false, 'ok')
    const once = await next(true, 'warning')
    expect(once.message).toMatch(/^events in postgres: \d+ new errors? of its workers within \d/)
    expect(await next(true, 'failed')).toMatchObject({
      fault: 'data',
      message: expect.stringMatching(/^events in postgres: \d+ new errors? of its workers within 2 min$/),
    })
    await next(false, 'ok')
  })
})
