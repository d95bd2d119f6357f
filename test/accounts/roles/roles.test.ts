import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { RunDocument } from '../../../src/core/protocol/index.ts'
import {
  type Call,
  type Credential,
  type Runtime,
  type Service,
  serveDefaults,
} from '../../../src/core/protocol/service/service.ts'
import { openCore } from '../../../src/core/service/open.ts'
import { adminOver, type TestAdmin } from '../../support/store/admin.ts'
import { cheapHash } from '../../support/suite/cheap-hash.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'
import { bearer, by, faultOf, from, password } from '../auth/fixture.ts'

type Core = { readonly service: Service; readonly runtime: Runtime; readonly admin: TestAdmin; readonly store: string }

/** The Service as `svc serve` has it, with Ann the Admin and Ned without a role. */
async function openRoles({ shared = true }: { readonly shared?: boolean } = {}): Promise<Core> {
  const folder = temporaryFolder()
  const store = join(folder, 'store', 'svc.db')
  const { service, runtime } = await openCore({
    version: '0.0.0',
    config: { origin: undefined, types: {}, serve: { ...serveDefaults }, warnings: [] },
    store,
    shared,
    hashCost: cheapHash,
    details: 'signed-in',
  })
  onTestFinished(async () => {
    await runtime.close()
  })
  const admin = adminOver(service)
  await admin.users.add({ userName: 'Ann', password, roles: ['Admin'] }, by)
  await admin.users.add({ userName: 'Ned', email: 'ned@example.com', password }, by)
  return { service, runtime, admin, store }
}

const signIn = async ({ service }: Core, UserName: string): Promise<Credential & { kind: 'bearer' }> => {
  const { BearerToken = '' } = await service.authenticate({ UserName, Password: password }, from('192.0.2.1'))
  return { kind: 'bearer', token: BearerToken }
}
const over = (credential?: Credential, more: Partial<Call> = {}): Call => from('192.0.2.1', { credential, ...more })
const here: Call = { ...over(), caller: { kind: 'local', account: 'alice' } }

const both = ['assignRoles', 'unAssignRoles'] as const

describe.each(both)('%s', (operation) => {
  test.each([
    ['Roles', { Roles: ['Editor', ' '] }],
    ['Permissions', { Permissions: [''] }],
    ['Roles', { Roles: ['x'.repeat(129)] }],
  ])('O3 an empty or over-long name is a 400 naming %s: %j', async (field, lists) => {
    const { service } = await openRoles()
    const fault = await faultOf(service[operation]({ UserName: 'Ned', ...lists }, here))
    expect([fault.status, fault.details.fields?.map(({ FieldName }) => FieldName)]).toEqual([400, [field]])
  })

  test('O3 empty lists show the current roles and change nothing, the audit included', async () => {
    const { service, admin } = await openRoles()
    await service.assignRoles({ UserName: 'Ned', Roles: ['B', 'A'], Permissions: ['P'] }, here)
    const before = await admin.audit.list({ limit: 100 })
    const answer = await service[operation]({ UserName: 'ned@EXAMPLE.com', Roles: [] }, here)
    expect(answer).toEqual({ AllRoles: ['B', 'A'], AllPermissions: ['P'] })
    expect(await admin.audit.list({ limit: 100 })).toEqual(before)
  })
})

describe('roles', () => {
  test('O3 assigning a role that the user has, or unassigning one that it lacks, is not an error', async () => {
    const { service } = await openRoles()
    const request = { UserName: 'Ned', Roles: ['Editor'] }
    const lists = { AllRoles: ['Editor'], AllPermissions: [] }
    expect(await service.assignRoles(request, here)).toEqual(lists)
    expect(await service.assignRoles(request, here)).toEqual(lists)
    expect(await service.unAssignRoles({ UserName: 'Ned', Roles: ['editor'] }, here)).toEqual(lists)
  })

  test('O4 an exact name takes precedence over an e-mail address', async () => {
    const { service, admin } = await openRoles()
    await service.assignRoles({ UserName: 'NED@example.com', Roles: ['Mail'] }, here)
    expect((await admin.roles.show('Ned')).roles).toEqual(['Mail'])
    expect((await admin.roles.holders('Mail')).map(({ userName }) => userName)).toEqual(['Ned'])
  })

  test('O6 when two Admins remove each other concurrently, one remains', async () => {
    const core = await openRoles()
    const { service, admin } = core
    for (let round = 0; round < 5; round += 1) {
      await service.assignRoles({ UserName: 'Ned', Roles: ['Admin'] }, here)
      await service.assignRoles({ UserName: 'Ann', Roles: ['Admin'] }, here)
      const [ann, ned] = [await signIn(core, 'Ann'), await signIn(core, 'Ned')]
      const outcomes = await Promise.allSettled([
        service.unAssignRoles({ UserName: 'Ned', Roles: ['Admin'] }, over(ann)),
        service.unAssignRoles({ UserName: 'Ann', Roles: ['Admin'] }, over(ned)),
      ])
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      expect(await admin.roles.holders('Admin')).toHaveLength(1)
    }
  })

  test('O7 Meta is accepted and not echoed', async () => {
    const { service } = await openRoles()
    const answer = await service.assignRoles({ UserName: 'Ned', Roles: ['A'], Meta: { reason: 'why' } }, here)
    expect(Object.keys(answer)).toEqual(['AllRoles', 'AllPermissions'])
  })
})

