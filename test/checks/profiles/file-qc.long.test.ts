import { describe, expect, test } from 'vitest'
import { load, problemsOf, refused } from '../../config/given.ts'
import { complaints, runType } from '../../support/engine/run-types.ts'
import { badClip, goodClip, type QcState, qc, soundQc } from '../../support/simulated/qc.ts'
import { unhurried, wallClock } from '../../support/suite/until.ts'

async function look(change: (state: QcState) => void, more = '', env = { QC_KEY: 'qc-key-123' }) {
  const state = soundQc()
  change(state)
  await using server = await qc(state)
  const at = (path: string): string => `${server.origin}${path}`
  const yaml = `types:
  Qc:
    - profile: file-qc
      name: qc
      host: 127.0.0.1
      port: ${server.port}
      url: ${at('/')}
      token: {env: QC_KEY}
      tokenHeader: X-Api-Key
      licence: ${at('/licence')}
      workers: ${at('/workers')}
      tasks: ${at('/tasks')}
${more}`
  const reports = await runType(yaml, 'Qc', 'Advanced', { env })
  return { names: reports.map(({ name }) => name), failed: complaints(reports), warned: complaints(reports, 'warning') }
}

const days = (n: number): Date => new Date(Date.now() + n * 86_400_000 + 60_000)

describe('the profile file-qc', () => {
  test('a simulated quality control without problems passes, and omitted parameters omit their checks', async () => {
    expect(await look(() => {})).toEqual({
      names: ['tcp qc port', 'http qc web', 'http qc licence', 'http qc workers', 'http qc tasks'],
      failed: [],
      warned: [],
    })
  })

  test.each([
    [
      'whose licence ends in 6 days',
      (s: QcState) => Object.assign(s, { expires: days(6) }),
      /licence: 6 d left \(warn below 30 d, fail below 7 d\)$/,
    ],
    ['without a free seat', (s: QcState) => Object.assign(s, { freeSeats: 0 }), /free seats: 0 \(fail below 1\)$/],
    [
      'without a worker',
      (s: QcState) => Object.assign(s, { workers: [{ state: 'offline' }] }),
      /workers online: 0 \(fail below 1\)$/,
    ],
    [
      'with a stuck task',
      (s: QcState) => s.tasks.push({ state: 'running', updated: new Date(Date.now() - 1_200_000).toISOString() }),
      /tasks without progress: oldest 20 min \(fail 15 min\)$/,
    ],
  ])('a simulated quality control %s fails with that reason', async (_, change, message) => {
    const { failed } = await look(change)
    expect(failed).toHaveLength(1)
    expect(failed[0]).toMatch(message)
  })

  test('a simulated licence of 29 days is a warning, and is ok at its boundaries', async () => {
    const { failed, warned } = await look((state) => Object.assign(state, { expires: days(29) }))
    expect(failed).toEqual([])
    expect(warned).toEqual([expect.stringMatching(/licence: 29 d left \(warn below 30 d, fail below 7 d\)$/)])
    expect((await look((state) => Object.assign(state, { expires: days(30) }))).warned).toEqual([])
    expect((await look((state) => Object.assign(state, { expires: days(7) }))).failed).toEqual([])
  })

  test('a refused key of a simulated quality control is a sign-in fault', async () => {
    const { failed } = await look(() => {}, '', { QC_KEY: 'wrong-key-1' })
    expect(failed.filter((line) => line.includes('the sign-in of this monitor was refused')).length).toBeGreaterThan(0)
    expect(failed.join()).not.toContain('wrong-key-1')
  })

  test('a parameter locates the values of another simulated product', async () => {
    const { failed } = await look(() => {}, '      seats: $.seats.free\n')
    expect(failed).toEqual([
      expect.stringMatching(/^http qc licence measure: .*: free seats: the answer has no \$\.seats\.free$/),
    ])
  })
})

