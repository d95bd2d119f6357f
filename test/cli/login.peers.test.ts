import { expect, onTestFinished, test } from 'vitest'
import { keyringHome, keyringMissing, keyringSession } from '../support/program/keyring.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { password, signInServer, user } from '../support/simulated/sign-in-server.ts'
import { peerSuite } from '../support/suite/peer.ts'

peerSuite(keyringMissing, 'svc login with a real keychain', () => {
  test('K1 login, renewal, whoami and logout store the token in the keychain alone', { timeout: 60_000 }, async () => {
    const server = await signInServer({ dialect: 'rotating' })
    onTestFinished(server.close)
    const home = temporaryHome()
    const ring = keyringHome()
    const session = await keyringSession(ring.home, 'unlocked')
    onTestFinished(ring.remove)
    onTestFinished(session.close)
    const more = { env: session.env, stdin: password }
    const args = ['login', '--server', server.url, '-u', user, '--password-stdin']
    const ran = await home.svc(args, { ...more, env: { ...session.env, SVC_HOME: home.folder } })
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining('Token stored in: OS keychain') })
    const storedToken = (): string => session.lookup(`svc:${server.url}`, user) ?? ''
    expect(JSON.parse(storedToken())).toMatchObject({ at: server.alive()[0], rt: expect.stringMatching(/^RT/) })
    expect(home.files().join()).not.toContain('credentials')
    server.expire()
    const verified = await home.svc(['whoami', '--verify', '--json'], more)
    expect(JSON.parse(verified.stdout)).toMatchObject({ signIns: [{ user, where: 'OS keychain', verified: true }] })
    expect(JSON.parse(storedToken())).toMatchObject({ at: server.alive()[0] })
    expect((await home.svc(['logout', '--all'], more)).code).toBe(0)
    expect(storedToken()).toBe('')
    expect(server.alive()).toEqual([])
  })
})
