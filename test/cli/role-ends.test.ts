import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseSpan, parseUntil } from '../../src/cli/command/instant.ts'
import { changeRoles } from '../../src/cli/roles/role-change.ts'
import { expiresOf, grantText } from '../../src/cli/roles/role-end.ts'
import { type CommandSession, localCall, openSession } from '../../src/cli/session/session.ts'
import { Fault } from '../../src/core/base/errors.ts'
import type { AssignRolesResponse } from '../../src/core/protocol/index.ts'
import type { Service } from '../../src/core/protocol/service/service.ts'
import { capturedIo } from '../support/program/captured-io.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

const hour = 3_600_000

describe('the flags of an end', () => {
  const now = new Date(2026, 10, 28, 10, 0, 0)

  test.each([
    ['90m', 1.5 * hour],
    ['2h', 2 * hour],
    ['3d', 72 * hour],
    ['30s', 30_000],
  ])('O8 --for %s', (text, ms) => {
    expect(parseSpan('for', text)).toBe(ms)
    expect(expiresOf({ for: ms }, now)).toBe(`PT${ms / 1_000}S`)
  })

  test.each(['2', '0h', '-2h', '2x', '1.5h', '', '999999999w'])('O8 --for %j is refused', (text) => {
    expect(() => parseSpan('for', text)).toThrow(Fault)
  })

  test('O8 --until names a time of this machine, the next one without a date, or an instant with a zone', () => {
    const at = (text: string): Date => new Date(parseUntil('until', text, now.getTime()))
    expect(at('18:00')).toEqual(new Date(2026, 10, 28, 18))
    expect(at('10:00')).toEqual(new Date(2026, 10, 29, 10))
    expect(at('09:30:15')).toEqual(new Date(2026, 10, 29, 9, 30, 15))
    expect(at('2026-12-24 18:00')).toEqual(new Date(2026, 11, 24, 18))
    expect(at('2026-12-24T18:00Z')).toEqual(new Date('2026-12-24T18:00:00Z'))
    expect(at('2026-12-24 18:00+01:00')).toEqual(new Date('2026-12-24T17:00:00Z'))
  })

  test.each(['tomorrow', '25:00', '18', '2026-12-24', '2026-02-31 10:00', '2026-02-31T10:00Z ago', ''])(
    'O8 --until %j is refused',
    (text) => {
      expect(() => parseUntil('until', text, now.getTime())).toThrow(Fault)
    },
  )

  test('O8 a time that has passed is refused before anything is sent', () => {
    expect(() => expiresOf({ until: '2026-01-01T00:00Z' }, now)).toThrow('--until 2026-01-01T00:00Z has passed')
    expect(expiresOf({ permanent: true }, now)).toBe('never')
    expect(expiresOf({}, now)).toBeUndefined()
  })

  test('O8 a grant is described by its end, by whom and why', () => {
    const grant = { kind: 'role', name: 'Deploy', grantedBy: 'ann', reason: 'INC-1' } as const
    const grantedAt = Date.parse('2026-11-28T08:00:00Z')
    const at = new Date('2026-11-28T16:00:00Z')
    expect(grantText({ ...grant, grantedAt, endsAt: Date.parse('2026-11-28T18:00:00Z') }, at)).toBe(
      'until 2026-11-28 18:00 UTC (in 2 h), by ann on 2026-11-28: INC-1',
    )
    expect(grantText({ ...grant, grantedAt }, at)).toBe('by ann on 2026-11-28: INC-1')
    expect(grantText({ kind: 'role', name: 'Old' }, at)).toBe('')
  })
})

