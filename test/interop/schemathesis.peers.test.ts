import { execFile, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask } from '../server/site.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { password, serveBuilt } from './served.ts'

const python = process.env['SVC_PYTHON'] ?? 'python3'
const missing =
  spawnSync(python, ['-c', 'import schemathesis'], { timeout: 60_000 }).status === 0
    ? undefined
    : 'no Python with the package schemathesis of a package index (test/interop/python-requirements.txt, SVC_PYTHON names it)'

/**
 * Checks that do not apply:
 * - not_a_server_error: a failed health check is answered 503 (H1), which the document describes
 * - positive_data_acceptance of GetAccessToken: a refresh token has a checksum, which no keyword of JSON Schema expresses
 * - positive_data_acceptance of SilenceMonitors, AcknowledgeFault and StartDrill: a pattern matches a monitor, one of two fields
 *   says for how long, and a receiver exists
 * - positive_data_acceptance of AddUser and SetPassword: a password is not a common one, and Email is an address; of LinkUser
 *   and UnlinkUser: a provider is one of svc.yaml; of UnlockUser: From is an IP address; of CreateKey: a key has rights that
 *   its user has; of GetRoleHolders: At is not in the future
 * - unsupported_method, allow_header_conformance: at its canonical place an operation has further verbs, which only
 *   openapi-all.json describes
 * - use_after_free, ensure_resource_availability, object_level_authorization: no operation creates a resource that
 *   another one deletes or reads by its id
 */
const settings = `
[[operations]]
include-operation-id = "HealthCheckRequest"
checks.not_a_server_error.expected-statuses = ["2xx", "4xx", "503"]

[[operations]]
include-path-regex = "(?i)healthcheck"
checks.not_a_server_error.expected-statuses = ["2xx", "4xx", "503"]

${[
  ...['GetAccessToken', 'SilenceMonitors', 'AcknowledgeFault', 'StartDrill'],
  ...['AddUser', 'SetPassword', 'LinkUser', 'UnlinkUser', 'UnlockUser', 'CreateKey', 'GetRoleHolders'],
]
  .map(
    (operation) => `
[[operations]]
include-operation-id = "${operation}"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "429"]
`,
  )
  .join('')}`
const inapplicable =
  'unsupported_method,allow_header_conformance,use_after_free,ensure_resource_availability,object_level_authorization'
/**
 * At the other paths, a request may spell its fields in a query, a form or CSV, whose texts a schema of JSON values does
 * not describe.
 */
const ofAnswers =
  'not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance'

peerSuite(missing, 'schemathesis at svc serve', () => {
  let served: Awaited<ReturnType<typeof serveBuilt>>
  let key = ''
  const folder = temporaryFolder()
  beforeAll(async () => {
    served = await serveBuilt()
    const body = JSON.stringify({ UserName: 'Ann', Password: password })
    const headers = { 'content-type': 'application/json' }
    const signedIn = await ask(Number(new URL(served.url).port), '/auth', { method: 'POST', headers, body })
    // A key, because an Admin may end all sessions.
    const created = await ask(Number(new URL(served.url).port), '/keys/create', {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${String(signedIn.json['BearerToken'])}` },
      body: JSON.stringify({ Name: 'schemathesis', UserName: 'Ann' }),
    })
    key = String(created.json['Secret'])
    writeFileSync(join(folder, 'settings.toml'), settings)
  })
  afterAll(() => served.close())

  /** Runs Schemathesis, which exits with 1 when it finds anything. */
  const run = (document: string, options: readonly string[]): Promise<{ code: number; output: string }> =>
    new Promise((resolve) => {
      const all = ['--config-file', join(folder, 'settings.toml'), 'run', `${served.url}${document}`, '--no-color']
      execFile(
        python,
        ['-m', 'schemathesis.cli', ...all, '--seed', '1', '--continue-on-failure', ...options],
        { timeout: 280_000, maxBuffer: 64 * 1024 * 1024, cwd: folder },
        (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}${stderr}` }),
      )
    })
  const everything = [
    ...['--checks', 'all', '--exclude-checks', inapplicable],
    ...['--phases', 'examples,coverage,fuzzing', '-n', '5'],
  ]

  test('R6 it finds nothing in openapi.json without a sign-in', async () => {
    const { code, output } = await run('/openapi.json', everything)
    expect(output).toContain('Tested: ')
    expect([code, code === 0 ? '' : output]).toEqual([0, ''])
  }, 300_000)

  test('R6 it finds nothing in openapi.json as an administrator', async () => {
    const { code, output } = await run('/openapi.json', [...everything, '-H', `Authorization: Bearer ${key}`])
    expect([code, code === 0 ? '' : output]).toEqual([0, ''])
  }, 300_000)

  test('R6 no answer at a path of openapi-all.json differs from its description', async () => {
    const { code, output } = await run('/openapi-all.json', [
      ...['--checks', ofAnswers, '--phases', 'fuzzing', '-n', '1'],
      ...['-H', `Authorization: Bearer ${key}`],
    ])
    expect([code, code === 0 ? '' : output]).toEqual([0, ''])
  }, 300_000)
})
