import { serveDefaults } from '../../src/core/protocol/service/service.ts'
import { openCore } from '../../src/core/service/open.ts'
import { ask } from '../server/site.ts'
import { adminOver } from '../support/store/admin.ts'
import { Secrets } from './secrets.ts'

const by = { who: 'local:tester', correlationId: 'test' }
const passwords = {
  Ann: 'violet-harbour-42',
  Ned: 'copper-meadow-17',
  Root: 'granite-window-93',
  Lou: 'amber-falcon-58',
}

/** By name: what an Admin adds for each round, because the requests of the round before may have changed or removed it. */
const users = [
  { UserName: 'Ann', DisplayName: 'Ann Éxample', Password: passwords.Ann, Roles: ['Admin', 'Editor'] },
  { UserName: 'Ned', Email: 'ned@example.com', Password: passwords.Ned },
  { UserName: 'Lou', Password: passwords.Lou },
  { UserName: 'Hal', Permissions: ['heartbeat'] },
]
const keys = [
  { Name: 'annKey', UserName: 'Ann' },
  { Name: 'nedKey', UserName: 'Ned' },
  { Name: 'halKey', UserName: 'Hal' },
  { Name: 'louKey', UserName: 'Lou' },
  { Name: 'revokedKey', UserName: 'Ann' },
  { Name: 'expiredKey', UserName: 'Ann', Lifetime: 'PT0.001S' },
]

/** Makes a store whose only user is Root, an Admin whose password and key the requests do not know. */
export async function makeRoot(store: string): Promise<Secrets> {
  const secrets = new Secrets(Object.values(passwords))
  const { service, runtime } = await openCore({
    version: '9.8.7',
    config: { origin: undefined, types: {}, serve: { ...serveDefaults }, warnings: [] },
    store,
    shared: false,
    details: 'signed-in',
  })
  const admin = adminOver(service)
  await admin.users.add({ userName: 'Root', password: passwords.Root, roles: ['Admin'] }, by)
  secrets.register('rootKey', (await admin.keys.create({ name: 'rootKey', userName: 'Root' }, by)).secret)
  await runtime.close()
  secrets.register('annPassword', passwords.Ann)
  secrets.register('nedPassword', passwords.Ned)
  secrets.register('louPassword', passwords.Lou)
  return secrets
}

/**
 * Removes everybody but Root, and adds the users anew with keys and sessions: Ann is Admin, Ned and Lou have no role, Lou
 * is disabled, and Hal reports heartbeats. Nothing else may be sent meanwhile, because Ann may remove users too.
 */
export async function renewed(port: number, secrets: Secrets): Promise<void> {
  const root = { authorization: `Bearer ${secrets.label('rootKey')}` }
  const send = async (path: string, body?: object, headers: Readonly<Record<string, string>> = root) => {
    const { status, text, json } = await ask(port, path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
      ...(body && { body: JSON.stringify(body) }),
    })
    if (status !== 200) throw new Error(`${path} was answered ${status}: ${text}`)
    return json
  }
  const { Users } = (await send('/users')) as { readonly Users: readonly { readonly UserName: string }[] }
  for (const { UserName } of Users) if (UserName !== 'Root') await send('/users/remove', { UserName })
  for (const user of users) {
    await send('/users/add', user)
    // Wrong passwords may have locked the name.
    await send('/users/unlock', { UserName: user.UserName })
  }
  for (const key of keys) secrets.register(key.Name, String((await send('/keys/create', key))['Secret']))
  await send('/keys/revoke', { Name: 'revokedKey' })
  await send('/users/disable', { UserName: 'Lou' })
  for (const UserName of ['Ann', 'Ned'] as const) {
    const who = UserName.toLowerCase()
    for (const RememberMe of [false, true]) {
      const json = await send('/auth/credentials', { UserName, Password: passwords[UserName], RememberMe }, {})
      secrets.register(`${who}${RememberMe ? 'Permanent' : 'Session'}`, String(json['SessionId']))
      secrets.register(`${who}Bearer`, String(json['BearerToken']))
      secrets.register(`${who}Refresh`, String(json['RefreshToken']))
    }
  }
}
