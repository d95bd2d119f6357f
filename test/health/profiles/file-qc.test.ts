import { describe, expect, test } from 'vitest'
import { type QcState, qc, soundQc } from '../../support/qc.ts'
import { complaints, runType } from '../../support/run-types.ts'

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
  return { names: reports.map(({ name }) => name), failed: complaints(reports), warned: complaints(reports, 'warn') }
}

const days = (n: number): Date => new Date(Date.now() + n * 86_400_000 + 60_000)

describe('the profile file-qc', () => {
  test('a simulated quality control on which all is well passes, and what is not given is not looked at', async () => {
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
      /licence: 6 d left \(at least 7 d\)$/,
    ],
    ['without a free seat', (s: QcState) => Object.assign(s, { freeSeats: 0 }), /free seats: 0 \(at least 1\)$/],
    [
      'without a worker',
      (s: QcState) => Object.assign(s, { workers: [{ state: 'offline' }] }),
      /workers online: 0 \(at least 1\)$/,
    ],
    [
      'with a stuck task',
      (s: QcState) => s.tasks.push({ state: 'running', updated: new Date(Date.now() - 1_200_000).toISOString() }),
      /tasks without progress: oldest 20 min \(limit 15 min\)$/,
    ],
  ])('a simulated quality control %s fails, and says so', async (_, change, message) => {
    const { failed } = await look(change)
    expect(failed).toHaveLength(1)
    expect(failed[0]).toMatch(message)
  })

  test('a simulated licence of 29 days is a warning, and its boundaries belong to the better side', async () => {
    const { failed, warned } = await look((state) => Object.assign(state, { expires: days(29) }))
    expect(failed).toEqual([])
    expect(warned).toEqual([expect.stringMatching(/licence: 29 d left \(warns below 30 d\)$/)])
    expect((await look((state) => Object.assign(state, { expires: days(30) }))).warned).toEqual([])
    expect((await look((state) => Object.assign(state, { expires: days(7) }))).failed).toEqual([])
  })

  test('a refused key of a simulated quality control is a fault of sign-in', async () => {
    const { failed } = await look(() => {}, '', { QC_KEY: 'wrong-key-1' })
    expect(failed.filter((line) => line.includes('the sign-in of this monitor was refused')).length).toBeGreaterThan(0)
    expect(failed.join()).not.toContain('wrong-key-1')
  })

  test('a parameter says where another simulated product keeps its figures', async () => {
    const { failed } = await look(() => {}, '      seats: $.seats.free\n')
    expect(failed).toEqual([
      expect.stringMatching(/^http qc licence measure: .*: free seats: the answer has no \$\.seats\.free$/),
    ])
  })
})
