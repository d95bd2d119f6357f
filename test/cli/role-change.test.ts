import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Asking, changeRoles, type RoleChange, showRoles, takeAll } from '../../src/cli/roles/role-change.ts'
import { applyFile, fileExit } from '../../src/cli/roles/role-file-run.ts'
import { type CommandSession, localCall, openSession } from '../../src/cli/session/session.ts'
import { Fault } from '../../src/core/base/errors.ts'
import type { Service } from '../../src/core/protocol/service/service.ts'
import { capturedIo } from '../support/program/captured-io.ts'
import { adminOver } from '../support/store/admin.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const folder = temporaryFolder()
const by = { who: 'local:test', correlationId: 'c' }
let session: CommandSession
let asking: Asking

beforeAll(async () => {
  session = await openSession({ local: true }, capturedIo({ env: { SVC_HOME: folder } }).io)
  asking = { session, call: localCall(new AbortController().signal), dryRun: false, reason: 'why not' }
  await adminOver(session.service).users.add({ userName: 'root', roles: ['Admin'] }, by)
})
afterAll(() => session[Symbol.asyncDispose]())

let count = 0
async function user(roles: readonly string[], permissions: readonly string[] = []): Promise<string> {
  count += 1
  await adminOver(session.service).users.add({ userName: `user${count}`, roles, permissions }, by)
  return `user${count}`
}
const change = (userName: string, action: RoleChange['action'], roles: readonly string[]): RoleChange => ({
  userName,
  action,
  roles,
  permissions: [],
})
const failure = async (work: Promise<unknown>): Promise<Fault> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof Fault) return error
  throw new Error(`no fault, but ${String(error)}`)
}

describe('a change of roles, in process', () => {
  test('O2 reports the changes and the complete lists after them', async () => {
    const name = await user(['Old'], ['p'])
    const done = await changeRoles(asking, change(name, 'assign', ['New', 'Old', 'New']))
    expect(done.changed).toEqual({ roles: ['New'], permissions: [] })
    expect(done.unchanged).toEqual({ roles: ['Old'], permissions: [] })
    expect(done.all).toEqual({ roles: ['Old', 'New'], permissions: ['p'] })
    expect(await showRoles(asking, name)).toEqual(done.all)
  })

  test('S10 is recorded in the audit with the account and the reason', async () => {
    const name = await user([])
    await changeRoles(asking, change(name, 'assign', ['Ops']))
    const [entry] = (await adminOver(session.service).audit.list({ limit: 1 })) ?? []
    const { caller } = asking.call
    expect(entry).toMatchObject({ reason: 'why not', who: `local:${caller.kind === 'local' ? caller.account : ''}` })
  })

  test('O3 unassigning a role that the user lacks changes nothing', async () => {
    const name = await user(['Ops'])
    const done = await changeRoles(asking, change(name, 'unassign', ['Other']))
    expect(done.changed).toEqual({ roles: [], permissions: [] })
    expect(done.all.roles).toEqual(['Ops'])
  })

  test('O2 a role that the user has in another letter case is refused before any change', async () => {
    const name = await user(['Admin', 'Ops'])
    const fault = await failure(changeRoles(asking, change(name, 'unassign', ['Ops', 'admin'])))
    expect(fault.exitCode).toBe(9)
    expect(fault.message).toContain('but has "Admin"; nothing was changed')
    expect(fault.details.hints?.at(-1)).toBe(`svc roles unassign ${name} --role Admin`)
    expect((await showRoles(asking, name)).roles).toEqual(['Admin', 'Ops'])
  })

  test('a role that the user has in both letter cases is removed exactly', async () => {
    const name = await user(['Ops', 'ops'])
    expect((await changeRoles(asking, change(name, 'unassign', ['ops']))).all.roles).toEqual(['Ops'])
  })

  test('a dry run reports the same and changes nothing', async () => {
    const name = await user(['Ops'])
    const dry = await changeRoles({ ...asking, dryRun: true }, change(name, 'assign', ['New', 'Ops']))
    expect(dry.changed.roles).toEqual(['New'])
    expect(dry.unchanged.roles).toEqual(['Ops'])
    expect((await showRoles(asking, name)).roles).toEqual(['Ops'])
  })

  test('removes all roles and permissions at once', async () => {
    const name = await user(['Ops', 'x y'], ['p'])
    expect((await takeAll(asking, name)).changed).toEqual({ roles: ['Ops', 'x y'], permissions: ['p'] })
    expect(await showRoles(asking, name)).toEqual({ roles: [], permissions: [] })
  })

  test('O6 the last Admin keeps Admin', async () => {
    for (const { userName } of (await adminOver(session.service).roles.holders('Admin')) ?? []) {
      if (userName !== 'root') await takeAll(asking, userName)
    }
    expect((await failure(changeRoles(asking, change('root', 'unassign', ['Admin'])))).exitCode).toBe(9)
    expect((await showRoles(asking, 'root')).roles).toEqual(['Admin'])
  })

  test('an unknown user is reported with the nearest name', async () => {
    const fault = await failure(showRoles(asking, 'rot'))
    expect(fault.exitCode).toBe(9)
    expect(fault.message).toBe('there is no user "rot"')
    expect(fault.details.hints).toContain('Did you mean root?')
  })

  test('an unknown user without a similar name is reported with the command that adds the user', async () => {
    const fault = await failure(changeRoles(asking, change('Ümit Ö', 'assign', ['Ops'])))
    expect(fault.details.hints?.at(-1)).toBe("To add this user: svc users add 'Ümit Ö'")
  })

  test('a probable typing error causes a note', async () => {
    const name = await user(['Ops'])
    const { notes } = await changeRoles(asking, change(name, 'assign', ['ops', 'admin', 'a,b']))
    expect(notes.map((note) => note.split(' ')[0])).toEqual(['"ops"', '"admin"', '"a,b"'])
    expect((await changeRoles(asking, change(name, 'assign', ['Fine']))).notes).toEqual([])
  })
})

