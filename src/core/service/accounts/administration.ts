import { refuseFields } from '../../accounts/auth/index.ts'
import { emptyField, Fault, invalidField } from '../../base/errors.ts'
import {
  type AdminOperation,
  administration,
  type Dto,
  type Heartbeat,
  type HeartbeatEntry,
  limits,
} from '../../protocol/index.ts'
import { toEntry } from '../../protocol/service/facts.ts'
import type { Admin, AdminCaller, Administration, DigestConsent } from '../../protocol/service/service.ts'
import { readHead } from '../../store/audit/index.ts'

type Options = {
  /** The issuers of the OpenID providers that are turned on. */
  readonly providers: readonly { readonly name: string; readonly issuer: string }[]
}

/** Sessions whose first reading of the audit is remembered. Another one is recorded again. */
const maxReaders = 10_000

/** The operations on the store of `admin`. The first page of the audit that a session reads is recorded. */
export function administrationOver(admin: Admin, { providers }: Options): Administration {
  const readers = new Set<string>()
  const reading = async ({ session, signal: _, ...by }: AdminCaller): Promise<void> => {
    if (session === undefined || readers.has(session)) return
    await admin.audit.noteReading(by)
    if (readers.size >= maxReaders) readers.clear()
    readers.add(session)
  }
  const { users, keys, heartbeats, audit, roles } = admin
  const issuerOf = (provider = ''): string => issuerNamed(providers, provider)
  const setDisabled = async (UserName: string, disabled: boolean, by: AdminCaller) => {
    const before = await users.show(UserName)
    if (before.disabled === disabled) return { User: toEntry(before), Changed: false }
    const user = await (disabled ? users.disable : users.enable)(before.userName, by)
    return { User: toEntry(user), Changed: true }
  }
  const answers: Administration = {
    getUsers: async ({ Like, Take, After }) => {
      if (Like !== undefined) return { Users: (await users.near(Like)).map((UserName) => ({ UserName })) }
      return { Users: (await users.list(After, Take)).map(toEntry), Total: await users.count() }
    },
    getUser: async ({ UserName = '' }) => ({ User: toEntry(await users.show(UserName)) }),
    addUser: async ({ UserName = '', Password, Email, DisplayName, Roles, Permissions, ...flags }, by) => {
      const mustChangePassword = flags.MustChangePassword && Password !== undefined
      const user = {
        userName: UserName,
        password: Password,
        mustChangePassword,
        email: Email,
        displayName: DisplayName,
      }
      const rights = { roles: Roles ?? [], permissions: Permissions ?? [], digest: consentOf(flags) }
      return { User: toEntry(await users.add({ ...user, ...rights }, by)) }
    },
    setPassword: async ({ UserName = '', Password = '', ...flags }, by) => ({
      User: toEntry(await users.passwd(UserName, Password, by, consentOf(flags), flags.MustChangePassword)),
    }),
    removeDigest: async ({ UserName = '' }, by) => {
      const { user, removed } = await users.removeDigest(UserName, by)
      return { User: toEntry(user), Changed: removed }
    },
    disableUser: ({ UserName = '' }, by) => setDisabled(UserName, true, by),
    enableUser: ({ UserName = '' }, by) => setDisabled(UserName, false, by),
    unlockUser: async ({ UserName = '', From }, by) => ({ User: toEntry(await users.unlock(UserName, From, by)) }),
    linkUser: async ({ UserName = '', Provider, Subject = '' }, by) => {
      const issuer = issuerOf(Provider)
      const changed = await users.link(UserName, { issuer, subject: Subject }, by)
      return { User: toEntry(await users.show(UserName)), Changed: changed }
    },
    unlinkUser: async ({ UserName = '', Provider, Subject }, by) => {
      const issuer = issuerOf(Provider)
      const removed = await users.unlink(UserName, { issuer, subject: Subject }, by)
      return { User: toEntry(await users.show(UserName)), Changed: removed > 0 }
    },
    removeUser: async ({ UserName = '' }, by) => ({ User: toEntry(await users.remove(UserName, by)) }),
    getKeys: async ({ Like, Take = maxPage, After }) => {
      if (Like !== undefined) return { Keys: (await keys.near(Like)).map((Name) => ({ Name })) }
      return { Keys: (await keys.list(After, Take)).map(toEntry) }
    },
    createKey: async ({ Name = '', UserName = '', Roles, Permissions, Lifetime }, by) => {
      const bounds = { roles: Roles, permissions: Permissions, expiresInMs: Lifetime }
      const { key, secret } = await keys.create({ name: Name, userName: UserName, ...bounds }, by)
      return { Key: toEntry(key), Secret: secret }
    },
    revokeKey: async ({ Name = '' }, by) => {
      await keys.revoke(Name, by)
      return { Name }
    },
    getAudit: async ({ Take = maxPage, Before, UserName, Events, Since, Until, Role }, by) => {
      await reading(by)
      const filter = { user: UserName, events: Events, since: Since, until: Until, role: Role }
      return { Entries: (await audit.list({ ...filter, before: Before, limit: Take })).map(toEntry) }
    },
    verifyAudit: async ({ Head }, by) => {
      await reading(by)
      const compared = Head === undefined ? undefined : readHead(Head)
      if (Head !== undefined && !compared) refuseFields([invalidField('Head', 'must be a head, as N:HASH')])
      const { problems, head, began, more, seals, entries, pruned, unsealed, entriesBefore } = await audit.verify(
        compared,
        by.signal,
      )
      return {
        Problems: problems.map(toEntry),
        Head: head && toEntry(head),
        Began: began && { Number: began.number, At: new Date(began.at) },
        ...toEntry({ more, seals, entries, pruned, unsealed, entriesBefore }),
      }
    },
    auditHead: async () => {
      const head = await audit.head()
      return head ? { Head: { ...toEntry(head) } } : {}
    },
    getHeartbeats: async ({ Like, Take = maxPage, After }) => {
      if (Like !== undefined) return { Heartbeats: (await heartbeats.near(Like)).map((Name) => ({ Name })) }
      // There are few enough to read all of them (rows/capacity.ts).
      const all = await heartbeats.list()
      const next = After === undefined ? all : all.filter(({ name }) => name > After)
      return { Heartbeats: next.slice(0, Take).map(heartbeatEntry) }
    },
    forgetHeartbeat: async ({ Name = '' }, by) => {
      await heartbeats.remove(Name, by)
      return { Name }
    },
    roleHolders: async ({ Role = '', At, Take = maxPage, After }, by) => {
      if (At === undefined) {
        const total = await roles.count(Role)
        if (total === 0) return { Users: [], Total: 0, Roles: await roles.names() }
        return { Users: (await roles.holders(Role, After, Take)).map(toEntry), Total: total }
      }
      await reading(by)
      const past = await roles.holdersAt(Role, At)
      const from = After === undefined ? 0 : past.users.findIndex(({ userName }) => userName === After) + 1
      return {
        Users: past.users.slice(from, from + Take).map(toEntry),
        Total: past.users.length,
        Roles: past.users.length > 0 ? [] : past.roles.slice(0, maxPage),
        AnswersFrom: past.answersFrom,
        LinkedUsers: past.linkedUsers,
      }
    },
    roleHistory: async ({ UserName = '', Take = maxPage, AfterId = 0 }, by) => {
      await reading(by)
      const entries = await roles.history(UserName)
      return {
        Entries: entries
          .filter(({ id }) => id > AfterId)
          .slice(0, Take)
          .map(toEntry),
      }
    },
  }
  return checked(answers)
}

