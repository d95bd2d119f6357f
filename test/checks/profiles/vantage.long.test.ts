import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { problemsOf, refused } from '../../config/given.ts'
import { complaints, runType } from '../../support/engine/run-types.ts'
import {
  blackHole,
  cutAfter,
  endless,
  escapeSequences,
  http,
  peer,
  refusedPort,
  replies,
} from '../../support/faults/faults.ts'
import { soundVantage, testWorkflow, type VantageState, vantage } from '../../support/simulated/vantage.ts'
import { unhurried, wallClock } from '../../support/suite/until.ts'

const yaml = (port: number, more = ''): string =>
  `types:\n  XcodeV:\n    - profile: vantage\n      host: 127.0.0.1\n      port: ${port}\n${more}`

/** The failures and warnings of a domain that is well but for a change. */
async function look(change: (state: VantageState) => void, mode: 'Basic' | 'Standard' | 'Advanced' = 'Advanced') {
  const state = soundVantage()
  change(state)
  await using server = await vantage(state)
  const reports = await runType(yaml(server.port), 'XcodeV', mode)
  await expect.poll(() => server.open()).toBe(0)
  return {
    names: reports.map(({ name }) => name),
    requests: server.requestLines(),
    failed: complaints(reports),
    warned: complaints(reports, 'warning'),
    clocks: reports.flatMap(({ results }) => results).filter(({ check }) => check === 'clock').length,
  }
}

