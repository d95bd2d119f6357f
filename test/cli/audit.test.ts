import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { csvLine } from '../../src/cli/accounts/audit-output.ts'
import { readInstant } from '../../src/cli/command/instant.ts'
import { homeWithAdmin } from '../support/program/admin-home.ts'
import type { Home } from '../support/program/svc.ts'

let home: Home
beforeEach(async () => {
  home = await homeWithAdmin()
})
afterEach(() => home.remove())

const run = (...args: string[]) => home.run(args)
async function json<T>(...args: string[]): Promise<T> {
  const { stdout, stderr, code } = await home.run([...args, '--json'])
  expect([code, stderr]).toEqual([0, expect.anything()])
  return JSON.parse(stdout) as T
}
const sql = (text: string): void => {
  const database = new DatabaseSync(join(home.folder, 'store', 'svc.db'))
  database.exec(text)
  database.close()
}
/** A moment between two changes. */
async function moment(): Promise<string> {
  await wait(15)
  const now = new Date().toISOString()
  await wait(15)
  return now
}
type Entries = { readonly entries: readonly { readonly event: string; readonly target: string }[] }
const events = ({ entries }: Entries): readonly string[] => entries.map(({ event, target }) => `${event} ${target}`)

describe('svc audit list', () => {
  beforeEach(async () => {
    await run('users', 'add', 'bob', '--no-password')
    await run('roles', 'assign', 'bob', '--role', 'Ops', '--role', 'Deploy')
    await run('roles', 'unassign', 'bob', '--role', 'Deploy')
    await run('users', 'add', 'Eve', '--no-password', '--role', 'Ops')
  })
  test('S14 --user lists what a user did and what was done to the user, in any letter case', async () => {
    expect(events(await json('audit', 'list', '--user', 'eve'))).toEqual(['user.added Eve'])
    expect(events(await json('audit', 'list', '--user', 'BOB'))).toEqual([
      'roles.changed bob',
      'roles.changed bob',
      'user.added bob',
    ])
    expect(events(await json('audit', 'list', '--user', 'nobody'))).toEqual([])
  })
  test('S14 --role lists the entries that assigned or removed the role', async () => {
    expect(events(await json('audit', 'list', '--role', 'Deploy'))).toEqual(['roles.changed bob', 'roles.changed bob'])
    expect(events(await json('audit', 'list', '--role', 'Ops'))).toEqual(['user.added Eve', 'roles.changed bob'])
  })
  test('S14 --event, --since and --until limit the list, and a wrong value is refused with the way out', async () => {
    const before = await moment()
    await run('users', 'disable', 'bob')
    expect(events(await json('audit', 'list', '--since', before))).toEqual(['user.disabled bob'])
    expect(events(await json('audit', 'list', '--until', before, '--event', 'user.added'))).toEqual([
      'user.added Eve',
      'user.added bob',
      'user.added ann',
    ])
    const refusal = await run('audit', 'list', '--event', 'role.changed')
    expect([refusal.code, refusal.stderr]).toEqual([2, expect.stringContaining('roles.changed')])
    const zone = await run('audit', 'list', '--since', '2026-11-28T18:00')
    expect([zone.code, zone.stderr]).toEqual([2, expect.stringContaining('2026-11-28T18:00Z')])
  })
  test('S14 an entry keeps the former name of its event, and either name finds the entries of both', async () => {
    for (const [at, event] of ['quiet.added', 'silence.added', 'quiet.ended'].entries()) {
      sql(`INSERT INTO audit (at, event, who, target, correlationId) VALUES (${at}, '${event}', 'ann', '${at}', 'c')`)
    }
    for (const name of ['quiet.added', 'silence.added']) {
      const list = await json<Entries>('audit', 'list', '--event', name)
      expect([name, events(list)]).toEqual([name, ['silence.added 1', 'quiet.added 0']])
    }
    const all = await json<Entries>('audit', 'list', '--event', 'silence.ended', '--event', 'quiet.added')
    expect(events(all)).toEqual(['quiet.ended 2', 'silence.added 1', 'quiet.added 0'])
    expect(events(await json('audit', 'list', '--limit', '2'))).toEqual(['quiet.ended 2', 'silence.added 1'])
  })
  test('S14 --output writes all entries as CSV or JSON lines', async () => {
    const csv = await run('audit', 'list', '--output', 'csv')
    const [header, ...rows] = csv.stdout.split('\r\n')
    expect(header).toBe('Store,Id,At,Event,Who,Address,Target,Before,After,Reason,CorrelationId')
    expect(rows).toHaveLength(6)
    const lines = (await run('audit', 'list', '--output', 'jsonl', '--limit', '2')).stdout.trim().split('\n')
    expect(lines.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual(['user.added', 'roles.changed'])
  })
  test('S14 a name that a spreadsheet would take for a formula is text in CSV', () => {
    expect(csvLine(['=1+1', '@x', 'a,"b"', 'plain'])).toBe(`'=1+1,'@x,"a,""b""",plain\r\n`)
  })
})

describe('svc audit verify', () => {
  test('S13 exit code 0 for an intact audit, and a note that a cut end shows only against a head', async () => {
    const { code, stdout } = await home.run(['audit', 'verify'], { columns: 120 })
    expect(code).toBe(0)
    expect(stdout).toContain('The audit is intact: 1 entry in 1 seal')
    expect(stdout).toContain('entries that were cut from the end show only with --head')
    expect((await run('audit', 'verify')).stdout).toMatch(/\tintact\t1:[0-9a-f]{64}\n$/)
  })
  test('S13 exit code 3 for a broken audit, with the seal and what was done to it', async () => {
    await run('audit', 'head')
    await run('users', 'add', 'bob', '--no-password')
    await run('audit', 'head')
    sql(`UPDATE "audit" SET "who" = 'mallory' WHERE "id" = 2`)
    const { code, stdout } = await run('audit', 'verify')
    expect([code, stdout]).toEqual([3, expect.stringMatching(/\tbroken\t2\tedit\tentry 2 was changed\n$/)])
    const terminal = await home.run(['audit', 'verify'], { columns: 120 })
    expect(terminal.stdout).toContain('The audit is broken at seal 2: entry 2 was changed')
    const document = JSON.parse((await run('audit', 'verify', '--json')).stdout) as { verdicts: object[] }
    expect(document.verdicts).toMatchObject([{ intact: false, problems: [{ seal: 2, kind: 'edit' }] }])
  })
  test('S13 a cut end is found with the head that was kept, and intact without it', async () => {
    await run('users', 'add', 'bob', '--no-password')
    await run('audit', 'head')
    await run('users', 'add', 'eve', '--no-password')
    const head = (await run('audit', 'head')).stdout.trim()
    expect((await run('audit', 'verify', '--head', head)).code).toBe(0)
    sql('DELETE FROM "audit" WHERE "seal" = 2; DELETE FROM "auditSeals" WHERE "number" = 2')
    expect((await run('audit', 'verify')).code).toBe(0)
    const { code, stdout } = await run('audit', 'verify', '--head', head)
    expect([code, stdout]).toEqual([
      3,
      expect.stringContaining(`the chain ends at seal 1, and the head ${head} is missing`),
    ])
    const refusal = await run('audit', 'verify', '--head', '12')
    expect([refusal.code, refusal.stderr]).toEqual([2, expect.stringContaining('as svc audit head prints it')])
  })
  test('S13 an audit that was emptied is not intact', async () => {
    await run('audit', 'head')
    sql('DELETE FROM "audit"; DELETE FROM "auditSeals"')
    const { code, stdout } = await run('audit', 'verify')
    expect([code, stdout]).toEqual([3, expect.stringContaining('the audit has no entry, although the store has users')])
  })
  test('S13 an export is verified without a store, and every change of it shows', async () => {
    await run('audit', 'head')
    await run('users', 'add', 'bob', '--no-password')
    await run('users', 'add', 'eve', '--no-password')
    const file = join(home.folder, 'audit.jsonl')
    const head = (await run('audit', 'export', file)).stdout.trim()
    const verify = async (text: string, ...more: string[]) => {
      writeFileSync(file, text)
      const { code, stdout, stderr } = await run(
        'audit',
        'verify',
        '--export',
        file,
        '--store',
        '/nonexistent',
        ...more,
      )
      return [code, stdout.trim().split('\t').slice(1, 4).join(' '), stderr].filter((part) => part !== '').join(' ')
    }
    const text = readFileSync(file, 'utf8')
    const lines = text.split('\n')
    expect(await verify(text, '--head', head)).toBe(`0 intact ${head}`)
    expect(await verify(text.replace('"bob"', '"rob"'))).toBe('3 broken 2 edit')
    expect(await verify(lines.toSpliced(3, 1).join('\n'))).toBe('3 broken 2 deletion')
    expect(await verify(lines.toSpliced(4, 0, (lines[3] ?? '').replace('"id":2', '"id":9')).join('\n'))).toMatch(
      /^3 broken 2 insertion/,
    )
    const swapped = lines.map((line, n) =>
      n === 3
        ? (lines[4] ?? '').replace('"id":3', '"id":2')
        : n === 4
          ? (lines[3] ?? '').replace('"id":2', '"id":3')
          : line,
    )
    expect(await verify(swapped.join('\n'))).toBe('3 broken 2 swap')
    expect(await verify(lines.slice(0, 3).join('\n'))).toMatch(/^0 intact 1:/)
    expect(await verify(lines.slice(0, 3).join('\n'), '--head', head)).toBe('3 broken 1 cut')
    expect(await verify(`${lines[0] ?? ''}\n`)).toMatch(/^12 .*it has no seal/)
    expect(await verify('root:x:0:0\n')).toBe('3 broken 0 cut')
    const again = await run('audit', 'export', file)
    expect([again.code, again.stderr]).toEqual([12, expect.stringContaining('--overwrite')])
  })
})

describe('svc audit verify --export and --stream', () => {
  const file = () => join(home.folder, 'audit.jsonl')
  /** An export with three entries: the header, entry 1, seal 1, entries 2 and 3, seal 2. */
  async function exported(): Promise<readonly string[]> {
    await run('audit', 'head')
    await run('users', 'add', 'bob', '--no-password')
    await run('users', 'add', 'eve', '--no-password')
    await run('audit', 'export', file())
    return readFileSync(file(), 'utf8').split('\n')
  }
  const verify = async (as: '--export' | '--stream', lines: readonly string[] | Uint8Array) => {
    writeFileSync(file(), lines instanceof Uint8Array ? lines : lines.join('\n'))
    const { code, stdout, stderr } = await run('audit', 'verify', as, file())
    return `${code} ${stdout.split('\n')[0]?.split('\t').slice(1, 5).join(' ')}${stderr}`
  }

  test('S13 a line that svc would not have written byte for byte is broken in an export and in a stream', async () => {
    const lines = await exported()
    const [header = '', , , entry = '', , seal = ''] = lines
    const changes: Readonly<Record<string, readonly [at: number, line: string]>> = {
      'one member more': [3, entry.replace('{', '{"roles":"Admin",')],
      'one member more at the end': [3, entry.replace(/}$/, ',"note":"x"}')],
      'a member twice': [3, entry.replace('"target":', '"target":"mallory","target":')],
      'another order': [3, entry.replace(/^\{("id":2),("at":"[^"]+")/, '{$2,$1')],
      'other spacing': [3, entry.replace(':', ': ')],
      'a space at the end': [3, `${entry} `],
      'a carriage return': [3, `${entry}\r`],
      'an escape': [3, entry.replace('bob', '\\u0062ob')],
      'another notation of the time': [3, entry.replace(/\.(\d+)Z/, '.$1+00:00')],
      'one member more in a seal': [5, seal.replace('{', '{"by":"x",')],
      'another previous seal': [5, seal.replace(/"previous":"[^"]+"/, '"previous":"0"')],
    }
    for (const [what, [at, line]] of Object.entries(changes)) {
      const changed = lines.with(at, line)
      expect([what, await verify('--export', changed)]).toEqual([what, expect.stringMatching(/^3 broken 2 /)])
      expect([what, await verify('--stream', changed.slice(1))]).toEqual([what, expect.stringMatching(/^3 broken 2 /)])
    }
    for (const [what, line] of Object.entries({ more: header.replace('{', '{"a":1,'), spacing: `${header} ` })) {
      expect([what, await verify('--export', lines.with(0, line))]).toEqual([what, expect.stringMatching(/^3 broken/)])
    }
    expect(await verify('--export', lines.with(0, header.replace('"format":1', '"format":2')))).toMatch(/^12 .*newer/)
    expect(await verify('--export', lines.toSpliced(4, 0, ''))).toMatch(/^3 broken 2 insertion line 5 /)
    // JavaScript decodes these bytes as the replacement character, which is in the entry.
    const bytes = Buffer.from(lines.join('\n').replace('"bob"', '"b\u00e9"'))
    bytes[bytes.indexOf(Buffer.from('\u00e9')) + 1] = 0x41
    expect(await verify('--export', bytes)).toMatch(/^3 broken 2 edit/)
  })
  test('S13 a second line with an id is broken, before the real line and after it, in its seal and later', async () => {
    const lines = await exported()
    const forged = (lines[3] ?? '').replace('"bob"', '"mallory"')
    for (const at of [1, 3, 4, 5, 6]) {
      const expected = [at, expect.stringMatching(/^3 broken \d insertion line \d is a second line with the id 2/)]
      const changed = lines.toSpliced(at, 0, forged)
      expect([at, await verify('--export', changed)]).toEqual(expected)
      expect([at, await verify('--stream', changed.slice(1))]).toEqual(expected)
    }
    expect(await verify('--export', lines.toSpliced(4, 0, lines[3] ?? ''))).toMatch(/^3 broken 2 insertion/)
    expect(await verify('--export', lines.toSpliced(6, 0, lines[5] ?? ''))).toMatch(/^3 broken 2 seal/)
  })
  test('S13 a file without the header of an export is broken, and the message names --stream', async () => {
    const lines = await exported()
    expect(await verify('--export', lines.slice(1))).toMatch(/^3 broken 0 cut line 1 .*--stream/)
    expect(await verify('--export', [])).toMatch(/^3 broken 0 cut /)
    expect(await verify('--export', ['', ...lines])).toMatch(/^3 broken 0 cut /)
    expect(await verify('--stream', lines)).toMatch(/^12 .*--export/)
    const both = await run('audit', 'verify', '--export', file(), '--stream', file())
    expect(both.code).toBe(2)
  })
  test('S14 repetitions, torn lines and a later beginning of a stream are accepted and counted', async () => {
    const lines = (await exported()).slice(1, -1)
    const [first = '', sealOne = '', two = '', three = '', sealTwo = ''] = lines
    const stream = [first, sealOne, two, sealOne, two.slice(0, 40), two, three, sealTwo, three, sealTwo, '{"se']
    writeFileSync(file(), stream.join('\n'))
    const { code, stdout } = await run('audit', 'verify', '--stream', file(), '--json')
    const [verdict] = (JSON.parse(stdout) as { verdicts: readonly object[] }).verdicts
    expect([code, verdict]).toEqual([
      0,
      expect.objectContaining({ intact: true, entries: 3, seals: 2, repeated: 4, torn: 2, earlier: 0 }),
    ])
    const terminal = await home.run(['audit', 'verify', '--stream', file()], { columns: 120 })
    expect(terminal.stdout).toMatch(/Repeated +4 lines\n/)
    expect(terminal.stdout).toMatch(/Torn +2 lines\n/)
    writeFileSync(file(), [three, sealTwo].join('\n'))
    const later = await run('audit', 'verify', '--stream', file(), '--json')
    expect([later.code, later.stdout]).toEqual([0, expect.stringMatching(/"earlier": ?1\b/)])
    expect(await verify('--stream', ['root:x:0:0', ...lines])).toMatch(/^3 broken 1 insertion line 1 /)
    expect(await verify('--stream', ['root:x:0:0'])).toMatch(/^12 .*it has no seal/)
  })
})

describe('roles of the past', () => {
  type Holders = { readonly users: readonly { readonly userName: string }[]; readonly notCovered: string | null }
  const holders = async (role: string, at: string): Promise<readonly string[]> =>
    (await json<Holders>('roles', 'holders', role, '--at', at)).users.map(({ userName }) => userName)

  test('O9 svc roles holders --at says who held a role, also users who are removed since', async () => {
    await run('users', 'add', 'bob', '--no-password', '--role', 'Ops')
    const first = await moment()
    await run('roles', 'unassign', 'bob', '--role', 'Ops')
    const second = await moment()
    await run('users', 'remove', 'bob', '--yes')
    expect([await holders('Ops', first), await holders('Ops', second)]).toEqual([['bob'], []])
    expect(await holders('Admin', first)).toEqual(['ann'])
    const terminal = await home.run(['roles', 'holders', 'Ops', '--at', first], { columns: 100 })
    expect(terminal.stdout).toContain('1 user had "Ops" on')
    expect(terminal.stderr).toMatch(/The audit answers for times from \S+ on/)
    const refusal = await run('roles', 'holders', 'ops', '--at', first)
    expect([refusal.code, refusal.stderr]).toEqual([9, expect.stringContaining(`svc roles holders Ops --at ${first}`)])
  })
  test('O9 a time before the store, and one in the future, are refused with the times that can be answered', async () => {
    const early = await run('roles', 'holders', 'Admin', '--at', '2020-01-01')
    expect([early.code, early.stderr]).toEqual([12, expect.stringMatching(/It answers for times from \S+ on/)])
    const late = await run('roles', 'holders', 'Admin', '--at', '2999-01-01')
    expect([late.code, late.stderr]).toEqual([2, expect.stringContaining('is in the future')])
  })
  test('O9 an audit whose oldest entries were deleted answers from its beginning on', async () => {
    await run('users', 'add', 'bob', '--no-password', '--role', 'Ops')
    const before = await moment()
    await run('users', 'disable', 'bob')
    const after = await moment()
    sql(`DELETE FROM "audit" WHERE "event" = 'user.added'`)
    const refused = await run('roles', 'holders', 'Admin', '--at', before)
    expect([refused.code, refused.stderr]).toEqual([12, expect.stringContaining('it begins later, or lacks entries')])
    expect(await holders('Admin', after)).toEqual(['ann'])
  })
  test('O9 an audit that lacks entries in between answers from the next entry of that user on', async () => {
    await run('users', 'add', 'bob', '--no-password', '--role', 'Ops')
    const before = await moment()
    await run('roles', 'unassign', 'bob', '--role', 'Ops')
    const after = await moment()
    sql(`DELETE FROM "audit" WHERE "event" = 'user.added' AND "target" = 'bob'`)
    expect((await run('roles', 'holders', 'Ops', '--at', before)).code).toBe(12)
    expect(await holders('Ops', after)).toEqual([])
  })
  test('O9 the time between a backup and its restore is refused, because its changes are in another audit', async () => {
    const backup = join(home.folder, 'backup.db')
    await run('users', 'add', 'bob', '--no-password', '--role', 'Ops')
    const before = await moment()
    await run('users', 'add', 'eve', '--no-password')
    await run('backup', backup)
    await run('roles', 'unassign', 'bob', '--role', 'Ops')
    const between = await moment()
    expect((await run('restore', backup)).code).toBe(0)
    const after = await moment()
    expect([await holders('Ops', before), await holders('Ops', after)]).toEqual([['bob'], ['bob']])
    const refused = await run('roles', 'holders', 'Ops', '--at', between)
    expect([refused.code, refused.stderr]).toEqual([12, expect.stringContaining('restored from a backup')])
  })
  test('O9 roles from claims of an OpenID provider are named as not covered', async () => {
    await run('users', 'link', 'ann', '--provider', 'https://login.example.com', '--subject', '1')
    const { stderr } = await run('roles', 'holders', 'Admin', '--at', '0m')
    expect(stderr).toContain('Not covered: roles from claims of an OpenID provider, to which 1 user is linked')
    expect((await json<Holders>('roles', 'holders', 'Admin', '--at', '0m')).notCovered).toContain('1 user is linked')
  })
  test('O9 svc roles history has each change of a user with who, when and why, also of a removed user', async () => {
    await run('users', 'add', 'bob', '--no-password')
    await run('roles', 'assign', 'bob', '--role', 'Ops', '--reason', 'INC-1')
    await run('users', 'remove', 'bob', '--yes')
    const { changes } = await json<{ changes: { event: string; change: string; reason: string | null }[] }>(
      'roles',
      'history',
      'BOB',
    )
    expect(changes.map(({ event, change, reason }) => [event, change, reason])).toEqual([
      ['user.added', 'nothing', null],
      ['roles.changed', '+Ops', 'INC-1'],
      ['user.removed', 'was roles Ops', null],
    ])
    const unknown = await run('roles', 'history', 'anm')
    expect([unknown.code, unknown.stderr]).toEqual([9, expect.stringMatching(/the audit has no user "anm"[\s\S]*ann/)])
  })
})

describe('a moment in the past', () => {
  test.each([
    ['90m', '2026-11-27T22:30:00.000Z'],
    ['1d', '2026-11-27T00:00:00.000Z'],
    ['2026-11-01', '2026-11-01T00:00:00.000Z'],
    ['2026-11-01T18:00+01:00', '2026-11-01T17:00:00.000Z'],
    ['2026-11-01 18:00:30Z', '2026-11-01T18:00:30.000Z'],
    ['2026-02-31', undefined],
    ['2026-11-01T18:00', undefined],
    ['yesterday', undefined],
    ['5', undefined],
  ])('%s is %s', (text, expected) => {
    expect(readInstant(text, Date.parse('2026-11-28T00:00:00Z'))?.toISOString()).toBe(expected)
  })
})
