import { afterAll, beforeAll, expect, test } from 'vitest'
import { promtool, promtoolMissing } from '../support/servers/prometheus.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { xmllint, xmllintMissing } from '../support/wire/xmllint.ts'
import { type OutcomeFixture, outcomeFixture, outcomes } from './health-outcomes.ts'

let fixture: OutcomeFixture
beforeAll(async () => {
  fixture = await outcomeFixture()
})
afterAll(() => fixture.remove())

const answered = Object.entries(outcomes).filter(([name]) => !/nagios|usage|local file/.test(name))
peerSuite(promtoolMissing, 'each outcome of svc health in the format of Prometheus', () => {
  test.each(answered)('%s is accepted by promtool', async (_, outcome) => {
    const ran = await fixture.home.svc(['health', '-o', 'prometheus', ...outcome.args(fixture)])
    expect(ran.code).toBe(outcome.exit)
    const { status, stdout, stderr } = promtool(['check', 'metrics'], ran.stdout)
    expect([stdout, stderr, status]).toEqual(['', '', 0])
  })
})

peerSuite(xmllintMissing, 'each outcome of svc health in the format of JUnit', () => {
  test.each(answered)('%s conforms to the schema, and passes only where the exit code is 0', async (_, outcome) => {
    const { code, stdout } = await fixture.home.svc(['health', '-o', 'junit', ...outcome.args(fixture)])
    expect(xmllint(stdout)).toEqual({ status: 0, findings: '- validates\n' })
    expect([code, /<(?:failure|error) /.test(stdout)]).toEqual([outcome.exit, outcome.exit !== 0])
  })
})