describe('a request with svc.changes in its Meta', () => {
  const Meta = { 'svc.changes': '1' }
  const listsBefore = (roles: readonly string[], permissions: readonly string[]) => ({
    'svc.rolesBefore': JSON.stringify(roles),
    'svc.permissionsBefore': JSON.stringify(permissions),
  })

  test('O8 gets the lists before the change in the Meta of the answer, also when it changes nothing', async () => {
    const { service } = await openRoles()
    const change = { UserName: 'Ned', Roles: ['B'], Permissions: ['p'], Meta }
    expect((await service.assignRoles(change, here)).Meta).toEqual(listsBefore([], []))
    expect((await service.assignRoles(change, here)).Meta).toEqual(listsBefore(['B'], ['p']))
    expect((await service.assignRoles({ UserName: 'Ned', Meta }, here)).Meta).toEqual(listsBefore(['B'], ['p']))
    expect(await service.unAssignRoles({ UserName: 'Ned', Roles: ['B'], Meta }, here)).toEqual({
      AllRoles: [],
      AllPermissions: ['p'],
      Meta: listsBefore(['B'], ['p']),
    })
  })

  test.each([undefined, {}, { 'svc.changes': '2' }, { 'svc.changes': '' }])(
    'O8 no other Meta adds anything to the answer: %j',
    async (other) => {
      const { service } = await openRoles()
      const request = { UserName: 'Ned', Roles: ['B'], ...(other ? { Meta: other } : {}) }
      expect(await service.assignRoles(request, here)).toEqual({ AllRoles: ['B'], AllPermissions: [] })
    },
  )

  test('O8 an unassignment in another letter case is a 409 that changes nothing, the audit included', async () => {
    const { service, admin } = await openRoles()
    await service.assignRoles({ UserName: 'Ned', Roles: ['Ops', 'Other'], Permissions: ['p'] }, here)
    const audit = await admin.audit.list({ limit: 100 })
    const request = { UserName: 'Ned', Roles: ['Other', 'ops'], Permissions: ['P'], Meta }
    const fault = await faultOf(service.unAssignRoles(request, here))
    expect([fault.status, fault.errorCode, fault.details.fields]).toEqual([
      409,
      'OtherCase',
      [
        { ErrorCode: 'OtherCase', FieldName: 'Roles', Message: "The user does not have 'ops', but has 'Ops'" },
        { ErrorCode: 'OtherCase', FieldName: 'Permissions', Message: "The user does not have 'P', but has 'p'" },
      ],
    ])
    expect((await admin.roles.show('Ned')).roles).toEqual(['Ops', 'Other'])
    expect(await admin.audit.list({ limit: 100 })).toEqual(audit)
  })

  test('O8 reveals the lists to nobody who may not change them', async () => {
    const core = await openRoles()
    const ned = await signIn(core, 'Ned')
    for (const operation of both) {
      const request = { UserName: 'Ann', Roles: ['admin'], Meta }
      const fault = await faultOf(core.service[operation](request, over(ned)))
      expect([fault.status, fault.message, fault.details.fields]).toEqual([403, 'Invalid Role', undefined])
    }
  })
})

