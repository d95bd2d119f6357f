import { beforeAll, expect, test } from 'vitest'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import { inNamespace, missingNamespace } from '../../support/faults/network.ts'
import { chronyMissing } from '../../support/servers/chrony.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const script = new URL('../../support/faults/chrony-child.ts', import.meta.url)

peerSuite(chronyMissing ?? missingNamespace(), 'the clock of a machine with chrony', () => {
  let outcomes: Readonly<Record<string, readonly Result[]>>
  beforeAll(async () => {
    outcomes = (await inNamespace(script)) as typeof outcomes
  }, 180_000)

  test('H35 without chrony there is no result, unless svc.yaml sets timeSync: then it is not checked', () => {
    expect(outcomes.absent).toEqual([])
    expect(outcomes.demanded).toMatchObject([
      {
        status: 'failed',
        notChecked: 'missing',
        message: expect.stringContaining('no chrony at 127.0.0.1:323 answers'),
      },
    ])
  })

  test('H35 a chrony that follows no time server is a warning, and a failure where timeSync has a limit', () => {
    const message = 'chrony has not synchronized the clock: it follows no time server'
    expect(outcomes.alone).toMatchObject([{ status: 'warning', message, details: ['next: chronyc -n sources'] }])
    expect(outcomes.limited).toMatchObject([{ status: 'failed', fault: 'data', message }])
  })

  test('H35 a chrony that follows a time server is ok, with the time since its last correction', () => {
    expect(outcomes.following).toMatchObject([
      {
        status: 'ok',
        message: expect.stringMatching(
          /^chrony follows 127\.0\.0\.1 \(stratum 9\), and corrected the clock [\d.]+ m?s ago \(warn 24 h\)$/,
        ),
        details: [expect.stringMatching(/^the clock is off by at most [\d.]+ m?s$/)],
        measurement: { unit: 'milliseconds', warn: 86_400_000 },
      },
    ])
  })

  test('H35 a chrony whose time server has gone keeps its state, and the age of its last correction fails', () => {
    expect(outcomes.abandoned).toMatchObject([{ status: 'failed', fault: 'threshold' }])
  })

  test('H35 a chrony that follows the clock of this machine says so, and is ok', () => {
    expect(outcomes.local).toMatchObject([{ status: 'ok', message: expect.stringContaining('itself (local)') }])
  })

  test('H35 a frozen chrony is a warning', () => {
    expect(outcomes.frozen).toMatchObject([
      { status: 'warning', message: 'chrony at 127.0.0.1:323 did not answer within 3 s' },
    ])
  })
})
