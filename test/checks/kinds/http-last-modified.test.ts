import { expect, test } from 'vitest'
import { noRedaction } from '../../../src/core/base/net/text.ts'
import { lastModified } from '../../../src/core/checks/kinds/http/checks.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import { finds } from '../../support/engine/finds.ts'
import { checked, evaluated, runKind } from '../../support/engine/run-kind.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'

const hourMs = 3_600_000
type Settings = Parameters<typeof runKind<typeof http.settings>>[1]

/** Runs the kind against a server whose content was changed so many milliseconds ago. */
async function look(agoMs: number | undefined, input: Settings, mode: Parameters<typeof runKind>[2] = 'Standard') {
  await using server = await httpPeer((_, response) => {
    if (agoMs !== undefined) response.setHeader('Last-Modified', new Date(Date.now() - agoMs).toUTCString())
    response.end('feed')
  })
  return await runKind(http, { url: `${server.origin}/feed.xml`, ...input }, mode)
}
const limits = { lastModified: { warn: hourMs, limit: 24 * hourMs } }

test('content that changed recently is ok, with its age as the value', async () => {
  const result = checked(await look(600_000, limits), 'last modified')
  expect(result).toMatchObject({ status: 'ok', measurement: { unit: 'milliseconds', limit: 24 * hourMs } })
  expect(result.measurement?.value).toBeGreaterThanOrEqual(600_000)
  expect(result.measurement?.value).toBeLessThan(660_000)
  expect(result.message).toMatch(/^127\.0\.0\.1:\d+: content changed 10(?:\.\d)? min ago \(warn 1 h, fail 24 h\)$/)
})

test('old content warns, and fails beyond the limit', async () => {
  await finds(look(2 * hourMs, limits), 'last modified warning')
  await finds(look(25 * hourMs, limits), 'last modified failed (threshold)')
})

test('a server without Last-Modified does not count as one with new content', () =>
  finds(look(undefined, limits), ['last modified failed (data)', / sent no Last-Modified header$/]))

test('content from the future fails, beyond the difference of the clocks', async () => {
  await finds(look(-2 * hourMs, limits), 'last modified failed (data): …reports a change of its content in the future…')
  await finds(look(-10_000, limits), ['last modified ok', { measurement: { value: 0 } }])
})

test('only its own setting enables it, from Standard on or from judgeFrom on', async () => {
  const names = async (input: Settings, mode?: Parameters<typeof runKind>[2]) =>
    (await look(25 * hourMs, input, mode)).map(({ check }) => check)
  expect(await names({})).not.toContain('last modified')
  expect(await names({ lastModified: {} })).not.toContain('last modified')
  expect(await names(limits, 'Basic')).not.toContain('last modified')
  expect(await names({ ...limits, judgeFrom: 'Basic' }, 'Basic')).toContain('last modified')
  expect(await names({ ...limits, method: 'HEAD' })).toContain('last modified')
})

const noon = new Date('1994-11-06T12:00:00Z')
test.each([
  ['Sun, 06 Nov 1994 11:00:00 GMT', 'ok'],
  ['Sunday, 06-Nov-94 11:00:00 GMT', 'ok'],
  ['Sun Nov  6 11:00:00 1994', 'ok'],
  ['Sun, 06 Nov 1994 10:59:59 GMT', 'warning'],
  ['Sun, 06 Nov 1994 11:00:00', 'failed'],
  ['Sun, 06 Nov 1994 11:00:00 +0100', 'failed'],
  ['1994', 'failed'],
  ['yesterday', 'failed'],
  ['', 'failed'],
  ['Sun, 99 Nov 1994 11:00:00 GMT', 'failed'],
])('at noon the header %j is %s', (header, status) => {
  const observation = { address: 'a:1', header, received: noon, redact: noRedaction }
  const [result] = evaluated(lastModified, observation, { lastModified: { warn: hourMs, limit: 24 * hourMs } })
  expect(result?.status).toBe(status)
})
