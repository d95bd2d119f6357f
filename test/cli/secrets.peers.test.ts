import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { documentOf } from '../support/program/documents.ts'
import { keyringHome, keyringMissing, keyringSession, type Session } from '../support/program/keyring.ts'
import { type Home, svcHome } from '../support/program/svc.ts'
import { peerSuite } from '../support/suite/peer.ts'

const linux = process.platform === 'linux' ? undefined : 'Secret Service and D-Bus are Linux only'
const secret = 'a bearer token of svc.yaml'.replaceAll(' ', '-')

/** A server that requires the token, and the requests to it. */
async function guarded(): Promise<{ server: Server; port: number; requests: string[] }> {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(request.headers.authorization ?? '')
    response.writeHead(request.headers.authorization === `Bearer ${secret}` ? 200 : 401).end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, port: (server.address() as AddressInfo).port, requests: requests }
}

peerSuite(keyringMissing ?? linux, 'secrets of svc.yaml in a real GNOME Keyring', () => {
  const keyring = keyringHome()
  let session: Session
  let home: Home
  let peer: Awaited<ReturnType<typeof guarded>>
  const configure = (port: number): void =>
    writeFileSync(
      join(home.folder, 'svc.yaml'),
      `types:\n  App:\n    - kind: http\n      name: shop\n      url: http://127.0.0.1:${port}/\n      status: [200]\n      token: {keychain: shop}\n`,
      { mode: 0o600 },
    )
  const svc = (args: readonly string[], stdin = '') =>
    home.svc(args, { stdin, env: { ...session.env, HOME: home.folder } })
  const health = () => svc(['health', '-m', 'Standard', '-t', 'App', '--json'])
  beforeAll(async () => {
    session = await keyringSession(keyring.home, 'unlocked')
    home = svcHome()
    peer = await guarded()
  })
  afterAll(async () => {
    peer.server.close()
    home.remove()
    await session.close()
    keyring.remove()
  })

  test('K8 a secret can be set, used by a check, listed without its value, and removed', async () => {
    configure(peer.port)
    const before = await health()
    expect(before.code).toBe(3)
    expect(before.stdout).toContain('the keychain has no secret of that name: svc secrets set shop --for 127.0.0.1:')
    expect(peer.requests.filter((one) => one !== '')).toEqual([])

    const place = ['--for', `127.0.0.1:${peer.port}`, '--stdin']
    const set = await svc(['secrets', 'set', 'shop', ...place], `${secret}\n`)
    expect(set).toMatchObject({ code: 0, stderr: '' })
    expect(set.stdout).toContain('{keychain: shop}')
    const again = await svc(['secrets', 'set', 'shop', ...place, '--json'], `${secret}\n`)
    documentOf('secrets set', again.stdout)
    expect(JSON.parse(session.lookup('svc:secrets', 'shop') ?? '')).toMatchObject({ secret, port: peer.port })

    const after = await health()
    expect(after.code).toBe(0)
    expect(peer.requests).toContain(`Bearer ${secret}`)

    const listed = await svc(['secrets', 'list', '--json'])
    expect(documentOf('secrets list', listed.stdout)).toEqual({
      target: 'this machine',
      secrets: [{ name: 'shop', for: `127.0.0.1:${peer.port}` }],
    })
    const messages = [set, after, listed].map(({ stdout, stderr }) => stdout + stderr).join('')
    expect(messages).not.toContain(secret)
    const files = home
      .files()
      .map((file) => join(home.folder, file))
      .filter((file) => statSync(file).isFile())
    for (const file of files) expect(readFileSync(file).includes(secret), file).toBe(false)
    expect(files.length).toBeGreaterThan(1)

    const removal = await svc(['secrets', 'remove', 'shop', '--json'])
    expect(documentOf('secrets remove', removal.stdout)).toMatchObject({ secrets: [{ name: 'shop', removed: true }] })
    expect(session.lookup('svc:secrets', 'shop')).toBeUndefined()
    expect((await svc(['secrets', 'list', '--no-header'])).stdout).toBe('')
    const missing = await svc(['secrets', 'remove', 'shop'])
    expect(missing.code).toBe(9)
    expect(missing.stderr).toContain('has no secret "shop"')
  })

  test('K8 a secret of one host and port is refused for another before anything is sent', async () => {
    const other = await guarded()
    onTestFinished(() => void other.server.close())

    configure(other.port)
    await svc(['secrets', 'set', 'shop', '--for', `127.0.0.1:${peer.port}`, '--stdin'], secret)
    const ran = await health()
    expect(ran.code).toBe(3)
    expect(ran.stdout).toContain(
      `it is bound to 127.0.0.1:${peer.port}, but this monitor connects to 127.0.0.1:${other.port}`,
    )
    expect(other.requests.filter((one) => one !== '')).toEqual([])
    expect(ran.stdout + ran.stderr).not.toContain(secret)
  })
})
