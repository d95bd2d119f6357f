import { beforeAll, describe, expect, test } from 'vitest'
import { parseLifetime } from '../../src/cli/lifetime.ts'
import { auditChange, renderAudit } from '../../src/cli/render/audit.ts'
import { renderKeys } from '../../src/cli/render/keys.ts'
import { jsvNames, names } from '../../src/cli/render/listing.ts'
import { renderChange } from '../../src/cli/render/roles.ts'
import { renderUsers } from '../../src/cli/render/users.ts'
import { width } from '../../src/cli/render/width.ts'
import { chooseColour } from '../../src/cli/terminal.ts'
import type { AuditFacts, KeyFacts, UserFacts } from '../../src/core/service.ts'

beforeAll(() => chooseColour(['--color', 'never']))

const at = new Date('2026-05-01T10:20:30Z')
const user = (over: Partial<UserFacts> = {}): UserFacts => ({
  id: '0b9d6f5e-0000-4000-8000-000000000000',
  userName: 'alice',
  email: 'alice@example.com',
  displayName: 'Alice A.',
  disabled: false,
  hasPassword: true,
  createdAt: at,
  roles: ['Admin', 'Night shift'],
  permissions: ['orders:read'],
  ...over,
})
const key: KeyFacts = {
  name: 'ci',
  userName: 'deploy',
  roles: undefined,
  createdAt: at,
  expiresAt: new Date('2026-06-01T00:00:00Z'),
  revokedAt: undefined,
}
const entry: AuditFacts = {
  id: 7,
  at,
  event: 'roles',
  who: 'local:root',
  address: '127.0.0.1',
  target: 'alice',
  correlationId: 'c-1',
  before: 'Ops',
  after: 'Ops, Admin',
  reason: 'on call',
}
const hostile = '\u001b[2J\u202eeve\r\nx\tof\u0007'
const pipe = { isTTY: false }
const hidden = /[\u001b\u202e\u0007\r]/

describe('answers about users, keys and the audit', () => {
  test('fit any terminal from 40 columns up', () => {
    const users = [user(), user({ userName: 'a-very-long-user-name-indeed', roles: Array(9).fill('Role') })]
    for (const columns of [40, 60, 80, 120]) {
      const screen = { isTTY: true, columns }
      const shown = [
        renderUsers(users, '/s.db', screen),
        renderKeys([key], '/s.db', at, screen),
        renderAudit([entry], '/s.db', screen),
      ].join('\n')
      const widest = Math.max(...shown.split('\n').map(width))
      expect(widest, `${columns} columns`).toBeLessThanOrEqual(columns)
    }
  })

  test('are one record a line in a pipe, without a title, and nothing when there is nothing', () => {
    expect(renderUsers([user(), user({ userName: 'bob' })], '/s.db', pipe).split('\n')).toHaveLength(2)
    expect(renderUsers([user()], '/s.db', pipe).split('\t')).toEqual([
      '/s.db',
      'alice',
      'active',
      '[Admin,Night shift]',
      '["orders:read"]',
      'alice@example.com',
      'Alice A.',
      '2026-05-01T10:20:30.000Z',
    ])
    expect([renderUsers([], '/s.db', pipe), renderKeys([], '/s.db', at, pipe), renderAudit([], '/s.db', pipe)]).toEqual(
      ['', '', ''],
    )
  })

  test('K6 names of somebody else cannot steer the terminal or break a record', () => {
    const users = [user({ userName: hostile, displayName: hostile, email: hostile, roles: [hostile] })]
    const entries = [{ ...entry, who: hostile, target: hostile, before: hostile, after: hostile, reason: hostile }]
    for (const screen of [pipe, { isTTY: true, columns: 80 }]) {
      const shown = [
        renderUsers(users, '/s.db', screen),
        renderKeys([{ ...key, name: hostile, userName: hostile, roles: [hostile] }], '/s.db', at, screen),
        renderAudit(entries, '/s.db', screen),
      ]
      for (const text of shown) expect(text).not.toMatch(hidden)
    }
    expect(renderUsers(users, '/s.db', pipe).split('\n')).toHaveLength(1)
    expect(renderUsers(users, '/s.db', pipe).split('\t')).toHaveLength(8)
  })

  test('a key past its end is expired, and a revoked one is revoked', () => {
    const state = (given: KeyFacts, now: Date): string => renderKeys([given], '/s.db', now, pipe).split('\t')[3] ?? ''
    expect(state(key, at)).toBe('active')
    expect(state(key, new Date('2026-06-01T00:00:00Z'))).toBe('expired')
    expect(state({ ...key, revokedAt: at }, new Date('2027-01-01T00:00:00Z'))).toBe('revoked')
  })

  test('a change of roles names its place, what changed and the lists after it', () => {
    const changed = {
      action: 'assign' as const,
      userName: 'bob',
      changed: { roles: ['Ops'], permissions: [] },
      unchanged: { roles: ['Old'], permissions: [] },
      all: { roles: ['Old', 'Ops'], permissions: [] },
      dryRun: false,
      notes: [],
    }
    const lines = renderChange(changed, 'https://svc.example.com', { isTTY: true, columns: 80 }).split('\n')
    expect(lines.map((line) => line.replace(/^\W+/, '').replace(/ {2,}/, ': '))).toEqual([
      'bob now holds "Ops"',
      'Held before: "Old"',
      'Roles: Old, Ops',
      'Permissions: none',
      'Where: https://svc.example.com',
    ])
  })
})

test('names that could be misread stand in quotes', () => {
  expect(names(['Admin', 'Night shift', 'a,b'])).toBe('Admin, "Night shift", "a,b"')
  expect(names([])).toBe('none')
  expect(jsvNames(['Admin', 'a,b', 'say "hi"', ''])).toBe('[Admin,"a,b","say ""hi""",""]')
})

test.each([
  ['90d', 90 * 86_400_000],
  ['12h', 12 * 3_600_000],
  ['52w', 52 * 604_800_000],
  ['3650d', 3_650 * 86_400_000],
])('a lifetime of %s', (given, ms) => expect(parseLifetime('expires', given)).toBe(ms))

test.each(['', '90', 'd', '0d', '-1d', '1.5d', '3651d', '999999w', 'soon', '1y'])('%j is no lifetime', (given) => {
  expect(() => parseLifetime('expires', given)).toThrow('--expires')
})

test.each([
  [{ before: '{"roles":["A"],"permissions":[]}', after: '{"roles":["B c"],"permissions":["p"]}' }, '+"B c" -A +p'],
  [{ before: '{"roles":["A"],"permissions":[]}', after: '{"roles":["A"],"permissions":[]}', reason: 'r' }, '(r)'],
  [{ after: '{"user":"deploy","roles":null}' }, 'user deploy'],
  [{ before: '{"roles":["A","B"],"permissions":[]}' }, 'was roles A, B'],
  [{ before: 'Ops', after: 'Admin' }, 'was Ops Admin'],
  [{ after: '{"x' }, '{"x'],
  [{}, ''],
])('an entry of the audit, %j, changed %j', (entry, said) => {
  expect(auditChange({ before: undefined, after: undefined, reason: undefined, ...entry })).toBe(said)
})
