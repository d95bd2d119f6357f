import { expect, test } from 'vitest'
import { promtool, promtoolMissing } from '../../support/servers/prometheus.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { xmllint, xmllintMissing } from '../../support/wire/xmllint.ts'
import { render } from './render.ts'
import { measured, samples } from './samples.ts'

peerSuite(promtoolMissing, 'prometheus as promtool reads it', () => {
  test.each(Object.keys(samples))('%s is without an error and without a finding of its linter', async (sample) => {
    const output = await render('prometheus', samples[sample] ?? [])
    const { status, stdout, stderr } = promtool(['check', 'metrics'], output)
    expect([stdout, stderr, status]).toEqual(['', '', 0])
  })
})

peerSuite(xmllintMissing, 'junit as its readers validate it', () => {
  test.each(Object.keys(samples))('%s conforms to the schema of JUnit reports', async (sample) => {
    expect(xmllint(await render('junit', samples[sample] ?? []))).toEqual({ status: 0, findings: '- validates\n' })
  })

  test.each([
    ['a test case without a name', ' name="round trip"', ''],
    ['a time with a unit', ' time="1.205"', ' time="1.2 s"'],
    ['an unknown element', /(<\/?)system-out>/g, '$1output>'],
    ['a second root', /(<\/?)testsuites\b/g, '$1suites'],
  ] as const)('the schema refuses %s', async (_, from, to) => {
    const report = await render('junit', [measured])
    const changed = report.replace(from, to)
    expect(changed).not.toBe(report)
    expect(xmllint(changed).status).toBe(3)
  })
})
