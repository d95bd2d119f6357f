import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { type OperationSpec, operations } from '../../src/core/protocol/index.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { canonical } from '../support/wire/openapi.ts'

/** Where `.ci/generators` installs them: they need another version of TypeScript. */
const home = new URL('../../node_modules/.cache/generators', import.meta.url).pathname
const programs = join(home, 'node_modules/.bin')
const missing = existsSync(join(programs, 'openapi-ts'))
  ? undefined
  : 'no generators of clients (.ci/generators installs them from a package index)'

const rows: readonly OperationSpec[] = Object.values(operations)

peerSuite(missing, 'clients generated from openapi.json', () => {
  const folder = temporaryFolder()
  const run = (program: string, args: readonly string[]): void => {
    const { status, stdout, stderr } = spawnSync(join(programs, program), args, { cwd: folder, timeout: 120_000 })
    expect([program, status, status === 0 ? '' : `${stdout}${stderr}`]).toEqual([program, 0, ''])
  }
  beforeAll(() => writeFileSync(join(folder, 'openapi.json'), JSON.stringify(canonical.document)))

  test('R6 @hey-api/openapi-ts makes one method for each operation', () => {
    run('openapi-ts', ['-i', 'openapi.json', '-o', 'client'])
    const methods = [...readFileSync(join(folder, 'client/sdk.gen.ts'), 'utf8').matchAll(/^export const (\w+) = /gm)]
    expect(methods.map(([, name]) => name)).toEqual(
      rows.map(({ name }) => name.charAt(0).toLowerCase() + name.slice(1)),
    )
  }, 120_000)

  test('R6 the client of openapi-typescript has one type for each status, and its requests compile', () => {
    run('openapi-typescript', ['openapi.json', '-o', 'api.ts'])
    writeFileSync(
      join(folder, 'use.ts'),
      `import type { components, operations } from './api'
type Json<R> = R extends { content: { 'application/json': infer B } } ? B : never
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
type Schemas = components['schemas']
type Health = operations['HealthCheckRequest']['responses']
export const healthy: Same<Json<Health[200]>, Schemas['HealthCheckResponse']> = true
export const unhealthy: Same<Json<Health[503]>, Schemas['UnhealthyResponse'] | Schemas['ErrorResponse']> = true
export const refused: Same<Json<Health[400]>, Schemas['ErrorResponse']> = true
export const media: Same<keyof Health[200]['content'], 'application/json'> = true
export const query: operations['HealthCheckRequest']['parameters']['query'] = {
  ExecutionMode: 'Basic',
  ServerType: 'Sql',
  SuppressErrorCodes: true,
}
export const change: Schemas['AssignRoles'] = { UserName: 'bob', Roles: ['Deploy'] }
// @ts-expect-error a change of roles needs a user name
export const nobody: Schemas['AssignRoles'] = { Roles: ['Deploy'] }
export const count: Same<keyof operations, ${rows.map(({ name }) => `'${name}'`).join(' | ')}> = true
`,
    )
    run('tsc', [
      '--strict',
      '--noEmit',
      '--target',
      'es2022',
      '--moduleResolution',
      'bundler',
      '--module',
      'esnext',
      'use.ts',
    ])
  }, 120_000)
})
