import { expect, test } from 'vitest'
import { measured } from '../checks/reports/samples.ts'
import { ask, failing, healthy, openSite, question, withSite } from './site.ts'

const run = measured.Run
if (!run) throw new Error('The sample has no run')
const runType = 'application/vnd.svc.run+json;version=1'
const health = async (_: unknown, call: Parameters<typeof failing>[0]) => {
  call.note?.({ ageSeconds: 3, runId: 'r', run })
  return failing(call)
}

test('F5 a caller that prefers the run document gets it, with the status and the age of the answer', async () => {
  await withSite({ health }, async ({ port }) => {
    const got = await ask(port, question, { headers: { accept: `${runType}, application/json` } })
    expect([got.status, got.headers['content-type'], got.headers['age']]).toEqual([503, runType, '3'])
    expect(JSON.parse(got.text)).toEqual(JSON.parse(JSON.stringify(run)))
    const suppressed = await ask(port, `${question}&SuppressErrorCodes=true`, { headers: { accept: runType } })
    expect(suppressed.status).toBe(200)
  })
})

test.each([
  ['application/json'],
  ['*/*'],
  ['application/vnd.svc.run+json'],
  ['application/vnd.svc.run+json;version=2, application/json'],
  [`application/json, ${runType}`],
  [`${runType};q=0.5, application/json`],
])('F5 Accept: %s is answered with the document of the interface', async (accept) => {
  const { port } = await openSite({ health })
  const got = await ask(port, question, { headers: { accept } })
  expect(got.headers['content-type']).toBe('application/json; charset=utf-8')
  expect(got.json.Status).toBe('Failure')
})

test('a format in the path or the query overrides Accept', async () => {
  const { port } = await openSite({ health })
  const csv = await ask(port, `${question}&format=csv`, { headers: { accept: runType } })
  expect(csv.headers['content-type']).toContain('text/csv')
  const json = await ask(port, question.replace('?', '.json?'), { headers: { accept: runType } })
  expect(json.headers['content-type']).toContain('application/json')
})

test('an answer without a run uses the document of the interface', async () => {
  await withSite({ health: async (_, call) => healthy(call) }, async ({ port }) => {
    const got = await ask(port, question, { headers: { accept: runType } })
    expect([got.headers['content-type'], got.json.Status]).toEqual(['application/json; charset=utf-8', 'Success'])
  })
})
