import { serveDefaults } from '../../src/core/protocol/service/service.ts'
import { openCore } from '../../src/core/service/open.ts'
import { ask } from '../server/site.ts'
import { Secrets } from './secrets.ts'

const by = { who: 'local:tester', correlationId: 'test' }
const passwords = {
  Ann: 'violet-harbour-42',
  Ned: 'copper-meadow-17',
  Root: 'granite-window-93',
  Lou: 'amber-falcon-58',
}

/**
 * Ann is Admin, Ned and Lou have no role, Lou is disabled, Hal reports heartbeats, and the requests do not know the
 * password of Root.
 */
export async function makeAccounts(store: string): Promise<Secrets> {
  const secrets = new Secrets(Object.values(passwords))
  const { runtime } = await openCore({
    version: '9.8.7',
    config: { origin: undefined, types: {}, serve: { ...serveDefaults }, warnings: [] },
    store,
    shared: false,
    details: 'signed-in',
  })
  const { admin } = runtime
  if (!admin) throw new Error('There is no administration')
  const { users, keys } = admin
  await users.add({ userName: 'Root', password: passwords.Root, roles: ['Admin'] }, by)
  await users.add({ userName: 'Ann', displayName: 'Ann Éxample', password: passwords.Ann, roles: ['Admin'] }, by)
  await users.add({ userName: 'Ned', email: 'ned@example.com', password: passwords.Ned }, by)
  await users.add({ userName: 'Lou', password: passwords.Lou }, by)
  await users.add({ userName: 'Hal', permissions: ['heartbeat'] }, by)
  const key = async (name: string, userName: string, expiresInMs?: number): Promise<void> =>
    secrets.register(name, (await keys.create({ name, userName, expiresInMs }, by)).secret)
  await key('rootKey', 'Root')
  await key('annKey', 'Ann')
  await key('nedKey', 'Ned')
  await key('halKey', 'Hal')
  await key('louKey', 'Lou')
  await key('revokedKey', 'Ann')
  await key('expiredKey', 'Ann', 1)
  await keys.revoke('revokedKey', by)
  await users.disable('Lou', by)
  await runtime.close()
  secrets.register('annPassword', passwords.Ann)
  secrets.register('nedPassword', passwords.Ned)
  secrets.register('louPassword', passwords.Lou)
  return secrets
}

/** Gives everybody their roles back, and Ann and Ned new sessions. */
export async function renewed(port: number, secrets: Secrets): Promise<void> {
  const post = async (path: string, body: object, more: Record<string, string> = {}) =>
    await ask(port, path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...more },
      body: JSON.stringify(body),
    })
  const root = { authorization: `Bearer ${secrets.label('rootKey')}` }
  const roles = await Promise.all([
    post('/assignroles', { UserName: 'Ann', Roles: ['Admin', 'Editor'] }, root),
    post('/unassignroles', { UserName: 'Ned', Roles: ['Admin'] }, root),
    post('/unassignroles', { UserName: 'Hal', Roles: ['Admin'] }, root),
    post('/assignroles', { UserName: 'Hal', Permissions: ['heartbeat'] }, root),
  ])
  for (const { status, text } of roles) if (status !== 200) throw new Error(`roles were answered ${status}: ${text}`)
  for (const [UserName, Password] of [
    ['Ann', passwords.Ann],
    ['Ned', passwords.Ned],
  ] as const) {
    const who = UserName.toLowerCase()
    for (const RememberMe of [false, true]) {
      const { status, json } = await post('/auth/credentials', { UserName, Password, RememberMe })
      // Who was locked out by wrong passwords keeps the earlier sessions.
      if (status !== 200) continue
      secrets.register(`${who}${RememberMe ? 'Permanent' : 'Session'}`, String(json['SessionId']))
      secrets.register(`${who}Bearer`, String(json['BearerToken']))
      secrets.register(`${who}Refresh`, String(json['RefreshToken']))
    }
  }
}
