import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { type Data, openData, type User } from '../../src/core/store/index.ts'
import {
  actor,
  backendsOfTier,
  failed,
  failuresOf,
  faultOf,
  newUser,
  nobody,
  signInOf,
  successorOf,
  twoNodes,
} from '../support/store/data-fixture.ts'
import { anyChanges, applied } from '../support/store/role-changes.ts'

const listsOf = ({ roles, permissions }: { roles: readonly string[]; permissions: readonly string[] }) => ({
  roles,
  permissions,
})
const roles = (...names: string[]) => ({ roles: names, permissions: [] })

const changesNothing = { clears: undefined, givesBack: undefined, remembers: undefined }
/** A right password from a place. */
const remembered = (data: Data, user: User, prefix: string, at: number) =>
  data.settle(user, { ...changesNothing, remembers: { prefix, at } })

describe.each(backendsOfTier())('the store on $name', ({ start, fresh, raw, stop }) => {
  let store = ''
  let clock = 1_000
  let data: Data
  /** A second node of the same store. */
  let other: Data
  beforeAll(start)
  afterAll(stop)
  beforeEach(async () => {
    clock = 1_000
    ;({ store, data, other } = await twoNodes(fresh, store, () => clock))
  })
  afterEach(() => Promise.all([data.close(), other.close()]))
  const events = async (): Promise<string[]> => (await data.audit.list({ limit: 1_000 })).map(({ event }) => event)
  const identity = { issuer: 'https://login.example.com', subject: 'erin-1' }

  test('A12 of parallel uses of one nonce and nc on two nodes, one counts; nc must rise', async () => {
    const secret = { realm: 'svc', sha256: 'a'.repeat(64), md5: 'b'.repeat(32), forAdmin: false }
    const { id: userId } = await data.users.add({ ...newUser('dora'), digest: secret }, actor())
    const nonce = { userId, sha256: secret.sha256, nonce: 'n1', madeAt: clock + 1 }
    const useOn = (on: Data, nc: number) => on.digest.use({ ...nonce, nc })
    const first = await Promise.all([data, other, data, other].map((on) => useOn(on, 1)))
    expect(first.filter(Boolean)).toHaveLength(1)
    expect(await useOn(other, 3)).toBe(true)
    expect(await useOn(data, 2)).toBe(false)
    expect(await useOn(data, 3)).toBe(false)
    expect(await data.digest.nonceKey()).toBe(await other.digest.nonceKey())
  })

  test('T7 of parallel first sign-ins with one identity, one adds the user', async () => {
    const names = ['erin', 'corp:erin-1']
    const add = (on: Data) => on.identities.addUser(identity, { names, displayName: undefined }, actor())
    const added = await Promise.all([data, other, data, other].map(add))
    expect(new Set(added.map(({ id }) => id)).size).toBe(1)
    expect(added[0]?.userName).toBe('erin')
    expect((await data.identities.find(identity.issuer, identity.subject))?.id).toBe(added[0]?.id)
    expect(await events()).toEqual(['user.linked', 'user.added'])
    expect(await data.identities.unlink(added[0]?.id ?? '', identity.issuer, undefined, actor())).toBe(1)
    expect(await data.identities.find(identity.issuer, identity.subject)).toBeUndefined()
  })

  test('A13 of parallel uses of one state, one counts, and the sweep forgets it at its end', async () => {
    const used = await Promise.all([data, other, data, other].map((on) => on.identities.use('state', 5_000)))
    expect(used.filter(Boolean)).toHaveLength(1)
    await data.sweep(4_999)
    expect(await other.identities.use('state', 5_000)).toBe(false)
    await data.sweep(5_000)
    expect(await other.identities.use('state', 6_000)).toBe(true)
  })

  test('A13 all nodes seal browser sign-ins with one key', async () => {
    const keys = await Promise.all([data, other].map((on) => on.identities.sealingKey()))
    expect(keys[0]).toMatch(/^[0-9a-f]{64}$/)
    expect(keys[1]).toBe(keys[0])
  })

  test('A13 roles from claims end with their family, and at their own end', async () => {
    const user = await data.users.add(newUser('erin'), actor())
    const begin = async () => {
      const record = signInOf(user)
      await data.sessions.begin({ ...record, claimedRoles: { roles: ['Ops'], endsAt: 5_000 } }, actor())
      return record
    }
    const [first, second] = [await begin(), await begin()]
    const rolesOf = ({ session, access }: Awaited<ReturnType<typeof begin>>, at: number) =>
      Promise.all([
        other.identities.claimedRoles('session', session.hash, at),
        other.identities.claimedRoles('access', access.hash, at),
      ])
    expect(await rolesOf(first, 4_999)).toEqual([['Ops'], ['Ops']])
    expect(await rolesOf(first, 5_000)).toEqual([[], []])
    await data.sessions.endFamily(first.session.familyId, actor())
    expect(await rolesOf(first, 4_999)).toEqual([[], []])
    await data.users.setDisabled(user.id, true, actor())
    expect(await rolesOf(second, 4_999)).toEqual([[], []])
  })

  const startMs = async (userName = 'alice', kind: 'fixed' | 'rotating' = 'rotating') => {
    const user = (await data.users.find(userName)) ?? (await data.users.add(newUser(userName), actor()))
    const signIn = signInOf(user, kind)
    await data.sessions.begin(signIn, actor())
    return { user, ...signIn }
  }

  describe('users', () => {
    test('O4 a user is found by name and by e-mail address, in NFC and without letter case', async () => {
      const made = await data.users.add(
        newUser('Jos\u00e9', { email: 'Pepe@Example.com', displayName: 'José', passwordHash: '$argon2id$x' }),
        actor(),
      )
      expect(made).toEqual({
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        userName: 'Jos\u00e9',
        email: 'Pepe@Example.com',
        displayName: 'José',
        passwordHash: '$argon2id$x',
        mustChangePassword: false,
        disabled: false,
        createdAt: 1_000,
        epoch: 0,
        ...nobody,
        grants: [],
      })
      for (const typed of ['Jos\u00e9', 'JOS\u00c9', 'jose\u0301', 'pepe@example.COM']) {
        expect([typed, await other.users.find(typed)]).toEqual([typed, made])
      }
      expect(await other.users.byId(made.id)).toEqual(made)
      for (const typed of ['Jose', 'pepe', '', 'Jos\u00e9\0', 'Jos\u00e9\ud800', "' OR 1=1 --", '%']) {
        expect([typed, await data.users.find(typed)]).toEqual([typed, undefined])
      }
      expect(await data.users.byId(randomUUID())).toBeUndefined()
    })
    test("O4 names and e-mail addresses are unique together, so nobody can have another's address as a name", async () => {
      await data.users.add(newUser('alice', { email: 'alice@example.com' }), actor())
      for (const [what, user] of [
        ['user name', newUser('ALICE')],
        ['user name', newUser('Alice@Example.com')],
        ['e-mail address', newUser('bob', { email: 'ALICE@example.com' })],
        ['e-mail address', newUser('bob', { email: 'Alice' })],
      ] as const) {
        const fault = await faultOf(other.users.add(user, actor()))
        expect([fault.fault, fault.message]).toEqual(['Conflict', `The ${what} is already in use`])
      }
      expect(await data.users.list()).toHaveLength(1)
      expect(await events()).toEqual(['user.added'])
      const own = await data.users.add(newUser('carol@example.com', { email: 'Carol@example.com' }), actor())
      expect((await data.users.find('CAROL@EXAMPLE.COM'))?.id).toBe(own.id)
    })
    test('O4 when 20 callers create one name concurrently, one succeeds', async () => {
      const tries = Array.from({ length: 20 }, (_, n) => (n % 2 ? data : other).users.add(newUser('dave'), actor()))
      const ends = (await Promise.allSettled(tries)).map((end) =>
        end.status === 'fulfilled' ? 'made' : end.reason.fault,
      )
      expect(ends.filter((end) => end === 'made')).toHaveLength(1)
      expect(ends.filter((end) => end === 'Conflict')).toHaveLength(19)
    })
    test('users are listed by name; any, anyAdmin and holders report who exists', async () => {
      expect([await data.users.any(), await data.users.anyAdmin()]).toEqual([false, false])
      for (const userName of ['zoe', 'Bob', 'ann', 'Émile']) await data.users.add(newUser(userName), actor())
      expect((await data.users.list()).map(({ userName }) => userName)).toEqual(['ann', 'Bob', 'zoe', 'Émile'])
      expect([await data.users.any(), await data.users.anyAdmin()]).toEqual([true, false])
      const admin = await data.users.add(newUser('root', roles('Ops', 'Admin')), actor())
      await data.users.add(newUser('oops', { permissions: ['Admin'], roles: ['admin'] }), actor())
      expect(await data.users.anyAdmin()).toBe(true)
      expect(await data.users.holders('Admin')).toEqual([admin])
      expect(await data.users.holders('admi')).toEqual([])
    })
    test('a user is removed with all data, and the name is free again', async () => {
      const { user, session, access, refresh } = await startMs()
      await data.keys.add({ name: 'ci', hash: 'h', userId: user.id, roles: undefined, expiresAt: undefined }, actor())
      await data.users.remove(user.id, actor())
      expect(await other.users.find('alice')).toBeUndefined()
      expect(await other.sessions.find(session.hash)).toBeUndefined()
      expect(await other.tokens.access(access.hash)).toBeUndefined()
      expect(await other.tokens.refresh(refresh.hash)).toBeUndefined()
      expect(await other.keys.find('h')).toBeUndefined()
      await data.users.add(newUser('Alice'), actor())
      for (const work of [
        () => data.users.remove(user.id, actor()),
        () => data.users.setDisabled(user.id, true, actor()),
        () => data.users.setPassword(user.id, 'x', actor()),
        () => data.users.changeGrants(user.id, { add: nobody, remove: nobody }, actor()),
        () =>
          data.sessions.begin(signInOf(user), actor()).catch((error) => {
            expect(error.fault).toBe('Unauthorized')
            return data.users.remove(user.id, actor())
          }),
      ]) {
        expect((await faultOf(work())).fault).toBe('NotFound')
      }
    })
  })

  describe('roles', () => {
    test('O2 lists are in the order granted, without duplicates, and case-sensitive', async () => {
      const { id } = await data.users.add(newUser('alice', roles('Zulu', 'alpha', 'Zulu')), actor())
      const first = await data.users.changeGrants(
        id,
        { add: { roles: ['mike', 'Alpha', 'mike', 'alpha'], permissions: ['read', 'Read'] }, remove: nobody },
        actor(),
      )
      expect(listsOf(first.before)).toEqual({ roles: ['Zulu', 'alpha'], permissions: [] })
      expect(listsOf(first.after)).toEqual({ roles: ['Zulu', 'alpha', 'mike', 'Alpha'], permissions: ['read', 'Read'] })
      await other.users.changeGrants(id, { add: nobody, remove: roles('Zulu', 'ALPHA') }, actor())
      await data.users.changeGrants(id, { add: roles('Zulu'), remove: nobody }, actor())
      const now = await other.users.byId(id)
      expect(now && listsOf(now)).toEqual({ roles: ['alpha', 'mike', 'Alpha', 'Zulu'], permissions: ['read', 'Read'] })
    })
    test('O3 granting a role that the user has and removing one that it lacks change nothing and are not audited', async () => {
      const { id } = await data.users.add(newUser('alice', roles('Ops')), actor())
      for (const change of [
        { add: roles('Ops'), remove: nobody },
        { add: nobody, remove: roles('ops', 'Nope') },
        { add: nobody, remove: nobody },
        { add: roles('Ops'), remove: roles('Ops') },
      ]) {
        const { before, after } = await data.users.changeGrants(id, change, actor())
        expect([listsOf(before), listsOf(after)]).toEqual([roles('Ops'), roles('Ops')])
      }
      expect(await events()).toEqual(['user.added'])
    })
    test('O6 the last Admin cannot lose Admin: not by a change, by disabling or by removal', async () => {
      const root = await data.users.add(newUser('root', roles('Admin', 'Ops')), actor())
      const second = await data.users.add(newUser('second', roles('Admin')), actor())
      await data.users.setDisabled(second.id, true, actor())
      const auditEntries = await events()
      for (const work of [
        () => data.users.changeGrants(root.id, { add: roles('New'), remove: roles('Ops', 'Admin') }, actor()),
        () => data.users.setDisabled(root.id, true, actor()),
        () => data.users.remove(root.id, actor()),
      ]) {
        const fault = await faultOf(work())
        expect([fault.fault, fault.message]).toEqual(['Conflict', 'The last Admin cannot lose Admin'])
      }
      expect(await other.users.byId(root.id)).toEqual(root)
      expect(await events()).toEqual(auditEntries)
      await data.users.changeGrants(second.id, { add: nobody, remove: roles('Admin') }, actor())
      await data.users.setDisabled(second.id, false, actor())
      await data.users.changeGrants(second.id, { add: roles('Admin'), remove: nobody }, actor())
      await data.users.remove(root.id, actor())
      expect((await data.users.holders('Admin')).map(({ userName }) => userName)).toEqual(['second'])
    })
    test('O6 when two Admins remove Admin from each other concurrently, one remains', async () => {
      const ways = [
        (by: Data, id: string) => by.users.changeGrants(id, { add: nobody, remove: roles('Admin') }, actor()),
        (by: Data, id: string) => by.users.remove(id, actor()),
        (by: Data, id: string) => by.users.setDisabled(id, true, actor()),
      ]
      for (let round = 0; round < 9; round += 1) {
        const a = await data.users.add(newUser(`a${round}`, roles('Admin')), actor())
        const b = await data.users.add(newUser(`b${round}`, roles('Admin')), actor())
        for (const one of await data.users.holders('Admin')) {
          const change = { add: nobody, remove: roles('Admin') }
          if (one.id !== a.id && one.id !== b.id) await data.users.changeGrants(one.id, change, actor())
        }
        const way = ways[round % 3] ?? ways[0]
        const ends = await Promise.allSettled([way?.(data, a.id), way?.(other, b.id)])
        expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
        expect(await data.users.anyAdmin()).toBe(true)
        const admins = (await data.users.holders('Admin')).filter(({ disabled }) => !disabled)
        expect(admins).toHaveLength(1)
      }
    })
    test('D5 100 concurrent role changes of one user, over two connections, happen in some order', async () => {
      const { id } = await data.users.add(newUser('alice', roles('Ops')), actor())
      const all = anyChanges('parallel', 100)
      // The last in the queue may wait longer than the store lets anybody wait: whether it was done is unknown then.
      const unknown = (error: unknown): undefined => {
        if (!(error instanceof Fault && error.fault === 'Unavailable')) throw error
      }
      const answers = await Promise.all(
        all.map((one, n) => (n % 2 ? data : other).users.changeGrants(id, one.change, actor(one.id)).catch(unknown)),
      )
      const audit = (await data.audit.list({ limit: 1_000 })).toReversed().slice(1)
      expect(audit.length).toBeGreaterThan(20)
      let now = roles('Ops') as ReturnType<typeof listsOf>
      for (const { correlationId, before, after } of audit) {
        const n = all.findIndex((one) => one.id === correlationId)
        const [one, answer] = [all[n], answers[n]]
        if (!one) throw new Error(`nobody asked for ${correlationId}`)
        expect(JSON.parse(before ?? '')).toEqual(now)
        now = applied(one.change, now)
        expect(JSON.parse(after ?? '')).toEqual(now)
        if (answer) expect(listsOf(answer.after)).toEqual(now)
      }
      const last = await other.users.byId(id)
      expect(last && listsOf(last)).toEqual(now)
      // What is not in the audit changed nothing, and saw a state that there was.
      const states = new Set([JSON.stringify(roles('Ops')), ...audit.map(({ after }) => after)])
      for (const [n, answer] of answers.entries()) {
        if (!answer || audit.some(({ correlationId }) => correlationId === all[n]?.id)) continue
        expect(listsOf(answer.after)).toEqual(listsOf(answer.before))
        expect(states).toContain(JSON.stringify(listsOf(answer.after)))
      }
    })
  })

  describe('sessions and tokens', () => {
    test('a sign-in stores a session, an access and a refresh token, found by their hashes on each node', async () => {
      const { session, access, refresh } = await startMs()
      expect(await other.sessions.find(session.hash)).toEqual(session)
      expect(await other.tokens.access(access.hash)).toEqual(access)
      expect(await other.tokens.refresh(refresh.hash)).toEqual(refresh)
      // T5: a hash of one kind is nothing to the others.
      expect(await data.tokens.access(refresh.hash)).toBeUndefined()
      expect(await data.tokens.refresh(access.hash)).toBeUndefined()
      expect(await data.sessions.find(access.hash)).toBeUndefined()
    })
    test('A8 a sign-in ends the session that its request presents, and its family', async () => {
      const first = await startMs()
      const second = { ...signInOf(first.user), endsSession: first.session.hash }
      await data.sessions.begin(second, actor())
      expect(await data.sessions.find(first.session.hash)).toBeUndefined()
      expect(await data.tokens.access(first.access.hash)).toBeUndefined()
      expect(await data.tokens.refresh(first.refresh.hash)).toBeUndefined()
      expect(await data.sessions.find(second.session.hash)).toEqual(second.session)
      await data.sessions.begin({ ...signInOf(first.user), endsSession: 'unknown' }, actor())
    })
    test('A7 a sign-out ends session and family, and only these; a second one changes nothing', async () => {
      const [first, second] = [await startMs(), await startMs()]
      await other.sessions.endFamily(first.session.familyId, actor('bye'))
      expect(await data.sessions.find(first.session.hash)).toBeUndefined()
      expect(await data.tokens.access(first.access.hash)).toBeUndefined()
      expect(await data.tokens.refresh(first.refresh.hash)).toBeUndefined()
      expect(await data.sessions.find(second.session.hash)).toEqual(second.session)
      await data.sessions.endFamily(first.session.familyId, actor())
      const [last, before] = await data.audit.list({ limit: 2 })
      expect(last).toMatchObject({ event: 'signout', target: 'alice', correlationId: 'bye' })
      expect(before?.event).toBe('signin.ok')
    })
    test('the last use of a session is stored, and never goes back', async () => {
      const { session } = await startMs()
      await data.sessions.touch(session.hash, 5_000)
      await data.sessions.touch(session.hash, 4_000)
      expect((await other.sessions.find(session.hash))?.lastUsedAt).toBe(5_000)
    })
    test('T2 a new password ends earlier credentials; a rehash ends nothing, and never undoes a new password', async () => {
      const user = await data.users.add(newUser('alice', { passwordHash: 'old' }), actor())
      const { session, access, refresh } = await startMs()
      await data.users.setPassword(user.id, 'rehashed', { replaces: 'old' })
      expect(await other.users.byId(user.id)).toMatchObject({ passwordHash: 'rehashed', epoch: 0 })
      expect(await other.sessions.find(session.hash)).toEqual(session)
      await data.users.setPassword(user.id, 'new', actor())
      expect(await other.users.byId(user.id)).toMatchObject({ passwordHash: 'new', epoch: 1 })
      expect(await other.sessions.find(session.hash)).toBeUndefined()
      expect(await other.tokens.access(access.hash)).toBeUndefined()
      expect(await other.tokens.refresh(refresh.hash)).toBeUndefined()
      await data.users.setPassword(user.id, 'rehashed again', { replaces: 'rehashed' })
      expect(await other.users.byId(user.id)).toMatchObject({ passwordHash: 'new', epoch: 1 })
      expect(await events()).toEqual(['password.changed', 'signin.ok', 'user.added'])
    })
    test('T2 a sign-in that began before a new password or a disabling fails', async () => {
      const { user } = await startMs()
      await other.users.setPassword(user.id, 'new', actor())
      expect((await faultOf(data.sessions.begin(signInOf(user), actor()))).fault).toBe('Unauthorized')
      await other.users.setDisabled(user.id, true, actor())
      expect((await faultOf(data.sessions.begin(signInOf({ ...user, epoch: 2 }), actor()))).fault).toBe('Unauthorized')
    })
    test('T2 disabling ends earlier credentials, and enabling does not restore them', async () => {
      const { user, session, access } = await startMs()
      await data.users.setDisabled(user.id, true, actor())
      await data.users.setDisabled(user.id, true, actor())
      expect(await other.users.byId(user.id)).toMatchObject({ disabled: true, epoch: 1 })
      await data.users.setDisabled(user.id, false, actor())
      expect(await other.users.byId(user.id)).toMatchObject({ disabled: false, epoch: 1 })
      expect(await other.sessions.find(session.hash)).toBeUndefined()
      expect(await other.tokens.access(access.hash)).toBeUndefined()
      expect(await events()).toEqual(['user.enabled', 'user.disabled', 'signin.ok', 'user.added'])
    })
    test('A11 a fixed family yields new access tokens until it ends', async () => {
      const { session, access, refresh } = await startMs('alice', 'fixed')
      const next = { ...access, hash: 'next' }
      await other.tokens.renew(refresh.hash, next, 7_000)
      expect(await data.tokens.access('next')).toEqual(next)
      expect((await data.tokens.refresh(refresh.hash))?.lastUsedAt).toBe(7_000)
      await data.sessions.endFamily(session.familyId, actor())
      const late = data.tokens.renew(refresh.hash, { ...access, hash: 'late' }, 8_000)
      expect((await faultOf(late)).fault).toBe('Unauthorized')
      expect(await data.tokens.access('late')).toBeUndefined()
      const rotating = await startMs()
      const invalid = data.tokens.renew(rotating.refresh.hash, { ...rotating.access, hash: 'wrong' }, 8_000)
      expect((await faultOf(invalid)).fault).toBe('Unauthorized')
    })
    test('T4 within 10 s the same token yields the same sealed successor; later it revokes the family', async () => {
      const made = await startMs()
      const next = successorOf(made)
      const rotate = (hash: string, successor: typeof next, at: number, by = data) =>
        by.tokens.rotate(hash, successor, at, actor('rotate'))
      expect(await rotate(made.refresh.hash, next, 20_000)).toEqual({ outcome: 'rotated' })
      expect(await data.tokens.refresh(made.refresh.hash)).toEqual({
        ...made.refresh,
        usedAt: 20_000,
        sealedSuccessor: next.sealed,
      })
      expect(await data.tokens.access(next.access.hash)).toEqual(next.access)
      expect(await data.tokens.refresh(next.refresh.hash)).toEqual(next.refresh)
      const repeated = { outcome: 'repeated', sealedSuccessor: next.sealed }
      expect(await rotate(made.refresh.hash, successorOf(made), 30_000, other)).toEqual(repeated)
      expect(await events()).not.toContain('refresh.reused')
      expect(await rotate(made.refresh.hash, successorOf(made), 30_001, other)).toEqual({ outcome: 'reused' })
      for (const hash of [made.refresh.hash, next.refresh.hash]) {
        expect(await data.tokens.refresh(hash)).toBeUndefined()
        expect(await rotate(hash, successorOf(made), 30_002)).toEqual({ outcome: 'gone' })
      }
      expect(await data.tokens.access(next.access.hash)).toBeUndefined()
      expect(await data.sessions.find(made.session.hash)).toBeUndefined()
      expect((await data.audit.list({ limit: 1 }))[0]).toMatchObject({
        event: 'refresh.reused',
        target: 'alice',
        correlationId: 'rotate',
      })
    })
    test('T4 a sealed pair is erased after 10 s: by the next rotation or by the sweep', async () => {
      const made = await startMs()
      const [next, third] = [successorOf(made), successorOf(made)]
      await data.tokens.rotate(made.refresh.hash, next, 20_000, actor())
      await data.tokens.rotate(next.refresh.hash, third, 40_000, actor())
      expect((await data.tokens.refresh(made.refresh.hash))?.sealedSuccessor).toBeUndefined()
      await data.sweep(50_000)
      expect((await data.tokens.refresh(next.refresh.hash))?.sealedSuccessor).toBe(third.sealed)
      await data.sweep(50_001)
      expect((await data.tokens.refresh(next.refresh.hash))?.sealedSuccessor).toBeUndefined()
      expect(await data.tokens.rotate(next.refresh.hash, successorOf(made), 50_002, actor())).toEqual({
        outcome: 'reused',
      })
    })
    test('T4 50 concurrent refreshes, over two connections, are one rotation', async () => {
      const made = await startMs()
      const pairs = Array.from({ length: 50 }, () => successorOf(made))
      const ends = await Promise.all(
        pairs.map((pair, n) => (n % 2 ? data : other).tokens.rotate(made.refresh.hash, pair, 20_000 + n, actor())),
      )
      const winner = pairs[ends.findIndex(({ outcome }) => outcome === 'rotated')]
      expect(ends.filter(({ outcome }) => outcome === 'rotated')).toHaveLength(1)
      const repeated = { outcome: 'repeated', sealedSuccessor: winner?.sealed }
      expect(ends.filter(({ outcome }) => outcome !== 'rotated')).toEqual(Array(49).fill(repeated))
      const rows = await raw(store, 'SELECT "hash" FROM "refreshTokens"')
      expect(rows.map(({ hash }) => hash).sort()).toEqual([made.refresh.hash, winner?.refresh.hash].sort())
    })
    test('A7 a sign-out during a refresh leaves nothing of the family', async () => {
      for (let round = 0; round < 15; round += 1) {
        const made = await startMs()
        const next = successorOf(made)
        await Promise.all([
          data.tokens.rotate(made.refresh.hash, next, 20_000, actor()),
          other.sessions.endFamily(made.session.familyId, actor()),
        ])
        expect(await data.tokens.refresh(next.refresh.hash)).toBeUndefined()
        expect(await data.tokens.access(next.access.hash)).toBeUndefined()
      }
    })
    test('a fixed token does not rotate, and none rotates into another family', async () => {
      const [fixed, rotating] = [await startMs('alice', 'fixed'), await startMs()]
      const gone = { outcome: 'gone' }
      expect(await data.tokens.rotate(fixed.refresh.hash, successorOf(fixed), 20_000, actor())).toEqual(gone)
      expect(await data.tokens.rotate(rotating.refresh.hash, successorOf(fixed), 20_000, actor())).toEqual(gone)
      expect(await data.tokens.rotate('unknown', successorOf(rotating), 20_000, actor())).toEqual(gone)
    })
  })

  test('keys are found by hash and listed with their user; a name has one live key, which is revoked once', async () => {
    const user = await data.users.add(newUser('robot'), actor())
    const key = { name: 'ci', hash: 'h1', userId: user.id, roles: ['Ops', 'ops'], expiresAt: 9_000 }
    const made = await data.keys.add(key, actor())
    expect(made).toEqual({ ...key, id: made.id, createdAt: 1_000, revokedAt: undefined })
    expect(await other.keys.find('h1')).toEqual(made)
    const taken = await faultOf(other.keys.add({ ...key, hash: 'h2' }, actor()))
    expect([taken.fault, taken.message]).toEqual(['Conflict', 'The name of the key is already in use'])
    clock = 2_000
    await other.keys.revoke('ci', actor())
    clock = 3_000
    await other.keys.revoke('ci', actor())
    expect((await data.keys.find('h1'))?.revokedAt).toBe(2_000)
    const second = { ...key, hash: 'h2', roles: undefined, expiresAt: undefined }
    const again = await data.keys.add(second, actor())
    expect(await data.keys.list()).toEqual([
      { ...made, revokedAt: 2_000, userName: 'robot' },
      { ...again, userName: 'robot' },
    ])
    expect((await faultOf(data.keys.revoke('nope', actor()))).fault).toBe('NotFound')
    const nobodys = data.keys.add({ ...second, name: 'x', hash: 'h3', userId: randomUUID() }, actor())
    expect((await faultOf(nobodys)).fault).toBe('NotFound')
    expect(await events()).toEqual(['key.added', 'key.revoked', 'key.added', 'user.added'])
  })

  describe('failed sign-ins', () => {
    test('P5 they are counted, reset when the last is older than the window, and cleared', async () => {
      expect(await failuresOf(data, 'k')).toBeUndefined()
      expect(await failed(data, 'k', 10_000, 5_000)).toBe(1)
      expect(await failed(other, 'k', 15_000, 5_000)).toBe(2)
      expect(await failuresOf(data, 'k')).toEqual({ count: 2, lastAt: 15_000 })
      expect(await failed(data, 'k', 20_001, 5_000)).toBe(1)
      await data.settle({ id: '', userName: '', email: undefined }, { ...changesNothing, clears: 'k' })
      expect(await failuresOf(other, 'k')).toBeUndefined()
    })
    test('P5 100 concurrent ones over two connections count to 100, each number once', async () => {
      const counts = await Promise.all(
        Array.from({ length: 100 }, (_, n) => failed(n % 2 ? data : other, 'k', 10_000, 5_000)),
      )
      expect(counts.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, n) => n + 1))
    })
  })

  test('P5 unlocking removes the counters and the bucket of these names, records the prefix, and is audited', async () => {
    const bucket = { capacity: 1, everyMs: 1_000_000 }
    const alice = await data.users.add(newUser('alice'), actor())
    for (const key of ['pair a x', 'known a y', 'pair b x', 'pair a']) await failed(data, key, 10_000, 5_000)
    for (const of of ['a', 'b']) await data.guesses.take(of, 10_000, bucket)
    const limits = { counters: ['pair a ', 'known a '], guesses: ['a'], prefix: '192.0.2.1' }
    await data.users.unlock(alice.id, limits, actor('c', { reason: 'on call' }))
    expect((await raw(store, 'SELECT "key" FROM "failures" ORDER BY "key"')).map(({ key }) => key)).toEqual([
      'pair a',
      'pair b x',
    ])
    expect(await data.guesses.take('a', 10_000, bucket)).toBeDefined()
    expect(await data.guesses.take('b', 10_000, bucket)).toBeUndefined()
    expect(await data.knownPrefixes.lastAt('alice', '192.0.2.1')).toBe(clock)
    expect((await data.audit.list({ limit: 1 }))[0]).toMatchObject({
      event: 'user.unlocked',
      target: 'alice',
      after: '{"address":"192.0.2.1"}',
      reason: 'on call',
    })
    const nobody = data.users.unlock(randomUUID(), { ...limits, prefix: undefined }, actor())
    expect((await faultOf(nobody)).fault).toBe('NotFound')
  })

  describe('guesses', () => {
    const bucket = { capacity: 3, everyMs: 1_000 }
    test('P5 a bucket is full at first, empties, and gains a token at a time', async () => {
      expect(await data.guesses.level('n', 10_000, bucket)).toMatchObject({ left: 3 })
      expect(await data.guesses.take('n', 10_000, bucket)).toMatchObject({ left: 2 })
      expect(await other.guesses.take('n', 10_000, bucket)).toMatchObject({ left: 1 })
      expect(await data.guesses.take('n', 10_000, bucket)).toMatchObject({ left: 0 })
      expect(await other.guesses.take('n', 10_999, bucket)).toBeUndefined()
      expect(await other.guesses.level('n', 10_999, bucket)).toEqual({ left: 0, freeAt: 11_000 })
      expect(await data.guesses.take('n', 11_000, bucket)).toMatchObject({ left: 0 })
      expect(await data.guesses.level('n', 13_000, bucket)).toMatchObject({ left: 2 })
      expect(await data.guesses.level('n', 90_000, bucket)).toMatchObject({ left: 3 })
      expect(await data.guesses.take('n', 90_000, bucket)).toMatchObject({ left: 2 })
      expect(await data.guesses.take('other', 90_000, bucket)).toMatchObject({ left: 2 })
    })
    test('P5 a token that is given back can be taken again', async () => {
      for (let n = 0; n < 3; n += 1) await data.guesses.take('n', 10_000, bucket)
      await other.guesses.giveBack('n', bucket)
      expect(await data.guesses.take('n', 10_000, bucket)).toMatchObject({ left: 0 })
      expect(await data.guesses.take('n', 10_000, bucket)).toBeUndefined()
      await data.guesses.giveBack('unknown', bucket)
      expect(await data.guesses.level('unknown', 10_000, bucket)).toMatchObject({ left: 3 })
    })
    test('P5 of 100 concurrent takes over two connections as many succeed as there are tokens', async () => {
      const levels = await Promise.all(
        Array.from({ length: 100 }, (_, n) =>
          (n % 2 ? data : other).guesses.take('n', 10_000, { capacity: 20, everyMs: 1_000 }),
        ),
      )
      const left = levels.flatMap((level) => (level ? [level.left] : []))
      expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n))
    })
    test('P5 the sweep removes full buckets, and those from a clock that was wrong', async () => {
      const day = 86_400_000
      for (const at of [1_000, 5_000, 400 * day]) await data.guesses.take(`at ${at}`, at, bucket)
      await data.sweep(2_000)
      expect(await raw(store, 'SELECT "name" FROM "guesses"')).toEqual([{ name: 'at 5000' }])
    })
  })

  describe('known prefixes', () => {
    const day = 86_400_000
    test('P5 a sign-in makes its prefix known for every name of the user, on every node, and as an HMAC only', async () => {
      const alice = await data.users.add(newUser('Alice', { email: 'a@example.com' }), actor())
      expect(await other.knownPrefixes.lastAt('alice', '192.0.2.1')).toBeUndefined()
      await remembered(data, alice, '192.0.2.1', 5_000)
      for (const typed of ['alice', 'ALICE', 'A@example.com']) {
        expect(await other.knownPrefixes.lastAt(typed, '192.0.2.1')).toBe(5_000)
      }
      expect(await data.knownPrefixes.lastAt('alice', '192.0.2.2')).toBeUndefined()
      expect(await data.knownPrefixes.lastAt('bob', '192.0.2.1')).toBeUndefined()
      await remembered(other, alice, '192.0.2.1', 6_000)
      expect(await data.knownPrefixes.lastAt('alice', '192.0.2.1')).toBe(6_000)
      const rows = await raw(store, 'SELECT "mac" FROM "knownPrefixes"')
      expect(rows).toHaveLength(2)
      for (const { mac } of rows) expect(mac).toMatch(/^[\da-f]{64}$/)
      const [made] = await raw(store, 'SELECT "key" FROM "storeKeys"')
      expect(made?.key).toMatch(/^[\da-f]{64}$/)
    })
    test('P5 two nodes that sign in their first users at once use one key', async () => {
      const alice = await data.users.add(newUser('alice'), actor())
      const places = Array.from({ length: 20 }, (_, n) => `192.0.2.${n}`)
      await Promise.all(places.map((place, n) => remembered(n % 2 ? data : other, alice, place, 1_000 + n)))
      for (const place of places) expect(await data.knownPrefixes.lastAt('alice', place)).toBeDefined()
    })
    test('P5 a user has at most 100 of them, the newest; the sweep removes those of 90 days, and a removal all', async () => {
      const alice = await data.users.add(newUser('alice'), actor())
      for (let n = 1; n <= 110; n += 1) await remembered(data, alice, `p${n}`, n)
      expect(await raw(store, 'SELECT "mac" FROM "knownPrefixes"')).toHaveLength(100)
      expect(await data.knownPrefixes.lastAt('alice', 'p10')).toBeUndefined()
      expect(await data.knownPrefixes.lastAt('alice', 'p11')).toBe(11)
      await data.sweep(90 * day + 60)
      expect(await data.knownPrefixes.lastAt('alice', 'p59')).toBeUndefined()
      expect(await data.knownPrefixes.lastAt('alice', 'p60')).toBe(60)
      await data.users.remove(alice.id, actor())
      expect(await raw(store, 'SELECT "mac" FROM "knownPrefixes"')).toEqual([])
      await remembered(data, alice, 'p1', 1)
      expect(await raw(store, 'SELECT "mac" FROM "knownPrefixes"')).toEqual([])
    })
  })

  describe('audit', () => {
    test('S10 an entry records when, who, from which address, about whom, before, after and why', async () => {
      const { id } = await data.users.add(newUser('alice', roles('Ops')), actor('c1'))
      clock = 2_000
      const by = actor('c2', { who: 'root', userId: 'some-id', address: '192.0.2.1', reason: 'ticket 7' })
      await data.users.changeGrants(id, { add: { roles: ['A"b'], permissions: ['p'] }, remove: roles('Ops') }, by)
      await data.audit.write('signin.failed', undefined, actor('c3', { who: '-', address: '192.0.2.2' }))
      const [failed, changed, added] = await other.audit.list({ limit: 10 })
      expect(changed).toEqual({
        id: expect.any(Number),
        at: 2_000,
        event: 'roles.changed',
        who: 'root',
        address: '192.0.2.1',
        target: 'alice',
        correlationId: 'c2',
        before: '{"roles":["Ops"],"permissions":[]}',
        after: '{"roles":["A\\"b"],"permissions":["p"]}',
        reason: 'ticket 7',
      })
      expect(added).toMatchObject({ event: 'user.added', target: 'alice', before: undefined, reason: undefined })
      expect(failed).toMatchObject({ event: 'signin.failed', target: undefined, who: '-', address: '192.0.2.2' })
      const older = await data.audit.list({ limit: 1, before: changed?.id ?? 0 })
      expect(older).toEqual([added])
    })
    test('S14 the entries of a user are those with the name in any letter case, and few others leave the database', async () => {
      // Their keys are equal in pairs; the second of the last two is KELVIN SIGN.
      const names = ['Ann', 'aNN', 'Straße', 'STRASSE', 'ÉVA', 'e\u0301va', 'Kim', '\u212aim', 'bob', 'Bobby']
      for (const name of names) await data.audit.write('signin.failed', name, actor('c', { who: 'x' }))
      await data.audit.write('signin.ok', undefined, actor('c', { who: 'ANN' }))
      await raw(store, `UPDATE "audit" SET "event" = 'roles.changed' WHERE "event" = 'signin.failed'`)
      for (const [first = '', second = ''] of [
        names.slice(0, 2),
        names.slice(2, 4),
        names.slice(4, 6),
        names.slice(6, 8),
      ]) {
        for (const user of [first, second]) {
          const entries = await data.audit.list({ limit: 100, user })
          const targetsOf = entries.flatMap(({ target }) => target ?? [])
          expect([user, targetsOf.toSorted()]).toEqual([user, [first, second].toSorted()])
          const { entries: perhaps } = await data.audit.ofRoles(0, user)
          const targets = perhaps.map(({ target = '' }) => target)
          expect([user, targets]).toEqual([user, expect.arrayContaining(targetsOf)])
          expect(targets.filter((name) => /^bob/i.test(name))).toEqual([])
        }
      }
      const [newest, ...older] = await data.audit.list({ limit: 100, user: 'ann' })
      expect([newest?.event, older.length]).toEqual(['signin.ok', 2])
      expect(await data.audit.list({ limit: 100, user: 'ann', before: newest?.id ?? 0 })).toEqual(older)
      expect(await data.audit.list({ limit: 100, user: 'ann', events: ['signin.ok'] })).toEqual([newest])
    })
    test('S10 a change whose audit entry cannot be written is not made', async () => {
      const { user, session, refresh, access } = await startMs('alice')
      const used = await startMs('alice')
      await data.tokens.rotate(used.refresh.hash, successorOf(used), 20_000, actor())
      await data.keys.add({ name: 'ci', hash: 'h', userId: user.id, roles: undefined, expiresAt: undefined }, actor())
      const tables = ['users', 'names', 'grants', 'sessions', 'accessTokens', 'refreshTokens', 'apiKeys']
      const all = async () =>
        await Promise.all(tables.map((table) => raw(store, `SELECT * FROM "${table}" ORDER BY 1`)))
      const before = await all()
      await raw(store, 'ALTER TABLE "audit" RENAME TO "elsewhere"')
      for (const work of [
        () => data.users.add(newUser('bob', roles('Ops')), actor()),
        () => data.users.setPassword(user.id, 'new', actor()),
        () =>
          data.users.changePassword({ id: user.id, epoch: 0, passwordHash: 'new', signIn: signInOf(user) }, actor()),
        () => data.users.endSessions(user.id, undefined, actor()),
        () => data.users.endSessions(user.id, session.familyId, actor()),
        () => data.sessions.endOf(user.id, session.familyId, actor()),
        () => data.users.setDisabled(user.id, true, actor()),
        () => data.users.remove(user.id, actor()),
        () => data.users.changeGrants(user.id, { add: roles('Ops'), remove: nobody }, actor()),
        () => data.sessions.begin({ ...signInOf(user), endsSession: session.hash }, actor()),
        () => data.sessions.endFamily(session.familyId, actor()),
        () => data.tokens.rotate(used.refresh.hash, successorOf(used), 90_000, actor()),
        () => data.keys.add({ name: 'k', hash: 'k', userId: user.id, roles: undefined, expiresAt: undefined }, actor()),
        () => data.keys.revoke('ci', actor()),
      ]) {
        await expect(work()).rejects.toThrow(/audit/)
        expect(await all()).toEqual(before)
      }
      await raw(store, 'ALTER TABLE "elsewhere" RENAME TO "audit"')
      await data.tokens.rotate(
        refresh.hash,
        successorOf({ session, access, refresh, endsSession: undefined }),
        1,
        actor(),
      )
    })
  })

  describe('a user and the own sessions', () => {
    test('P9 of parallel changes of a password one succeeds, and begins its session', async () => {
      const { user } = await startMs('alice')
      const changes = Array.from({ length: 8 }, (_, at) => ({
        passwordHash: `hash ${at}`,
        signIn: signInOf({ id: user.id, epoch: user.epoch + 1 }),
      }))
      const outcomes = await Promise.allSettled(
        changes.map((change) => data.users.changePassword({ id: user.id, epoch: user.epoch, ...change }, actor())),
      )
      const winners = changes.filter((_, at) => outcomes[at]?.status === 'fulfilled')
      expect(winners).toHaveLength(1)
      expect((await data.users.byId(user.id))?.passwordHash).toBe(winners[0]?.passwordHash)
      const sessions = await data.sessions.list({ id: user.id, epoch: user.epoch + 1 }, 2_000)
      expect(sessions.map(({ familyId }) => familyId)).toEqual([winners[0]?.signIn.session.familyId])
    })

    test('P9 a disabled or removed user cannot change the password', async () => {
      const { user } = await startMs('alice')
      await data.users.setDisabled(user.id, true, actor())
      const change = { passwordHash: 'new', signIn: undefined }
      for (const epoch of [user.epoch, user.epoch + 1]) {
        const fault = await faultOf(data.users.changePassword({ id: user.id, epoch, ...change }, actor()))
        expect(fault.fault).toBe('Unauthorized')
      }
      await data.users.remove(user.id, actor())
      const fault = await faultOf(data.users.changePassword({ id: user.id, epoch: 1, ...change }, actor()))
      expect(fault.fault).toBe('Unauthorized')
    })

    test('T8 a family whose session has expired is still listed while its refresh token lives', async () => {
      const { user, session, refresh } = await startMs('alice')
      const listed = { familyId: refresh.familyId, createdAt: 1_000, provider: 'credentials', kind: refresh.kind }
      expect(await data.sessions.list(user, 2_000)).toEqual([expect.objectContaining(listed)])
      await raw(store, `DELETE FROM "sessions" WHERE "hash" = '${session.hash}'`)
      expect(await data.sessions.list(user, 2_000)).toEqual([expect.objectContaining(listed)])
      expect(await data.sessions.list(user, refresh.lastUsedAt + refresh.idleMs)).toEqual([])
    })

    test('T8 a rotation of the family that stays works while the others end', async () => {
      const current = await startMs('alice')
      const { user } = current
      const gone = signInOf(user)
      await data.sessions.begin(gone, actor())
      expect(await data.users.endSessions(user.id, current.session.familyId, actor())).toBe(1)
      // Both were read before the others ended.
      const next = successorOf(current)
      expect((await data.tokens.rotate(current.refresh.hash, next, 3_000, actor())).outcome).toBe('rotated')
      expect((await data.tokens.rotate(gone.refresh.hash, successorOf(gone), 3_000, actor())).outcome).toBe('gone')
      const { epoch } = (await data.users.byId(user.id)) ?? { epoch: -1 }
      expect((await data.tokens.access(next.access.hash))?.epoch).toBe(epoch)
      expect((await data.tokens.refresh(next.refresh.hash))?.epoch).toBe(epoch)
      expect(epoch).toBe(user.epoch + 1)
    })

    test('T8 a session of another user does not end', async () => {
      const [alice, bob] = [await startMs('alice'), await startMs('bob')]
      expect(await data.sessions.endOf(alice.user.id, bob.session.familyId, actor())).toBe(false)
      expect(await data.sessions.find(bob.session.hash)).toBeDefined()
      expect(await data.sessions.endOf(bob.user.id, bob.session.familyId, actor())).toBe(true)
      expect(await data.sessions.find(bob.session.hash)).toBeUndefined()
    })
  })

  test('the sweep removes what has expired, and keeps the rest and what reveals a theft', async () => {
    const { user } = await startMs('first')
    const made = await startMs('second')
    await data.tokens.rotate(made.refresh.hash, successorOf(made), 2_000, actor())
    const short = signInOf(user)
    const long = { idleMs: 5_000_000, lastUsedAt: 1_000 }
    const lasting = {
      ...short,
      session: { ...short.session, ...long },
      refresh: { ...short.refresh, ...long },
      access: { ...short.access, expiresAt: 2_000_000 },
    }
    await data.sessions.begin(lasting, actor())
    await failed(data, 'old', 1_000, 1)
    await failed(data, 'young', 80_000_000, 1)
    await data.sweep(1_001_000)
    const hashes = async (table: string) => (await raw(store, `SELECT "hash" FROM "${table}"`)).map(({ hash }) => hash)
    expect(await hashes('sessions')).toEqual([lasting.session.hash])
    expect(await hashes('accessTokens')).toEqual([lasting.access.hash])
    expect((await hashes('refreshTokens')).sort()).toEqual([lasting.refresh.hash, made.refresh.hash].sort())
    await data.sweep(90_000_000)
    expect(await hashes('sessions')).toEqual([])
    expect(await hashes('refreshTokens')).toEqual([])
    expect(await failuresOf(data, 'old')).toBeUndefined()
    expect((await failuresOf(data, 'young'))?.count).toBe(1)
  })
  test('S10 the sweep keeps sealed refusals of sign-ins for 90 days, and changes and the newest entry for ever', async () => {
    const day = 86_400_000
    await data.users.add(newUser('ann'), actor())
    await data.audit.write('signin.failed', undefined, actor())
    await data.audit.seal()
    clock += 40 * day
    await data.audit.write('signin.locked', undefined, actor())
    await data.audit.seal()
    const events = async () => (await data.audit.list({ limit: 10 })).map(({ event }) => event)
    await data.sweep(1_000 + 90 * day)
    expect(await events()).toEqual(['signin.locked', 'signin.failed', 'user.added'])
    await data.sweep(1_001 + 90 * day)
    expect(await events()).toEqual(['signin.locked', 'user.added'])
    await data.sweep(1_000_000 * day)
    expect(await events()).toEqual(['signin.locked', 'user.added'])
    await data.users.add(newUser('ben'), actor())
    await data.sweep(1_000_000 * day)
    expect(await events()).toEqual(['user.added', 'user.added'])
  })
  test('text keeps each character; NUL and lone surrogates become U+FFFD on both databases', async () => {
    const strange = 'a\u0000b\ud800c 😀 "\'\\ \u202e'
    const keptText = 'a\ufffdb\ufffdc 😀 "\'\\ \u202e'
    const { id } = await data.users.add(newUser('alice', { displayName: strange, roles: [strange] }), actor())
    await data.audit.write('signin.failed', strange, actor(strange))
    expect(await other.users.byId(id)).toMatchObject({ displayName: keptText, roles: [keptText] })
    expect((await other.audit.list({ limit: 1 }))[0]).toMatchObject({ target: keptText, correlationId: keptText })
  })
  test('D1 writes survive closing; a closed store reports that and stays closed', async () => {
    const { user, session } = await startMs()
    await data.ping()
    await data.close()
    await data.close()
    for (const work of [() => data.ping(), () => data.users.list(), () => failed(data, 'k', 1, 1)]) {
      const fault = await faultOf(work())
      expect([fault.fault, fault.message]).toEqual(['Unavailable', 'The store is closed'])
    }
    const again = await openData({ store, create: false })
    onTestFinished(() => again.close())

    expect(await again.users.byId(user.id)).toEqual(user)
    expect(await again.sessions.find(session.hash)).toEqual(session)
  })
  test('D2 without create, a missing store is a Fault', async () => {
    const place = (await fresh()).replace(/svc\.db$/, 'missing.db')
    const fault = await faultOf(openData({ store: place, create: false }))
    expect([fault.fault, fault.message]).toEqual(['Local', expect.stringMatching(/[Nn]o store exists/)])
  })
})