describe('the profile vantage', () => {
  test('a simulated domain without problems passes at each depth, and only gets GET requests', async () => {
    const basic = await look(() => {}, 'Basic')
    expect(basic).toMatchObject({
      names: ['tcp vantage port', 'http vantage online'],
      requests: ['GET /Rest/Domain/Online'],
      failed: [],
      warned: [],
    })
    const standard = await look(() => {}, 'Standard')
    expect(standard).toMatchObject({ failed: [], warned: [] })
    expect(standard.names).toHaveLength(7)
    const advanced = await look(() => {})
    expect(advanced).toMatchObject({ failed: [], warned: [] })
    expect(advanced.names).toEqual([
      'tcp vantage port',
      'http vantage online',
      'http vantage version',
      'http vantage load',
      'http vantage services',
      'http vantage machines',
      'http vantage stores',
      'http vantage failed jobs',
      'http vantage active jobs',
    ])
    expect(advanced.requests.filter((line) => !line.startsWith('GET /Rest/'))).toEqual([])
    expect(advanced.clocks).toBe(1)
    expect(advanced.requests.join()).not.toMatch(/stop|shutdown|submit|restart/i)
  })

  test('a domain that is not online fails in Basic already', async () => {
    const { failed } = await look((s) => Object.assign(s, { online: false }), 'Basic')
    expect(failed).toEqual([expect.stringMatching(/online json: \S+: \$\.Online is "false", expected "true"$/)])
  })

  test.each([
    [
      'offline',
      (s: VantageState) => Object.assign(s, { online: false }),
      /online json: \S+: \$\.Online is "false", expected "true"$/,
    ],
    [
      'a service that takes no work',
      (s: VantageState) => Object.assign(s.services[1] ?? {}, { accepting: false }),
      /services json: \S+ \$\.Metric\.AcceptingWork is "false"/,
    ],
    [
      'no service',
      (s: VantageState) => Object.assign(s, { services: [] }),
      /services measure: \S+ services: 0 \(fail below 1\)$/,
    ],
    [
      'no machine',
      (s: VantageState) => Object.assign(s, { machines: [] }),
      /machines measure: \S+ machines: 0 \(fail below 1\)$/,
    ],
    [
      'a store offline',
      (s: VantageState) => s.stores.push({ Name: 'b', Offline: true, AvailableSpace: 1, TotalSpace: 9 }),
      /stores measure: \S+ stores offline: 1 \(fail 0\)$/,
    ],
    [
      'a full store',
      (s: VantageState) => s.stores.push({ Name: 'b', Offline: false, AvailableSpace: 9, TotalSpace: 100 }),
      /free space of a store: 9 % \(warn below 20 %, fail below 10 %\)$/,
    ],
    [
      'six failed jobs within the hour',
      (s: VantageState) => Object.assign(s, { failed: Array(6).fill(Date.now() - 60_000) }),
      /failed within the last hour: 6 \(warn 0, fail 5\)$/,
    ],
    [
      'a job of 13 hours',
      (s: VantageState) => s.active.push(Date.now() - 13 * 3_600_000),
      /active jobs: oldest 13 h \(warn 4 h, fail 12 h\)$/,
    ],
  ])('a simulated domain with %s fails with that reason', async (_, change, message) => {
    const { failed } = await look(change)
    expect(failed).toHaveLength(1)
    expect(failed[0]).toMatch(message)
  })

  test('a simulated domain under load, short of licences or with one failed job is a warning', async () => {
    const { failed, warned } = await look((state) => {
      state.load = 95
      state.failed = [Date.now() - 60_000]
      if (state.services[0]) state.services[0].unlicensed = 2
    })
    expect(failed).toEqual([])
    expect(warned.map((line) => line.replace(/127\.0\.0\.1:\d+: /, ''))).toEqual([
      'http vantage load measure: load in percent: 95 (warn 90)',
      'http vantage services measure: sessions refused for lack of a licence: 2 (warn 0)',
      'http vantage failed jobs measure: failed within the last hour: 1 (warn 0, fail 5)',
    ])
  })

  test('without a listener there is one cause, and the rest is skipped', async () => {
    const reports = await runType(yaml(await refusedPort()), 'XcodeV', 'Advanced')
    const failed = complaints(reports)
    expect(failed[0]).toMatch(/^tcp vantage port connect: .* refused the connection/)
    expect(failed.slice(1).every((line) => line.endsWith('not run: not run: tcp vantage port failed'))).toBe(true)
    expect(failed).toHaveLength(9)
  })

  test('a simulated domain that is silent, incomplete, endless or hostile is reported as such', async () => {
    const messageOf = async (behave: Parameters<typeof peer>[0]): Promise<string> => {
      await using server = await peer(behave)
      const reports = await runType(
        yaml(server.port, '      change: {online: {timeout: 1s}}\n'),
        'XcodeV',
        'Standard',
        { timeoutMs: 2_500 },
      )
      await expect.poll(() => server.open()).toBe(0)
      return complaints(reports).find((line) => line.startsWith('http vantage online')) ?? ''
    }
    expect(await messageOf(blackHole)).toMatch(
      /status: 127\.0\.0\.1:\d+ accepted the connection but sent nothing for [\d.]+ m?s$/,
    )
    expect(await messageOf(cutAfter(70, http(200, '{"Online":true}'.padEnd(200))))).toMatch(
      /body: .* sent an incomplete response/,
    )
    expect(await messageOf(endless('HTTP/1.1 200 OK\r\n\r\n'))).toMatch(/json: .* is longer than maxBody/)
    const escaping = await messageOf(replies(http(200, JSON.stringify({ Online: escapeSequences }))))
    expect(escaping).toContain('$.Online is "redgnp", expected "true"')
  })

  test('the watch folder is checked where it is configured', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-watch-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    await writeFile(join(folder, 'old.mxf'), '')
    const old = new Date(Date.now() - 3 * 3_600_000)
    await utimes(join(folder, 'old.mxf'), old, old)
    await using server = await vantage(soundVantage())
    const reports = await runType(yaml(server.port, `      folder: ${JSON.stringify(folder)}\n`), 'XcodeV', 'Advanced')
    expect(complaints(reports)).toEqual([
      'file-age vantage watch folder age: oldest file old.mxf: age 3 h (warn 30 min, fail 2 h)',
    ])
  })

  test('a password goes to the server from Standard on, and is never shown', async () => {
    await using server = await vantage({ ...soundVantage(), online: false })
    const more = '      user: probe\n      password: {env: V_PASSWORD}\n'
    const reports = await runType(yaml(server.port, more), 'XcodeV', 'Standard', {
      env: { V_PASSWORD: 'hunter2-hunter2' },
    })
    const sent = server.requests().map(({ headers }) => headers.authorization)
    expect(new Set(sent)).toEqual(new Set([`Basic ${btoa('probe:hunter2-hunter2')}`]))
    expect(JSON.stringify(reports)).not.toMatch(/hunter2/)
  })
})