describe('role commands with ends', () => {
  const home = temporaryHome()
  let session: CommandSession
  beforeAll(async () => {
    await home.run(['users', 'add', 'root', '--no-password', '--role', 'Admin'])
    session = await openSession({ local: true }, capturedIo({ env: { SVC_HOME: home.folder } }).io)
  })
  afterAll(() => session[Symbol.asyncDispose]())
  const add = (name: string, ...more: readonly string[]) => home.run(['users', 'add', name, '--no-password', ...more])
  const screenOf = async (name: string) => (await home.run(['roles', 'show', name], { columns: 200 })).stdout
  const run = (line: string) => home.run(line.split(' '), { columns: 200 })

  test('O8 assign, show, extend and make permanent say until when, by whom and why', async () => {
    await add('bob')
    const assigned = await run('roles assign bob --role Deploy --until 2099-01-01T18:00Z --reason INC-1')
    expect([assigned.code, assigned.stdout]).toEqual([0, expect.stringContaining('bob now has "Deploy"')])
    expect(await screenOf('bob')).toMatch(/Deploy +until 2099-01-01 18:00 UTC \(in \d+ d\), by local:\S+ on \S+: INC-1/)
    const again = await run('roles assign bob --role Deploy')
    expect([again.stdout, again.stderr]).toEqual([
      expect.stringContaining('bob: unchanged'),
      'Note: "Deploy" still ends for bob at 2099-01-01 18:00 UTC; --permanent removes the end.\n',
    ])
    const extended = await run('roles extend bob --role Deploy --for 1h --reason INC-1')
    expect(extended.stdout).toContain('bob keeps for longer: "Deploy"')
    expect(await screenOf('bob')).toContain('until 2099-01-01 19:00 UTC')
    expect((await run('roles assign bob --role Deploy --permanent')).code).toBe(0)
    expect(await screenOf('bob')).not.toContain('until')
    expect(await run('roles extend bob --role Deploy --for 1h --reason x')).toMatchObject({
      code: 9,
      stderr: expect.stringContaining('permanently: there is no end to extend'),
    })
  })

  test('O8 a file gives each row its end, and a mistake is found before any change', async () => {
    await add('cat')
    await add('dan')
    const file = join(home.folder, 'changes.csv')
    writeFileSync(file, 'UserName,Roles,Expires\ncat,[Ops],PT2H\ndan,[Ops],2099-01-01T00:00:00Z\n')
    expect((await home.run(['roles', 'assign', '--from-file', file])).code).toBe(0)
    expect(await screenOf('cat')).toMatch(/Ops +until .*\(in (?:119 min|2 h)\)/)
    expect(await screenOf('dan')).toContain('until 2099-01-01 00:00 UTC')
    writeFileSync(file, 'UserName,Action,Roles,Expires\ncat,assign,[New],tomorrow\ndan,unassign,[Ops],PT2H\n')
    const refused = await home.run(['roles', 'assign', '--from-file', file])
    expect(refused.code).toBe(12)
    expect(refused.stderr).toMatch(/row 2, Expires/)
    expect(refused.stderr).toMatch(/row 3, Expires/)
    expect(await screenOf('cat')).not.toContain('New')
  })

  /** The Service of a server that knows no ends (simulated): it ignores Meta and answers with none. */
  const withoutEnds = (over: Partial<Service> = {}): Service => {
    const { service } = session
    const bare = async (answer: Promise<AssignRolesResponse>) => ({ ...(await answer), Meta: undefined })
    return {
      ...service,
      assignRoles: ({ Meta: _, ...request }, call) => bare(service.assignRoles(request, call)),
      unAssignRoles: ({ Meta: _, ...request }, call) => bare(service.unAssignRoles(request, call)),
      ...over,
    }
  }
  const failureOf = async (service: Service, userName: string, ...roles: readonly string[]): Promise<Fault> => {
    const asking = {
      session: { ...session, service, label: 'https://other' },
      call: localCall(new AbortController().signal),
      dryRun: false,
      reason: undefined,
    }
    const change = { action: 'assign', userName, roles, permissions: [], expires: 'PT2H' } as const
    const failure = await changeRoles(asking, change).catch((error: unknown) => error)
    if (failure instanceof Fault) return failure
    throw new Error('it was done')
  }

  test('O8 what a server grants without the end (simulated) is taken back at once, and what was held before stays', async () => {
    await add('eve', '--role', 'Ops')
    const fault = await failureOf(withoutEnds(), 'eve', 'Deploy', 'Ops')
    expect([fault.exitCode, fault.message]).toEqual([
      9,
      'https://other did not confirm the end, so svc took "Deploy" back from eve',
    ])
    expect((await run('roles show eve --json')).stdout).toContain('"AllRoles":["Ops"]')
  })

  test('O8 a grant that cannot be taken back (simulated) is named, with the command that removes it', async () => {
    await add('fay')
    const broken = withoutEnds({ unAssignRoles: () => Promise.reject(new Fault('Unreachable', 'no route')) })
    const fault = await failureOf(broken, 'fay', 'Deploy')
    expect([fault.exitCode, fault.message, fault.details.hints]).toEqual([
      9,
      'https://other did not confirm the end, and "Deploy" could not be taken back (no route)',
      ['fay has it permanently. To remove it: svc roles unassign fay --role Deploy'],
    ])
  })
})
