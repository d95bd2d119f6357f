import { expect, onTestFinished, test } from 'vitest'
import { operations } from '../../../src/core/protocol/index.ts'
import { formats } from '../../../src/core/protocol/wire/index.ts'
import { type OwnPage, overHttp, ownPages } from '../../../src/core/server/routes.ts'
import { ask, type Got } from '../../server/site.ts'
import { type Rehearsing, startRehearsal } from './rehearsing.ts'

const yaml = `types:
  Sql: [{kind: tcp, name: queue, host: 127.0.0.1, port: 1}]
`
const script = `ends: 10m
steps: [{at: 0s, monitor: Sql/tcp queue, fault: refused, message: no listener}]
`
/** A server that rehearses, for one test. */
async function rehearsing(): Promise<Rehearsing> {
  const rehearsal = await startRehearsal(yaml, script)
  onTestFinished(rehearsal.close)
  return rehearsal
}

type Answer = Pick<Got, 'status' | 'text'> & { readonly headers: Readonly<Record<string, unknown>> }

/** The mark of a body, by its media type. */
const bodyMarks: readonly (readonly [type: RegExp, isMarked: (text: string) => boolean])[] = [
  [/^text\/html\b/, (text) => /<title>DRILL: /.test(text) && /<body[^>]*>\n<p class="drill" role="alert">/.test(text)],
  [/^(?:text\/plain; version=0\.0\.4|application\/openmetrics-text)\b/, isLabelled],
]

function isLabelled(text: string): boolean {
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return samples.length > 0 && samples.every((line) => /^[a-z_]+\{(?:[^\\]*,)?drill="true"[,}]/.test(line))
}

/** The marks that an answer lacks. `isHealth`: its body has results. */
function lacks({ headers, status, text }: Answer, isHealth = false): readonly string[] {
  const type = String(headers['content-type'] ?? '')
  const ofType = bodyMarks.find(([own]) => own.test(type))
  const isMarked = ofType === undefined ? text.includes('DRILL: ') : ofType[1](text)
  return [
    ...(headers['svc-drill'] === 'rehearsal' ? [] : ['header']),
    ...(isMarked || (ofType === undefined && status < 400 && !isHealth) ? [] : [`body of ${type}`]),
  ]
}

const filled = (path: string): string => path.replace(/\{[^}]+\}/g, 'x')
const asks: readonly (readonly [path: string, method: string])[] = [
  ...Object.values<OwnPage>(ownPages).flatMap(({ paths, post }) =>
    paths.flatMap((path) => ['GET', ...(post ? ['POST'] : [])].map((verb) => [filled(path), verb] as const)),
  ),
  ...Object.values(operations).flatMap(({ routes }) =>
    routes.flatMap(({ path, verbs }) =>
      verbs.flatMap((verb) => Object.keys(formats).map((name) => [`${filled(path)}?format=${name}`, verb] as const)),
    ),
  ),
]

test('Y1 every page and every operation of a server that rehearses marks its answer, with every verb', async () => {
  expect(asks.length).toBeGreaterThan(60)
  const rehearsal = await rehearsing()
  const faults: string[] = []
  for (const [path, method] of asks) {
    const missing = lacks(await ask(rehearsal.port, path, { method }))
    if (missing.length > 0) faults.push(`${method} ${path}: ${missing.join(', ')}`)
  }
  expect(faults).toEqual([])
})

test('Y1 a health answer of a server that rehearses is marked in every format and media type', async () => {
  const path = '/healthcheck?ServerType=Sql&ExecutionMode=Basic'
  const run = 'application/vnd.svc.run+json;version=1'
  const requests: readonly (readonly [path: string, accept: string])[] = [
    ...[...Object.keys(formats), ...overHttp.format].map((name) => [`${path}&format=${name}`, '*/*'] as const),
    ...[...overHttp.accept.map(({ type }) => type), run].map((type) => [path, type] as const),
  ]
  expect(requests.length).toBeGreaterThan(7)
  const rehearsal = await rehearsing()
  const faults: string[] = []
  for (const [target, accept] of requests) {
    const missing = lacks(await ask(rehearsal.port, target, { headers: { accept } }), true)
    if (missing.length > 0) faults.push(`${target} ${accept}: ${missing.join(', ')}`)
  }
  expect(faults).toEqual([])
})

test('Y1 every format of /metrics has the label once on each sample', async () => {
  const rehearsal = await rehearsing()
  for (const accept of ['text/plain', 'application/openmetrics-text']) {
    const got = await ask(rehearsal.port, '/metrics', { headers: { accept } })
    expect([accept, lacks(got)]).toEqual([accept, []])
    expect(got.text).not.toMatch(/drill="true".*drill="true"/)
  }
  const { text } = await ask(rehearsal.port, '/healthcheck?ServerType=Sql&ExecutionMode=Basic&format=prometheus')
  expect(text).not.toMatch(/drill="true".*drill="true"/)
})

test('Y1 an answer without a mark is found', () => {
  const headers = { 'svc-drill': 'rehearsal' }
  const typed = (type: string, text: string): Answer => ({
    status: 200,
    headers: { ...headers, 'content-type': type },
    text,
  })
  expect(lacks({ status: 200, headers: {}, text: '' })).toEqual(['header'])
  expect(lacks(typed('text/html; charset=utf-8', '<title>Status</title><body>'))).toEqual([
    'body of text/html; charset=utf-8',
  ])
  const samples = 'svc_a{drill="true"} 1\nsvc_b{x="{drill=\\"true\\"}"} 1\n'
  expect(lacks(typed('text/plain; version=0.0.4', samples))).toEqual(['body of text/plain; version=0.0.4'])
  expect(lacks(typed('application/json', '{}'), true)).toEqual(['body of application/json'])
})