describe('the guard', () => {
  test('P8 in process the OS account is Admin, and the audit names it', async () => {
    const { service, admin } = await openRoles({ shared: false })
    await service.assignRoles({ UserName: 'Ned', Roles: ['Editor'] }, here)
    const [row] = await admin.audit.list({ limit: 1 })
    expect([row?.who, row?.address]).toEqual(['local:alice', undefined])
    expect(await service.authenticate({}, here)).toEqual({
      UserName: 'local:alice',
      DisplayName: 'alice',
      Roles: ['Admin'],
      Permissions: [],
    })
  })

  test('P8 over HTTP a loopback address alone does not sign a caller in', async () => {
    const { service } = await openRoles()
    const call = from('127.0.0.1')
    expect((await faultOf(service.assignRoles({ UserName: 'Ned', Roles: ['Admin'] }, call))).status).toBe(401)
    expect((await faultOf(service.authenticate({}, call))).status).toBe(401)
  })

  test('P8 each answer of the administration names its store', async () => {
    const { runtime, store } = await openRoles()
    expect(runtime.facts.store).toBe(store)
  })

  test('S11 beyond loopback a caller with a role sees the whole health answer, others only the status', async () => {
    const core = await openRoles()
    const request = { ExecutionMode: 'Basic', ServerType: 'App', IncludeServerStateInformation: true } as const
    const [ann, ned] = [await signIn(core, 'Ann'), await signIn(core, 'Ned')]
    const stranger = await core.service.healthCheck(request, over())
    const liar = await core.service.healthCheck(request, over(bearer('nonsense')))
    const signedIn = await core.service.healthCheck(request, over(ann))
    const withoutRole = await core.service.healthCheck(request, over(ned))
    const states = [stranger, liar, withoutRole].map(({ ServerState }) => ServerState)
    expect(states).toEqual([undefined, undefined, undefined])
    expect(signedIn.ServerState).toBeDefined()
  })

  test('S11 beyond loopback an anonymous caller sees no values of the run, one with a role all of them', async () => {
    const core = await openRoles()
    const request = { ExecutionMode: 'Basic', ServerType: 'Sql', IncludeServerStateInformation: true } as const
    const ann = await signIn(core, 'Ann')
    const runFor = async (call: Call): Promise<RunDocument | undefined> => {
      let run: RunDocument | undefined
      const note: Call['note'] = (facts) => {
        run = facts.run
      }
      await core.service.healthCheck(request, { ...call, note })
      return run
    }
    const stranger = await runFor(over())
    const signedIn = await runFor(over(ann))
    const figures = (run: RunDocument | undefined) =>
      (run?.monitors ?? []).flatMap(({ results }) => results.filter(({ measurement }) => measurement))
    expect(figures(signedIn)).not.toEqual([])
    expect(figures(stranger)).toEqual([])
    const members = new Set((stranger?.monitors ?? []).flatMap((monitor) => Object.keys(monitor)))
    expect([stranger?.view, [...members]]).toEqual(['brief', ['kind', 'scope', 'status', 'results']])
    expect(Object.keys(stranger ?? {})).not.toContain('node')
    expect(stranger?.serverState).toBeUndefined()
  })

  test('P6 without a store nobody can sign in, and health still answers', async () => {
    const { service, runtime } = await openCore({
      version: '0.0.0',
      config: { origin: undefined, types: {}, serve: { ...serveDefaults }, warnings: [] },
      store: undefined,
      shared: true,
      hashCost: cheapHash,
      details: 'signed-in',
    })
    onTestFinished(() => runtime.close())

    const request = { UserName: 'Ann', Password: password, Roles: ['Admin'] }
    for (const operation of ['authenticate', 'getAccessToken', ...both] as const) {
      expect((await faultOf(service[operation](request, over()))).fault).toBe('NotImplemented')
    }
    expect([runtime.ownStore, await runtime.anyAdmin()]).toEqual([undefined, false])
    await runtime.ready(new AbortController().signal)
    const question = { ExecutionMode: 'Basic', ServerType: 'App' } as const
    expect((await service.healthCheck(question, over())).MonitorSummaries).not.toEqual([])
  })

  test('P6 a command reports what a missing store contains and does not create it', async () => {
    const folder = temporaryFolder()
    const store = join(folder, 'store', 'svc.db')
    const { service, runtime } = await openCore({
      version: '0.0.0',
      config: { origin: undefined, types: {}, serve: { ...serveDefaults }, warnings: [] },
      store,
      shared: false,
      hashCost: cheapHash,
      details: 'anyone',
    })
    try {
      const admin = adminOver(service)
      const fault = await faultOf(admin.users.list())
      expect([fault.fault, fault.message]).toEqual(['Local', expect.stringContaining('No store exists')])
      await admin.users.add({ userName: 'Ann', roles: ['Admin'] }, by)
      expect(await runtime.anyAdmin()).toBe(true)
    } finally {
      await runtime.close()
    }
    expect((await faultOf(Promise.resolve().then(() => runtime.anyAdmin()))).fault).toBe('Unavailable')
  })
})
