import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cert, key } from '../server/certificate.ts'
import { startServe } from '../support/program/serve-command.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

const shared = 'which every account of this machine can read: chmod o='

test.skipIf(process.platform === 'win32')(
  'svc serve and monitors validate warn of secret files that everyone can read, and of no others',
  { timeout: 60_000 },
  async () => {
    const home = temporaryHome()
    // The home itself is closed to others, as usual. Its folder of secrets is open here.
    chmodSync(home.folder, 0o755)
    const folder = join(home.folder, 'secrets')
    mkdirSync(folder)
    chmodSync(folder, 0o755)
    const file = (name: string, content: string, mode: number): string => {
      const path = join(folder, name)
      writeFileSync(path, content)
      chmodSync(path, mode)
      return path
    }
    const certificate = file('cert.pem', cert, 0o644)
    const tlsKey = file('key.pem', key, 0o644)
    const token = file('token', 'x', 0o644)
    const closed = file('closed', 'x', 0o640)
    const yaml = `types:
  App:
    - {kind: http, name: one, url: 'https://127.0.0.1:1/', token: {file: ${token}}}
    - {kind: http, name: two, url: 'https://127.0.0.1:2/', token: {file: ${closed}}}
`
    const serve = await startServe(home, yaml, ['--tls-cert', certificate, '--tls-key', tlsKey])
    await serve.stop()
    expect(serve.log()).toContain(`--tls-key names ${tlsKey}, ${shared}`)
    expect(serve.log()).toContain(`names the file ${token}, ${shared}`)
    expect(serve.log().split(shared)).toHaveLength(3)

    const config = join(folder, 'svc.yaml')
    writeFileSync(config, yaml, { mode: 0o600 })
    const validated = await home.svc(['monitors', 'validate', '--config', config])
    expect([validated.code, validated.stderr.split(shared).length]).toEqual([0, 2])

    chmodSync(tlsKey, 0o640)
    chmodSync(token, 0o600)
    const again = await startServe(home, yaml, ['--tls-cert', certificate, '--tls-key', tlsKey])
    await again.stop()
    expect(again.log()).not.toContain('every account')
  },
)
