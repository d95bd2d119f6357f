import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import { type Core, openCore } from '../../src/core/open.ts'
import type { RunDocument } from '../../src/core/protocol/index.ts'
import { healthCheckResponse } from '../../src/core/reports/index.ts'
import type { Call, Service } from '../../src/core/service.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-figures-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const core = async (shared: boolean): Promise<Core> =>
  openCore({
    version: '1.2.3',
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    store: join(folder, 'svc.db'),
    shared,
    details: 'signed-in',
  })

/** An Advanced run of svc's own SQLite store, in full. */
async function ask(service: Service, more: Partial<Call> = {}) {
  let run: RunDocument | undefined
  const response = await service.healthCheck(
    { ExecutionMode: 'Advanced', ServerType: 'Sql', IncludeServerStateInformation: true },
    {
      caller: { kind: 'local', account: 'tester' },
      correlationId: 'figures',
      signal: new AbortController().signal,
      note: (facts) => {
        run = facts.run
      },
      ...more,
    },
  )
  return { response, run }
}

test('in process a health answer comes with its run, which holds the figures that the checks measured', async () => {
  const { service, runtime } = await core(false)
  try {
    const { response, run } = await ask(service)
    if (!run) throw new Error('There is no run')
    expect(response).toEqual(healthCheckResponse(run))
    const measured = run.monitors.flatMap(({ results }) => results.filter(({ measurement }) => measurement))
    expect(measured.map(({ check }) => check)).toContain('round trip')
    for (const { measurement } of measured) {
      expect(measurement).toMatchObject({ value: expect.any(Number), unit: expect.any(String) })
    }
  } finally {
    await runtime.close()
  }
})

test('a selection is one of the run too', async () => {
  const { service, runtime } = await core(false)
  try {
    const { response, run } = await ask(service, { selection: { only: ['round trip'], skip: [] } })
    expect(run?.monitors.flatMap(({ results }) => results.map(({ check }) => check))).toEqual(['round trip'])
    expect(run?.message).toBe(response.StatusMessage)
  } finally {
    await runtime.close()
  }
})