/** Submits clips to a simulated analyser, and nothing else. */
async function clips(change: (state: QcState) => void, more = '', env = { QC_KEY: 'qc-key-123' }, now = unhurried) {
  const state = soundQc()
  change(state)
  await using server = await qc(state)
  const yaml = `types:
  Qc:
    - profile: file-qc
      name: qc
      host: 127.0.0.1
      port: ${server.port}
      token: {env: QC_KEY}
      tokenHeader: X-Api-Key
      allowWrites: true
      api: ${server.origin}/api
      goodClip: '${goodClip}'
      badClip: '${badClip}'
      jobEvery: 100ms
      clipTimeout: 5s
${more}`
  const reports = await runType(yaml, 'Qc', 'Advanced', { env, now })
  return {
    reports,
    requests: server.requestLines(),
    left: [...state.jobs.values()].map(({ file }) => file).sort(),
    failed: complaints(reports).map((line) => line.replaceAll(/qc%2F\d/g, 'qc%2F1')),
  }
}
const remove = '      jobRemove: /jobs/\x24{job}\n'

describe('the clips of the profile file-qc', () => {
  test('a simulated analyser that passes the valid clip and fails the defective one is ok, and its jobs are removed', async () => {
    const { reports, failed, left, requests } = await clips(() => {}, remove)
    expect(failed).toEqual([])
    expect(left).toEqual([])
    expect(reports.map(({ name }) => name)).toEqual([
      'tcp qc port',
      'http-steps qc good clip',
      'http-steps qc bad clip',
    ])
    const good = reports[1]?.results.map(({ message }) => message.replace(/ in [\d.]+ m?s.*/, '')) ?? []
    expect(good[2]).toMatch(/^job: GET \/api\/jobs\/qc%2F\d was answered 200 with \d+ B, sent 2 times$/)
    expect(requests.filter((line) => line.startsWith('POST'))).toHaveLength(2)
    expect(requests.filter((line) => line.startsWith('DELETE'))).toHaveLength(2)
  })

  test('without a request that removes them, the jobs of a simulated analyser stay', async () => {
    const { failed, left } = await clips(() => {})
    expect(failed).toEqual([])
    expect(left).toEqual([badClip, goodClip].sort())
  })

  test.each<[string, (state: QcState) => void, readonly RegExp[]]>([
    [
      'finds fault with the good clip',
      (s) => Object.assign(s, { verdict: () => 'failed' }),
      [
        /^http-steps qc good clip step: job: a good clip was rated bad \(GET \/api\/jobs\/qc%2F1 was answered 200, sent 2 times in [\d.]+ m?s: \$\.state is "done", \$\.verdict is "failed"\)$/,
      ],
    ],
    [
      'is blind',
      (s) => Object.assign(s, { verdict: () => 'passed' }),
      [
        /^http-steps qc bad clip step: job: a bad clip passed: the analyser does not work, or its template accepts everything \(GET .*\$\.verdict is "passed"\)$/,
      ],
    ],
    [
      'never ends a job',
      (s) => Object.assign(s, { looks: Number.POSITIVE_INFINITY }),
      [
        /^http-steps qc good clip step: job: GET \S+ is not finished, sent \d+ times in [\d.]+ m?s; last answer: \$\.state is "running" and does not match/,
        /^http-steps qc bad clip step: job: GET \S+ is not finished, sent \d+ times/,
      ],
    ],
    [
      'breaks a job off',
      (s) => Object.assign(s, { ends: 'aborted' }),
      [
        /good clip step: job: the job was aborted, which proves nothing about the clip \(.*\$\.state is "aborted"\)$/,
        /bad clip step: job: the job was aborted, which proves nothing about the clip/,
      ],
    ],
    [
      'ends without a verdict that is known',
      (s) => Object.assign(s, { verdict: () => 'perhaps' }),
      [/good clip step: job: .*\$\.verdict is "perhaps" and does not match/, /bad clip step: job: .*"perhaps"/],
    ],
  ])('a simulated analyser that %s fails with that reason, and keeps no job', async (what, change, messages) => {
    const now = what === 'never ends a job' ? wallClock : unhurried
    const { failed: all, left } = await clips(change, remove, undefined, now)
    // By the wall clock, a busy machine is slow besides.
    const failed = all.filter((line) => !/ in [\d.]+ m?s \(warn/.test(line))
    expect(failed).toHaveLength(messages.length)
    for (const [index, message] of messages.entries()) expect(failed[index]).toMatch(message)
    expect(left).toEqual([])
  })

  test('a simulated analyser that accepts no job fails at the submission, and nothing is removed', async () => {
    const { failed, requests } = await clips((state) => Object.assign(state, { accepts: 503 }), remove)
    expect(failed[0]).toMatch(/good clip step: submit: POST \/api\/jobs was answered 503 \(expected 2xx\)$/)
    expect(failed[1]).toMatch(/good clip step: job: not run: step "submit" failed$/)
    // Nobody knows what a 503 has made; there is no id by which to remove it.
    expect(failed[2]).toMatch(/good clip cleanup: remove: .* may be left behind/)
    expect(requests.filter((line) => line.startsWith('DELETE'))).toEqual([])
  })

  test('the verdict of an unfinished simulated job does not count', async () => {
    expect((await clips((state) => Object.assign(state, { early: 'passed' }), remove)).failed).toEqual([])
    expect((await clips((state) => Object.assign(state, { early: 'failed' }), remove)).failed).toEqual([])
  })

  test('a refused key of a simulated analyser is a sign-in fault, and no clip is submitted', async () => {
    const { failed, left } = await clips(() => {}, remove, { QC_KEY: 'wrong-key-1' })
    expect(failed.join()).toMatch(/submit: POST \/api\/jobs was answered 401: the sign-in was refused/)
    expect(failed.join()).not.toContain('wrong-key-1')
    expect(left).toEqual([])
  })

  test('parameters locate all values of another simulated product, with state and verdict in one place too', async () => {
    const { failed, left } = await clips(
      (state) => Object.assign(state, { ends: 'passed', verdict: () => undefined }),
      `${remove}      badClip: ''
      jobVerdict: $.state
      submitBody: '{"file": "\x24{clip}", "template": "strict"}'
`.replace("      badClip: ''\n", '      without: bad clip\n'),
    )
    expect(failed).toEqual([])
    expect(left).toEqual([])
  })

  test('nothing is submitted to the simulated analyser below Advanced', async () => {
    const state = soundQc()
    await using server = await qc(state)
    const yaml = `types: {Qc: [{profile: file-qc, host: 127.0.0.1, port: ${server.port}, allowWrites: true, api: "${server.origin}/api", goodClip: /a}]}`
    expect((await runType(yaml, 'Qc', 'Standard')).map(({ name }) => name)).toEqual(['tcp file-qc port'])
    expect(server.requestLines()).toEqual([])
  })

  const use = (more: string): string => `types:\n  Qc:\n    - profile: file-qc\n      host: qc1\n${more}`

  test('a clip without allowWrites, or without its destination, is a mistake in the file', async () => {
    expect(problemsOf(await refused(use('      goodClip: /a\n      api: http://qc1/\n')))).toEqual([
      '5:7: types.Qc[0].goodClip requires `allowWrites: true`',
    ])
    expect(problemsOf(await refused(use('      badClip: /a\n      allowWrites: false\n')))).toEqual([
      '5:7: types.Qc[0].badClip requires `allowWrites: true` and `api:`',
    ])
  })

  test('without a clip nothing is sent, with or without allowWrites', async () => {
    const config = await load(use('      api: http://qc1/\n      allowWrites: true\n'))
    expect(config.types.Qc?.monitors.map(({ name }) => name)).toEqual(['tcp file-qc port'])
  })
})
