import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { at, caFile, folder, made, serve, withCertificates } from './tls-peers.ts'

withCertificates()

const run = promisify(execFile)
const child = new URL('ask-child.ts', import.meta.url).pathname
const inChild = async (env: Record<string, string>, ...args: string[]): Promise<string> => {
  const { PATH = '' } = process.env
  return (await run(process.execPath, [child, ...args], { env: { PATH, NODE_NO_WARNINGS: '1', ...env } })).stdout
}

test('K5 NODE_TLS_REJECT_UNAUTHORIZED=0 and a weak --tls-min do not weaken anything', async () => {
  const env = { NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_OPTIONS: '--tls-min-v1.0' }
  await using unknown = await serve(made.good)
  expect(await inChild(env, at(unknown))).toMatch(/^Unreachable: /)
  await using invalid = await serve(made.otherHost)
  expect(await inChild(env, at(invalid), caFile)).toMatch(/^Unreachable: /)
  await using old = await serve({ ...made.good, minVersion: 'TLSv1', maxVersion: 'TLSv1.1' })
  expect(await inChild(env, at(old), caFile)).toMatch(/^Unreachable: /)
  expect(unknown.input() + invalid.input() + old.input()).toBe('')
})

// Elsewhere the system's list is the keychain of macOS or Windows, which a test must not change.
test.runIf(process.platform === 'linux')(
  'K5 the authorities of the operating system are trusted after those of Node and --ca-file',
  async () => {
    const none = join(folder, 'none')
    mkdirSync(none)
    const system = { SSL_CERT_FILE: caFile, SSL_CERT_DIR: none }
    await using server = await serve(made.good)
    expect(await inChild(system, at(server))).toBe('Success')
    expect(await inChild(system, at(server), made.selfSignedFile)).toBe('Success')
    expect(await inChild({ SSL_CERT_FILE: made.selfSignedFile, SSL_CERT_DIR: none }, at(server))).toMatch(
      /^Unreachable: /,
    )
    await using expired = await serve(made.expired)
    expect(await inChild(system, at(expired))).toMatch(/^Unreachable: .*has expired/)
  },
)