test('a server that reports success without the change is not trusted', async () => {
  const name = await user(['Ops'])
  const lazy: Service = {
    ...session.service,
    assignRoles: (request, call) => session.service.assignRoles({ ...request, Roles: [] }, call),
    unAssignRoles: (request, call) => session.service.unAssignRoles({ ...request, Roles: [] }, call),
  }
  const lazyQuestion = { ...asking, session: { ...session, service: lazy, label: 'https://lazy' } }
  expect((await failure(changeRoles(lazyQuestion, change(name, 'assign', ['New'])))).message).toContain(
    'its lists do not contain "New"',
  )
  const unassignFault = await failure(changeRoles(lazyQuestion, change(name, 'unassign', ['Ops'])))
  expect(unassignFault.message).toContain('its lists still contain "Ops"')
  expect(unassignFault.exitCode).toBe(8)
})

describe('the changes of a file', () => {
  const rows = (...changes: readonly RoleChange[]) => changes.map((each, at) => ({ ...each, row: at + 2 }))

  test('continue after a row that is rejected, and exit with 10', async () => {
    const name = await user(['Ops'])
    const outcomes = await applyFile(
      asking,
      rows(
        change(name, 'assign', ['A']),
        change('nobody', 'assign', ['A']),
        change(name, 'unassign', ['ops']),
        change(name, 'unassign', ['Ops']),
      ),
      () => {},
    )
    expect(outcomes.map(({ done, fault }) => fault?.exitCode ?? done?.changed.roles)).toEqual([['A'], 9, 9, ['Ops']])
    expect(fileExit(outcomes)).toBe(10)
    expect((await showRoles(asking, name)).roles).toEqual(['A'])
  })

  test('exit with the code of their failures when none succeeds, and with 0 when all do', async () => {
    const name = await user([])
    const all = rows(change('nobody', 'assign', ['A']), change('nobody', 'assign', ['B']))
    expect(fileExit(await applyFile(asking, all, () => {}))).toBe(9)
    expect(fileExit(await applyFile(asking, rows(change(name, 'assign', ['A'])), () => {}))).toBe(0)
  })

  test('stop where the server is the problem, and do not try the rest', async () => {
    const { service } = session
    let calls = 0
    const failing: Service = {
      ...service,
      assignRoles: (request, call) => {
        calls += 1
        return calls > 2 ? Promise.reject(new Fault('Unreachable')) : service.assignRoles(request, call)
      },
    }
    const name = await user([])
    const one = change(name, 'assign', ['A'])
    const failingQuestion = { ...asking, session: { ...session, service: failing } }
    const outcomes = await applyFile(failingQuestion, rows(one, one, one), () => {})
    expect(outcomes.map(({ done, fault }) => (done ? 'done' : (fault?.fault ?? 'not tried')))).toEqual([
      'done',
      'Unreachable',
      'not tried',
    ])
    expect(calls).toBe(3)
    expect(fileExit(outcomes)).toBe(10)
  })
})
