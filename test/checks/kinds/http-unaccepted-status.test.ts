import { expect, test } from 'vitest'
import { reallyFailed } from '../../../src/core/checks/engine/index.ts'
import { checks } from '../../../src/core/checks/kinds/http/checks.ts'
import { ofAnswer } from '../../../src/core/checks/kinds/http/connection.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { runKind } from '../../support/engine/run-kind.ts'
import { http as page, peer, replies } from '../../support/faults/faults.ts'

/** Settings that call for every check of headers and body. */
const everything = {
  contains: 'Welcome',
  header: { 'X-Site': 'shop' },
  version: { expected: '1.2' },
  json: { '$.status': 'up' },
  xml: { '/a': 'b' },
  measure: [{ name: 'queue', path: '$.queue', atMost: '10' }],
  links: [{ name: 'next', path: '$.next' }],
  lastModified: { warn: 3_600_000 },
}
type Settings = Partial<Parameters<typeof runKind<typeof http.settings>>[1]>

async function look(status: number, body: string, settings: Settings, mode: ExecutionMode = 'Standard') {
  const type = { 'Content-Type': 'application/json' }
  await using there = await peer(replies(page(status, body, type)))
  return await runKind(http, { url: `http://127.0.0.1:${there.port}/`, ...settings }, mode)
}
const outcomes = (results: Awaited<ReturnType<typeof look>>) =>
  results.map(({ check, status, notChecked }) => `${check}: ${notChecked ?? status}`)

test('H16 after a status that is not accepted, every check of headers and body is not checked, and one check fails', async () => {
  const results = await look(500, '<h1>Error</h1>', everything)
  expect(results.filter(reallyFailed).map(({ check, message }) => (check === 'status' ? check : message))).toEqual([
    'status',
  ])
  const prevented = results.filter(({ notChecked }) => notChecked === 'status').map(({ check }) => check)
  const onAnswer = checks.filter(
    (check) => 'depthWith' in check && check.depthWith === ofAnswer.depthWith && !('health' in check.results),
  )
  for (const { results: names } of onAnswer) expect(prevented).toContain(Object.keys(names)[0])
  expect(prevented).toContain('links')
})

test('H16 what svc.yaml accepts is evaluated, whatever the status', async () => {
  const settings = { contains: 'Welcome', status: ['500'] }
  expect(outcomes(await look(500, 'Welcome', settings))).toEqual(expect.arrayContaining(['status: ok', 'content: ok']))
  expect(outcomes(await look(500, 'Sorry', settings))).toEqual(
    expect.arrayContaining(['status: ok', 'content: failed']),
  )
})

const unhealthy = JSON.stringify({ Status: 'Failure', StatusMessage: 'disk full', FailedMonitorCount: 1 })

test.each<[what: string, status: number, body: string, mode: ExecutionMode, settings: Settings, failing: string[]]>([
  ['its document fails', 503, unhealthy, 'Standard', {}, ['health']],
  ['a page of a proxy fails as no document', 503, '<h1>Sorry</h1>', 'Standard', {}, ['health']],
  ['a document that contradicts its status fails', 503, '{"Status":"Success"}', 'Standard', {}, ['health']],
  ['another status fails by itself', 500, unhealthy, 'Standard', {}, ['status']],
  ['Basic, which evaluates no document, fails by the status', 503, unhealthy, 'Basic', {}, ['status']],
  ['Basic with judgeFrom fails by the document', 503, unhealthy, 'Basic', { judgeFrom: 'Basic' }, ['health']],
])('H16 of a server that is not healthy, with health: %s', async (_, status, body, mode, settings, failing) => {
  const results = await look(status, body, { health: true, ...settings }, mode)
  expect(results.filter(reallyFailed).map(({ check }) => check)).toEqual(failing)
})
