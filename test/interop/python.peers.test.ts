import { execFile, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { startAccounts } from '../server/accounts.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const python = process.env['SVC_PYTHON'] ?? 'python3'
const missing =
  spawnSync(python, ['-c', 'import servicestack'], { timeout: 60_000 }).status === 0
    ? undefined
    : 'no Python with the package servicestack of a package index (test/interop/python-requirements.txt, SVC_PYTHON names it)'

type Report = Readonly<Record<string, unknown>>

peerSuite(missing, 'servicestack 0.1.15 for Python, unmodified, at a server whose names are in camelCase', () => {
  test('N9 A9 signs in by cookie and by token, renews its token, assigns, unassigns, gets health, sends batches, and reads its errors', async () => {
    const password = 'violet-harbour-42'
    const server = await startAccounts({ names: 'camelCase' })
    const file = new URL('python_client.py', import.meta.url).pathname
    const { stdout } = await promisify(execFile)(python, [file, server.server.url, password], { timeout: 60_000 })
    await server.close()
    const report = JSON.parse(stdout) as Report
    const well = { status: 'Success', failedMonitorCount: 0, monitorSummaries: expect.any(Array) }
    expect(report).toMatchObject({
      'health by GET': well,
      'health by POST': well,
      unhealthy: { status: 503, error: { errorCode: 'HealthCheckFailed', message: expect.stringContaining('Ftp') } },
      'unhealthy, suppressed': { status: 'Failure', failedMonitorCount: 1 },
      'field errors': {
        status: 400,
        error: { errorCode: 'NotEmpty', errors: [{ fieldName: 'ExecutionMode' }, { fieldName: 'ServerType' }] },
      },
      nobody: { status: 401, error: { errorCode: 'Unauthorized', message: 'Not Authenticated' } },
      'wrong password': { status: 401, error: { message: 'Invalid Username or Password' } },
      'sign-in': { userName: 'Ann', roles: ['Admin', 'Editor'], bearerToken: expect.any(String) },
      assign: { allRoles: ['R1', 'R2'], allPermissions: [] },
      unassign: { allRoles: ['R2'], allPermissions: [] },
      batch: [{ allRoles: ['R2', 'B1'] }, { allRoles: ['R2', 'B1', 'B2'] }],
      'by token': { allRoles: ['R2', 'B2'] },
      renewed: { allRoles: ['R2'] },
      'renewed token': true,
      after: { status: 401, error: { message: 'Not Authenticated' } },
    })
    expect(Object.keys(report)).toContain('sign-out')
  }, 90_000)
})

peerSuite(missing, 'servicestack 0.1.15 for Python, unmodified, with the types of /types/python', () => {
  test.each(['PascalCase', 'camelCase'] as const)(
    'R6 N9 at a server whose names are in %s: signs in, assigns, unassigns, gets health, sends batches and a heartbeat',
    async (names) => {
      const server = await startAccounts({ names })
      const folder = temporaryFolder()
      onTestFinished(() => server.close())

      writeFileSync(join(folder, 'dtos.py'), await (await fetch(`${server.server.url}/types/python`)).text())
      const file = new URL('python_generated.py', import.meta.url).pathname
      const args = [file, server.server.url, 'violet-harbour-42', folder, names]
      const { stdout } = await promisify(execFile)(python, args, { timeout: 60_000 })
      const facts = { typed: true, results: true, recent: true, duration: true, monitors: expect.any(Number) }
      const well = { ...facts, status: 'Success', failed: 0 }
      const camel = names === 'camelCase'
      expect(JSON.parse(stdout)).toEqual({
        'health by GET': well,
        'health by POST': well,
        'health by its own verb': well,
        // The package reads the details of errors in camelCase only.
        unhealthy: { status: 503, error: camel ? expect.objectContaining({ errorCode: 'HealthCheckFailed' }) : null },
        'unhealthy, suppressed': { ...facts, status: 'Failure', failed: 1 },
        nobody: { status: 401, error: camel ? expect.objectContaining({ message: 'Not Authenticated' }) : null },
        'sign-in': ['Admin', 'Editor'],
        assign: ['R1', 'R2'],
        unassign: ['R2'],
        batch: [
          ['R2', 'B1'],
          ['R2', 'B1', 'B2'],
        ],
        heartbeat: 'agent-1',
        members: camel
          ? { provider: 'p', oauth_token: 't', userName: 'u' }
          : { provider: 'p', oauth_token: 't', UserName: 'u' },
        'sign-out': true,
        after: { status: 401, error: camel ? expect.objectContaining({ errorCode: 'Unauthorized' }) : null },
      })
    },
    90_000,
  )
})
