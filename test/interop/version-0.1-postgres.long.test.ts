import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Home, svcHome } from '../support/program/svc.ts'
import { buildVersion01, version01Missing } from '../support/program/version-0.1.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { suiteWith } from '../support/suite/peer.ts'

suiteWith(version01Missing ?? postgresMissing, 'a store of svc 0.1 in PostgreSQL', () => {
  let built: ReturnType<typeof buildVersion01>
  let postgres: PostgresServer
  let before: Home
  let now: Home
  beforeAll(async () => {
    built = buildVersion01()
    postgres = await startPostgres()
    before = svcHome(built.program)
    now = svcHome()
  })
  afterAll(async () => {
    await postgres?.remove()
    before?.remove()
    now?.remove()
    built?.remove()
  })

  test('is opened without loss, and 0.1 then reports that it belongs to a newer version', async () => {
    const store = ['--store', postgres.url('postgres')]
    const done = async (of: Home, args: readonly string[], stdin = ''): Promise<string> => {
      const { code, stdout, stderr } = await of.svc([...args, ...store], { stdin })
      expect([args.join(' '), code, code === 0 ? '' : stdout + stderr]).toEqual([args.join(' '), 0, ''])
      return stdout
    }
    await done(before, ['users', 'add', 'Ann', '--password-stdin', '--role', 'Admin'], 'violet-harbour-42')
    await done(before, ['users', 'add', 'robot', '--no-password', '--role', 'Deploy'])
    await done(before, ['roles', 'assign', 'robot', '--role', 'Ops', '--local'])
    await done(before, ['keys', 'create', 'boss', '--user', 'Ann'])
    await done(before, ['heartbeat', 'encoder', '--message', 'busy', '--local'])
    const listed = async (of: Home): Promise<readonly unknown[]> => {
      const lists = [
        ['users', 'list'],
        ['keys', 'list'],
        ['heartbeats', 'list'],
        ['audit', 'list'],
        ['roles', 'show', 'robot', '--local'],
      ]
      const texts = await Promise.all(lists.map((list) => done(of, [...list, '--json'])))
      return texts.map(
        (text) =>
          JSON.parse(text.replaceAll(/"ageSeconds":\d+,|,"digest":null|,"mustChangePassword":false/g, '')) as unknown,
      )
    }
    const then = await listed(before)
    expect(JSON.stringify(then)).toContain('encoder')
    expect(await listed(now)).toEqual(then)
    await done(now, ['roles', 'unassign', 'robot', '--role', 'Ops', '--local'])
    expect(await done(now, ['roles', 'show', 'robot', '--local'])).toContain('[Deploy]')
    const refused = await before.svc(['users', 'list', ...store])
    expect([refused.code, refused.stderr]).toEqual([
      12,
      expect.stringMatching(/was written by a newer svc \(schema \d+; known here: \d+\)/),
    ])
  })
})