const jobOf = (more = ''): string => `      testWorkflow: ${testWorkflow}
      testBody: '{"JobName": "\x24{probe}", "Medias": [{"Name": "Original", "Files": ["\\\\\\\\nas\\\\probe.mov"]}]}'
${more}`
const leave =
  '      allowWrites: true\n      without: [failed jobs, active jobs, services, machines, stores, load, version, online]\n'

describe('the test job of the profile vantage', () => {
  const submit = async (change: (state: VantageState) => void, more = '', now = unhurried) => {
    const state = soundVantage()
    change(state)
    await using server = await vantage(state)
    const reports = await runType(yaml(server.port, jobOf(`${leave}${more}`)), 'XcodeV', 'Advanced', { now })
    return { state, reports, requests: server.requestLines(), failed: complaints(reports) }
  }

  test('a simulated domain that completes it passes; it is submitted once, and never stopped or removed', async () => {
    const { state, reports, requests, failed } = await submit(() => {})
    expect(failed).toEqual([])
    expect(reports.map(({ name }) => name)).toEqual(['tcp vantage port', 'http-steps vantage test job'])
    expect(reports[1]?.results.at(-1)?.message).toMatch(/^job: GET \/Rest\/Jobs\/\S+ was answered 200 .*sent 2 times/)
    expect(state.submitted.map((body): unknown => JSON.parse(body))).toEqual([
      {
        JobName: expect.stringMatching(/^svc-probe-[0-9a-f]{12}$/),
        Medias: [{ Name: 'Original', Files: ['\\\\nas\\probe.mov'] }],
      },
    ])
    expect(requests.filter((line) => !line.startsWith('GET'))).toEqual([`POST /Rest/Workflows/${testWorkflow}/Submit`])
  })

  test('a simulated domain in which it fails, or never ends, is reported with its own message', async () => {
    const { failed, requests } = await submit((state) => Object.assign(state, { ends: 4 }))
    expect(failed).toEqual([
      expect.stringMatching(
        /^http-steps vantage test job step: job: the test job failed \(GET \S+ was answered 200, sent 2 times in .*: \$\.Job\.State is "4"\)$/,
      ),
    ])
    expect(requests.join()).not.toMatch(/stop|remove|delete|put/i)
    const never = await submit((state) => Object.assign(state, { looks: 1_000 }), '      testTimeout: 2s\n', wallClock)
    expect(never.failed).toEqual([
      expect.stringMatching(
        /test job step: job: GET \S+ is not finished, .*; last answer: \$\.Job\.State is "0", expected "5"$/,
      ),
    ])
    expect(never.requests.filter((line) => !line.startsWith('GET'))).toHaveLength(1)
  })

  test('without allowWrites, without its body, or with invalid JSON, it is a mistake in the file', async () => {
    expect(problemsOf(await refused(yaml(1, jobOf())))).toEqual([
      '6:7: types.XcodeV[0].testWorkflow requires `allowWrites: true`',
    ])
    expect(problemsOf(await refused(yaml(1, '      testWorkflow: x\n      allowWrites: true\n')))).toEqual([
      '6:7: types.XcodeV[0].testWorkflow requires `testBody:`',
    ])
    const broken = '      testWorkflow: x\n      testBody: "{x"\n      allowWrites: true\n'
    expect(problemsOf(await refused(yaml(1, broken)))[0]).toMatch(/step "submit" has a body that is not JSON/)
  })
})
