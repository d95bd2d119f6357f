import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { temporaryHome } from '../support/program/temporary-home.ts'

const secret = 'a bearer token of svc.yaml'.replaceAll(' ', '-')

describe('without a keychain', () => {
  const home = temporaryHome()

  test('K8 set reports that before it prompts, with the remedies', async () => {
    const ran = await home.run(['secrets', 'set', 'shop', '--for', 'db1:5432', '--stdin'], { stdin: secret })
    expect(ran.code).toBe(11)
    expect(ran.stderr).toContain(
      'no keychain for the secret: this machine has no OS keychain (the secret was not requested)',
    )
    expect(ran.stderr).toContain('{file: /run/credentials/svc/NAME}')
  })

  test.each([
    [['secrets', 'set', 'shop'], '--for is missing'],
    [['secrets', 'set', 'shop', '--for', 'db1'], '--for "db1" is not a host and port'],
    [['secrets', 'set', 'shop', '--for', 'db1:99999'], '--for "db1:99999" is not a host and port'],
    [['secrets', 'set', 'shop', '--for', 'http://db1:1'], '--for "http://db1:1" is not a host and port'],
    [['secrets', 'set', 'my secret', '--for', 'db1:1'], 'invalid secret name'],
    [['secrets', 'set'], 'NAME'],
  ])('%j is refused by name', async (args, words) => {
    const ran = await home.run(args)
    expect(ran.code).toBe(2)
    expect(ran.stderr).toContain(words)
  })

  test('a check that needs a secret reports that there is no keychain, and the alternative', async () => {
    writeFileSync(
      join(home.folder, 'svc.yaml'),
      'types:\n  App:\n    - kind: http\n      url: http://127.0.0.1:9/\n      token: {keychain: shop}\n',
      { mode: 0o600 },
    )
    const { createServer: tcp } = await import('node:net')
    const listening = tcp((socket) => socket.destroy()).listen(0, '127.0.0.1')
    await once(listening, 'listening')
    const { port } = listening.address() as AddressInfo
    writeFileSync(
      join(home.folder, 'svc.yaml'),
      `types:\n  App:\n    - kind: http\n      url: http://127.0.0.1:${port}/\n      token: {keychain: shop}\n`,
      { mode: 0o600 },
    )
    const ran = await home.run(['health', '-m', 'Standard', '-t', 'App', '--json'])
    listening.close()
    expect(ran.code).toBe(3)
    expect(ran.stdout).toContain('{keychain: shop}: the secret cannot be read: this machine has no OS keychain')
    expect(ran.stdout).toContain('{file: /run/credentials/svc/NAME}')
  })
})