const maxPage = limits.pageItems

/** Refuses requests that the rows do not allow. */
function checked(answers: Administration): Administration {
  const guarded = (operation: AdminOperation) => async (sent: object, by: AdminCaller) => {
    // An empty value is unset (N5).
    const request = Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== ''))
    refuseInvalid(administration[operation].request, request)
    return await (answers[operation] as (request: object, by: AdminCaller) => Promise<unknown>)(request, by)
  }
  const names = Object.keys(administration) as AdminOperation[]
  return Object.fromEntries(names.map((name) => [name, guarded(name)])) as unknown as Administration
}

/** Throws one fault for all fields that are missing or out of their range. */
function refuseInvalid({ fields }: Dto, request: object): void {
  refuseFields(
    Object.entries(fields).flatMap(([name, field]) => {
      const value: unknown = Reflect.get(request, name)
      const isBlank = typeof value !== 'string' || value.trim() === ''
      if (field.kind === 'text' && field.needed && isBlank) return [emptyField(name)]
      if (field.kind === 'date' && value instanceof Date && Number.isNaN(value.getTime())) {
        return [invalidField(name, 'must be a date')]
      }
      if (field.kind !== 'number' || typeof value !== 'number') return []
      const { min = 0, max = Number.MAX_SAFE_INTEGER } = field
      const isIn = Number.isSafeInteger(value) && value >= min && value <= max
      return isIn ? [] : [invalidField(name, `must be a whole number from ${min} to ${max}`)]
    }),
  )
}

const consentOf = (flags: { readonly Digest?: boolean | undefined; readonly DigestForAdmin?: boolean | undefined }) =>
  flags.Digest || flags.DigestForAdmin
    ? ({ forAdmin: flags.DigestForAdmin === true } satisfies DigestConsent)
    : undefined

/** The issuer of a provider by its name; a URL is the issuer itself. */
function issuerNamed(providers: Options['providers'], provider: string): string {
  if (/^https?:\/\//.test(provider)) return provider
  const match = providers.find(({ name }) => name === provider.toLowerCase())
  if (match) return match.issuer
  const has = providers.length === 0 ? 'there is none' : `there are: ${providers.map(({ name }) => name).join(', ')}`
  throw new Fault('BadRequest', `'Provider' must be a provider of svc.yaml or the URL of its issuer; ${has}`, {
    errorCode: 'ValidationException',
    fields: [invalidField('Provider', `must be a provider of svc.yaml or the URL of its issuer; ${has}`)],
  })
}

function heartbeatEntry({ at, intervalMs, skewMs, history: _, run, ...heartbeat }: Heartbeat): HeartbeatEntry {
  return {
    ...toEntry(heartbeat),
    At: new Date(at),
    Interval: intervalMs,
    ClockSkew: skewMs,
    ...(run && {
      StartedAt: new Date(run.startedAt),
      EndedAt: run.endedAt === undefined ? undefined : new Date(run.endedAt),
      Duration: run.durationMs,
      ExitCode: run.exitCode,
      Output: run.output,
    }),
  }
}
