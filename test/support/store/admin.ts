import type { AuditLogEntry, HeartbeatEntry, KeyEntry, Request, UserEntry } from '../../../src/core/protocol/index.ts'
import { fromEntry, toEntry } from '../../../src/core/protocol/service/facts.ts'
import type {
  AdminActor,
  Administration,
  AuditFacts,
  KeyFacts,
  Service,
  UserFacts,
} from '../../../src/core/protocol/service/service.ts'

type InDocuments<O extends keyof Administration> = {
  readonly [Name in keyof Request<O> as Uncapitalize<Name & string>]: Request<O>[Name]
}
const userOf = (entry: UserEntry = {}) => fromEntry(entry) as UserFacts
const keyOf = (entry: KeyEntry = {}) => fromEntry(entry) as KeyFacts

/** The operations for Admins as most tests ask for them: by the names of documents, for the account of this machine. */
export function adminOf(operations: Administration) {
  const as = (by: AdminActor) => ({ ...by, signal: new AbortController().signal })
  const own = as({ who: 'local:tester', correlationId: 'test' })
  const changes =
    (operation: 'disableUser' | 'enableUser' | 'removeUser') => async (UserName: string, by: AdminActor) =>
      userOf((await operations[operation]({ UserName }, as(by))).User)
  const show = async (UserName: string) => userOf((await operations.getUser({ UserName }, own)).User)
  return {
    operations,
    users: {
      add: async (user: InDocuments<'addUser'>, by: AdminActor) =>
        userOf((await operations.addUser(toEntry(user), as(by))).User),
      list: async (After?: string, Take?: number) =>
        ((await operations.getUsers({ After, Take }, own)).Users ?? []).map(userOf),
      show,
      passwd: async (UserName: string, Password: string, by: AdminActor, more: Partial<Request<'setPassword'>> = {}) =>
        userOf((await operations.setPassword({ UserName, Password, ...more }, as(by))).User),
      removeDigest: async (UserName: string, by: AdminActor) =>
        (await operations.removeDigest({ UserName }, as(by))).Changed,
      disable: changes('disableUser'),
      enable: changes('enableUser'),
      remove: changes('removeUser'),
      unlock: async (UserName: string, From: string | undefined, by: AdminActor) =>
        userOf((await operations.unlockUser({ UserName, From }, as(by))).User),
      link: async (
        UserName: string,
        { issuer: Provider, subject: Subject }: { readonly issuer: string; readonly subject: string },
        by: AdminActor,
      ) => (await operations.linkUser({ UserName, Provider, Subject }, as(by))).Changed,
      unlink: async (
        UserName: string,
        { issuer: Provider, subject: Subject }: { readonly issuer: string; readonly subject?: string },
        by: AdminActor,
      ) => (await operations.unlinkUser({ UserName, Provider, Subject }, as(by))).Changed,
    },
    keys: {
      create: async (key: InDocuments<'createKey'>, by: AdminActor) => {
        const { Key, Secret = '' } = await operations.createKey(toEntry(key), as(by))
        return { key: keyOf(Key), secret: Secret }
      },
      list: async () => ((await operations.getKeys({}, own)).Keys ?? []).map(keyOf),
      revoke: async (Name: string, by: AdminActor) => await operations.revokeKey({ Name }, as(by)),
    },
    roles: {
      show,
      holders: async (Role: string) => ((await operations.roleHolders({ Role }, own)).Users ?? []).map(userOf),
    },
    heartbeats: {
      list: async () =>
        ((await operations.getHeartbeats({}, own)).Heartbeats ?? []).map((entry: HeartbeatEntry) => fromEntry(entry)),
    },
    audit: {
      list: async ({ limit: Take, ...filter }: Omit<InDocuments<'getAudit'>, 'take'> & { readonly limit: number }) =>
        ((await operations.getAudit({ ...toEntry(filter), Take }, own)).Entries ?? []).map(
          (entry: AuditLogEntry) => fromEntry(entry) as AuditFacts,
        ),
    },
  }
}
export type TestAdmin = ReturnType<typeof adminOf>

/** The same over a Service, for the account `x` of an actor `local:x`. */
export const adminOver = (service: Service): TestAdmin =>
  adminOf(
    new Proxy({} as Administration, {
      get: (_, operation: keyof Administration) => {
        const ask = service[operation] as Service['addUser']
        return async (
          request: object,
          { who, correlationId, reason, signal }: AdminActor & { signal: AbortSignal },
        ) => {
          const caller = { kind: 'local', account: who.replace('local:', '') } as const
          return await ask({ ...request, Reason: reason }, { caller, correlationId, signal })
        }
      },
    }),
  )
