import { describe, expect, test } from 'vitest'
import { load, problemsOf, refused } from './given.ts'

const receivers = `notify:
  - {name: am, alertmanager: {urls: ["https://am1:9093"]}}
  - {name: oncall, pagerduty: {routingKey: {env: PD}}}
  - {name: pager, pagerduty: {routingKey: {env: PD}, drillRoutingKey: {env: PD_DRILL}}}
`
const problems = async (drill: string, before = receivers): Promise<string> =>
  problemsOf(await refused(`${before}drill: ${drill}\n`)).join('\n')

describe('M14 drill: of svc.yaml', () => {
  test('has an interval or a cron expression, and the receivers', async () => {
    const env = { PD: 'a', PD_DRILL: 'b' }
    const { drill } = await load(`${receivers}drill: {every: 7d, through: [am, pager]}\n`, env)
    expect(drill).toEqual({ every: 604_800_000, timezone: 'UTC', through: ['am', 'pager'] })
    const cron = await load(`${receivers}drill: {when: '0 10 * * TUE', timezone: Europe/Berlin, through: [am]}\n`, env)
    expect(cron.drill).toEqual({ when: '0 10 * * TUE', timezone: 'Europe/Berlin', through: ['am'] })
    expect((await load(`${receivers}drill: {through: [am]}\n`, env)).drill).toEqual({
      timezone: 'UTC',
      through: ['am'],
    })
    expect((await load(receivers, env)).drill).toBeUndefined()
  })

  test('names each mistake with the way out', async () => {
    expect(await problems('{every: 7d}')).toContain('drill.through is missing')
    expect(await problems('{every: 7d, through: []}')).toContain('name a receiver of notify:')
    expect(await problems('{every: 7d, through: [am, am]}')).toContain('is there twice: remove one')
    expect(await problems('{every: 7d, through: [a]}')).toMatch(/drill\.through\[0\] .*\ba\b.*am/)
    expect(await problems('{every: 7d, through: [am]}', '')).toContain('drill.through[0]')
    expect(await problems('{every: 7d, through: [oncall]}')).toContain(
      'oncall has no drillRoutingKey: a drill would page people',
    )
    expect(await problems('{every: 7d, when: "@weekly", through: [am]}')).toContain(
      'cannot be used beside every: keep one',
    )
    expect(await problems('{when: "0 10 * *", through: [am]}')).toContain('has 4 fields: write 5')
    expect(await problems('{when: "0 10 31 2 *", through: [am]}')).toContain('is never: write a time that exists')
    expect(await problems('{when: "@weekly", timezone: Berlin, through: [am]}')).toContain('is not a time zone')
    expect(await problems('{every: 10m, through: [am]}')).toContain('give 1h to 90d')
  })

  test('a mistake in a receiver is reported once, and not as a receiver that does not exist', async () => {
    const text = await problems('{every: 7d, through: [am]}', 'notify:\n  - {name: am, alertmanager: {urls: []}}\n')
    expect(text).toContain('notify[0].alertmanager.urls is empty')
    expect(text).not.toContain('drill.through')
  })

  test('W24 the URL of serve.ping is a secret', async () => {
    expect(problemsOf(await refused('serve: {ping: "https://ping.example.com/secret-1"}')).join('\n')).not.toContain(
      'secret-1',
    )
    const { serve } = await load('serve: {ping: {env: PING_URL}}', { PING_URL: 'https://ping.example.com/secret-1' })
    expect(JSON.stringify(serve)).not.toContain('secret-1')
  })
})
