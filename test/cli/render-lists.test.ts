import { describe, expect, expectTypeOf, test } from 'vitest'
import * as accounts from '../../src/cli/accounts/lists.ts'
import { auditChange } from '../../src/cli/accounts/lists.ts'
import * as heartbeats from '../../src/cli/heartbeats/lists.ts'
import type { Screen } from '../../src/cli/io/io.ts'
import * as monitors from '../../src/cli/monitors/lists.ts'
import * as notify from '../../src/cli/notify/lists.ts'
import { list, type RecordList } from '../../src/cli/render/list.ts'
import { jsvNames, names } from '../../src/cli/render/table.ts'
import { width } from '../../src/cli/render/width.ts'
import * as roles from '../../src/cli/roles/lists.ts'
import { renderChange } from '../../src/cli/roles/lists.ts'
import * as setup from '../../src/cli/setup/lists.ts'
import { parseLifetime } from '../../src/commands/keys.ts'
import { Fault } from '../../src/core/base/errors.ts'
import type { KeyFacts, UserFacts } from '../../src/core/protocol/service/service.ts'

/** The lists of all folders. */
const lists = { ...accounts, ...heartbeats, ...monitors, ...notify, ...roles, ...setup }

const at = new Date('2026-05-01T10:20:30Z')
const pipe: Screen = { isTTY: false, columns: undefined, colour: false, unicode: true }
const terminal = (columns: number): Screen => ({ ...pipe, isTTY: true, columns })

/** Writes a text of a row; every call names another one. */
type Text = (name: string) => string

const user = (text: Text): UserFacts => ({
  id: text('id'),
  userName: text('userName'),
  email: text('email'),
  displayName: text('displayName'),
  disabled: true,
  hasPassword: true,
  mustChangePassword: true,
  digest: 'valid' as const,
  createdAt: at,
  roles: [text('role'), text('role2')],
  permissions: [text('permission')],
})
const key = (text: Text): accounts.ListedKey => ({
  name: text('name'),
  userName: text('userName'),
  roles: [text('role')],
  permissions: [text('permission')],
  createdAt: at,
  expiresAt: new Date('2026-06-01T00:00:00Z'),
  revokedAt: undefined,
  state: 'expired',
})
const roleChange = (text: Text) => ({
  action: 'assign' as const,
  userName: text('userName'),
  changed: { roles: [text('role')], permissions: [text('permission')] },
  unchanged: { roles: [], permissions: [] },
  all: { roles: [text('allRole')], permissions: [text('allPermission')] },
  dryRun: false,
  notes: [],
})
const fileChange = (text: Text) => ({
  row: 2,
  action: 'assign' as const,
  userName: text('userName'),
  roles: [text('role')],
  permissions: [text('permission')],
})
const setting = (text: Text) => ({
  name: text('name'),
  type: text('type'),
  default: text('default'),
  required: false,
  doc: text('doc'),
})

/** A declared list with a row of it, what stands around its rows, and what machines have been promised. */
type Sample = {
  readonly list: Pick<
    RecordList<never, string>,
    'fields' | 'columns' | 'record' | 'records' | 'table' | 'document' | 'render'
  >
  readonly row: (text: Text) => never
  readonly json: (text: Text) => object
  /** False for a list that is a part of another answer. */
  readonly hasDocument: boolean
  /** The fields of a record. */
  readonly fields: string
  /** The members of a row's JSON object. */
  readonly members: string
}
const sample = <Row, Place extends string, Extra extends string>(
  declared: RecordList<Row, Place, Extra>,
  row: (text: Text) => Row,
  fields: string,
  members: string,
): Sample => ({
  list: declared as unknown as Sample['list'],
  row: row as (text: Text) => never,
  json: (text) => declared.json(row(text)),
  hasDocument: declared.hasDocument,
  fields,
  members,
})

const userMembers =
  'id userName email displayName roles permissions disabled hasPassword mustChangePassword digest createdAt'
const changeMembers = 'UserName Action Outcome Changed Unchanged AllRoles AllPermissions'

const samples: Readonly<Record<string, Sample>> = {
  users: sample(lists.users, user, 'Store UserName State Roles Permissions Email DisplayName CreatedAt', userMembers),
  holders: sample(lists.holders, user, 'Store Role UserName Email State', userMembers),
  sessions: sample(
    lists.sessions,
    (text) =>
      lists.sessionRow({
        Id: text('id'),
        Current: true,
        CreatedAt: new Date(at),
        LastUsedAt: new Date(at),
        ExpiresAt: new Date(at),
        RememberMe: true,
        Provider: text('provider'),
      }),
    'Target UserName Id Current CreatedAt LastUsedAt ExpiresAt RememberMe Provider',
    'id current createdAt lastUsedAt expiresAt rememberMe provider',
  ),
  keys: sample(
    lists.keys,
    key,
    'Store Name UserName State Roles ExpiresAt CreatedAt Permissions',
    'name userName roles permissions state createdAt expiresAt revokedAt',
  ),
  heartbeats: sample(
    lists.heartbeats,
    (text) => ({
      name: text('name'),
      at,
      who: text('who'),
      status: 'Warn' as const,
      message: text('message'),
      version: text('version'),
      interval: 60_000,
      backlog: 7,
      diskFreePercent: 12.5,
      clockSkew: 3,
      startedAt: new Date(2),
      endedAt: new Date(3),
      duration: 4,
      exitCode: 5,
      output: text('output'),
      ageMs: 5_000,
    }),
    'Store Name Status At AgeSeconds Version Backlog By Message StartedAt DurationMs ExitCode',
    'name status message version at ageSeconds intervalSeconds backlog diskFreePercent clockSkewMs by startedAt durationMs exitCode output',
  ),
  receipts: sample(
    lists.receipts,
    (text) => ({ Name: text('name'), ReceivedAt: at, ClockSkew: 3 }),
    'Target Name ReceivedAt',
    'name receivedAt clockSkewMs',
  ),
  audit: sample(
    lists.audit,
    (text) => ({
      id: 7,
      at,
      event: text('event'),
      who: text('who'),
      address: text('address'),
      target: text('target'),
      before: text('before'),
      after: text('after'),
      reason: text('reason'),
      correlationId: text('correlationId'),
    }),
    'Store Id At Event Who Address Target Before After Reason CorrelationId',
    'id at event who address target before after reason correlationId',
  ),
  receivers: sample(
    lists.receivers,
    (text) => ({
      name: text('name'),
      kind: 'webhook',
      only: { types: [text('type')], monitors: [text('monitor')], tags: [text('tag')], severity: 'failed' as const },
      remind: 60_000,
      details: 'full' as const,
      silences: 'honor' as const,
      volatile: false,
      settings: { url: 'https://chat.example.com/' },
    }),
    'Target Name Kind To Only RemindMs Details Silences',
    'name kind to types monitors tags severity remindMs details silences',
  ),
  receiverTests: sample(
    lists.receiverTests,
    (text) => ({
      name: text('name'),
      kind: text('kind'),
      to: text('to'),
      result: 'refused' as const,
      durationMs: 7,
      message: text('message'),
      delivery: { what: 'accepted' as const },
    }),
    'Target Name Kind To Result DurationMs Message',
    'name kind to result durationMs message',
  ),
  secrets: sample(lists.secrets, (text) => ({ name: text('name'), for: text('for') }), 'Name For', 'name for'),
  roleChanges: sample(
    lists.roleChanges,
    roleChange,
    'Target UserName Outcome Roles Permissions AllRoles AllPermissions',
    changeMembers,
  ),
  holdings: sample(
    lists.holdings,
    (text) => ({ userName: text('userName'), roles: [text('role')], permissions: [text('permission')] }),
    'Target UserName AllRoles AllPermissions',
    'UserName AllRoles AllPermissions',
  ),
  fileRows: sample(
    lists.fileRows,
    (text): roles.RowOutcome => ({ change: fileChange(text), done: roleChange(text) }),
    'Target Row UserName Action Outcome Roles Permissions Error',
    `Row ${changeMembers}`,
  ),
  'fileRows, rejected': sample(
    lists.fileRows,
    (text): roles.RowOutcome => ({ change: fileChange(text), fault: new Fault('NotFound', text('message')) }),
    'Target Row UserName Action Outcome Roles Permissions Error',
    'Row UserName Action Outcome Error',
  ),
  findings: sample(
    lists.findings,
    (text) => ({
      check: text('check'),
      level: 'fail' as const,
      message: text('message'),
      details: [text('detail')],
      fault: text('fault'),
      address: text('address'),
    }),
    'Type Monitor Check Level Fault Message',
    'check level message details fault observed unit limit address',
  ),
  changedEntries: sample(
    lists.changedEntries,
    (text) => ({ change: 'added' as const, type: 'App' as const, monitor: text('monitor'), file: text('file') }),
    'Target Change Type Monitor File',
    'change type monitor file',
  ),
  planChecks: sample(
    lists.planChecks,
    (text) => ({ MonitorName: text('monitor'), Name: text('check'), Depth: 'Basic' as const, Doc: text('doc') }),
    'Type MonitorName Check Depth Doc',
    'MonitorName Name Depth Doc',
  ),
  kinds: sample(
    lists.kinds,
    (text) => ({ name: text('name'), title: text('title'), settings: [], checks: [] }),
    'Name Title',
    'name title settings checks',
  ),
  kindChecks: sample(
    lists.kindChecks,
    (text) => ({ name: text('name'), depth: 'Basic' as const, doc: text('doc') }),
    'Name Depth Doc',
    'name depth doc',
  ),
  settings: sample(lists.settings, setting, 'Name Type Default Doc', 'name type default required doc'),
  parameters: sample(lists.parameters, setting, 'Name Type Default Doc', 'name type default required doc'),
  monitorProfiles: sample(
    lists.monitorProfiles,
    (text) => ({
      name: text('name'),
      title: text('title'),
      doc: text('doc'),
      types: ['App' as const],
      parameters: [],
      monitors: [],
    }),
    'Name Types Title',
    'name title doc types parameters monitors',
  ),
  profileMonitors: sample(
    lists.profileMonitors,
    (text) => ({ name: text('name'), kind: text('kind'), depth: text('depth') }),
    'Name Kind Depth',
    'name kind depth',
  ),
  serverProfiles: sample(
    lists.serverProfiles,
    (text) => ({ name: text('name'), server: text('server'), user: text('user'), current: true }),
    'Current Name Server User',
    'name server user current',
  ),
  configuration: sample(
    lists.configuration,
    (text) => ({ key: text('key'), value: text('value'), origin: text('origin'), note: text('note') }),
    'Key Value Origin Note',
    'key value origin note',
  ),
  installation: sample(
    lists.installation,
    (text) => ({
      check: text('check'),
      status: 'failed' as const,
      message: text('message'),
      next: text('next'),
      exitCode: 12,
    }),
    'Check Status Message Next',
    'check status message next exitCode',
  ),
}
const cases = Object.entries(samples)

const around = (text: Text) => ({
  store: text('store'),
  role: text('role of all'),
  Target: text('target of all'),
  target: text('target of all'),
  userName: text('user of all'),
  Type: text('type of all'),
  type: text('type of all'),
  monitor: text('monitor of all'),
})

/** Texts that are unique wherever they appear: `t0t`, `t1t`, … by their names. */
function markers(): Text {
  const columns: string[] = []
  return (name) => {
    if (!columns.includes(name)) columns.push(name)
    return `t${columns.indexOf(name)}t`
  }
}
const markersIn = (text: string): readonly string[] => [...new Set(text.match(/t\d+t/g))]

describe('each declared list', () => {
  test('has a sample here', () => {
    const declared = Object.entries(lists).flatMap(([name, value]) =>
      typeof value === 'object' && 'columns' in value ? [name] : [],
    )
    expect(declared.length).toBeGreaterThan(15)
    expect(declared.filter((name) => !(name in samples))).toEqual([])
  })

  test.each(cases)('%s: records and JSON objects have the names and the order that scripts depend on', (_, one) => {
    expect(one.list.fields.join(' ')).toBe(one.fields)
    expect(Object.keys(one.json(markers())).join(' ')).toBe(one.members)
    expect(one.list.record(one.row(markers()), around(markers())).split('\t')).toHaveLength(one.list.fields.length)
  })

  /** Commands print these on a terminal as sentences and facts. */
  const withoutTable = ['receipts', 'roleChanges', 'holdings']

  test.each(cases)('%s: the table has the titles of its columns, in the order of the record', (name, one) => {
    const tableColumns = one.list.columns.filter(({ title }) => title !== undefined)
    const text = one.list.table([one.row(markers())], terminal(400))
    // Without a column, a terminal would show an empty line.
    expect(tableColumns.length === 0).toBe(withoutTable.includes(name))
    const header = tableColumns.length === 0 ? '' : (text.split('\n')[0] ?? '')
    expect(header.trim().split(/ {2,}/)).toEqual(
      [
        tableColumns
          .map(({ title }) => title)
          .filter(Boolean)
          .join('|'),
      ].flatMap((titles) => titles.split('|')),
    )
    const inRecord = tableColumns.flatMap(({ field }) => field ?? [])
    expect(one.list.fields.filter((field) => inRecord.includes(field))).toEqual(inRecord)
  })

  test.each(cases)('%s: table, record and JSON contain the same, in one order', (_, one) => {
    const text = markers()
    const row = one.row(text)
    const common = around(text)
    const fields = one.list.record(row, common).split('\t')
    const inRecord = markersIn(fields.join('\t'))
    const line = one.list.table([row], terminal(400)).split('\n').slice(1).join('\n')
    const inTable = markersIn(line)
    expect(inRecord.filter((marker) => inTable.includes(marker))).toEqual(
      inTable.filter((marker) => inRecord.includes(marker)),
    )
    const json = one.json(text) as Readonly<Record<string, unknown>>
    for (const { key, field, title, member } of one.list.columns) {
      const inField = field === undefined ? [] : markersIn(fields[one.list.fields.indexOf(field)] ?? '')
      // A list whose rows have a document of their own may spread a column over it.
      const document = member && key in json ? json[key] : json
      expect(markersIn(JSON.stringify(document)), key).toEqual(expect.arrayContaining([...inField]))
      if (title !== undefined) expect(inTable, key).toEqual(expect.arrayContaining([...inField]))
    }
    if (!one.hasDocument) return
    const document: unknown = JSON.parse(one.list.document([row], common))
    const places = one.list.fields.length - one.list.columns.filter(({ field }) => field !== undefined).length
    const expected = markersIn(fields.slice(0, places).join('\t'))
    expect(markersIn(JSON.stringify(document))).toEqual(expect.arrayContaining([...expected]))
  })

  /** Escapes, a change of direction, line ends, a tab, a bell and wide characters; `name` keeps texts apart. */
  const hostile: Text = (name) => `\u001b[2J\u202e${name}日本\r\nx\tof\u0007\u2028y`
  const hidden = /[\u001b\u202e\u0007\r\t\u2028]/

  test.each(cases)('K6 %s: hostile text stays in its field of the record and in its member of JSON', (_, one) => {
    const output = { json: false, screen: pipe, header: false }
    const record = one.list.records([one.row(hostile)], around(hostile), output)
    const fields = record.split('\t')
    expect(fields).toHaveLength(one.list.fields.length)
    for (const field of fields) expect(field).not.toMatch(hidden)
    expect(record).not.toContain('\n')
    expect(Object.keys(one.json(hostile)).join(' ')).toBe(one.members)
    if (!one.hasDocument) return
    const document = one.list.document([one.row(hostile)], around(hostile))
    expect(document).not.toContain('\n')
    expect(() => JSON.parse(document)).not.toThrow()
  })

  test.each(cases)('K6 %s: hostile text stays in its cell of the table, on any terminal', (_, one) => {
    const innocent = one.list.table([one.row(markers())], terminal(400)).split('\n')
    const rows = [one.row(markers()), one.row(hostile), one.row(markers())]
    const headline = { mark: 'ok', sentence: hostile('headline') } as const
    for (const columns of [40, 60, 80, 120, 400]) {
      const screen = terminal(columns)
      const text = one.list.render(rows, around(hostile), { json: false, screen, headline })
      expect(text.replaceAll('\n', '')).not.toMatch(hidden)
      expect(Math.max(...text.split('\n').map(width)), `${columns} columns`).toBeLessThanOrEqual(columns)
    }
    if (innocent.join('') === '') return
    // The rows beside it stand where they stand alone: under the same titles, on as many lines.
    const lines = one.list.table(rows, terminal(1_000)).split('\n')
    const cells = (line: string | undefined): readonly string[] => (line ?? '').trim().split(/ {2,}/)
    expect(cells(lines[0])).toEqual(cells(innocent[0]))
    expect(cells(lines[1])).toEqual(cells(innocent[1]))
    expect(lines).toHaveLength(1 + 3 * (innocent.length - 1))
  })

  test('prints the header to a pipe when there are no rows, an empty array in JSON, and a sentence on a terminal', () => {
    const render = (as: { json: boolean; screen: Screen; header?: boolean }) =>
      lists.users.render([], { store: '/s.db' }, as)
    expect(render({ json: false, screen: pipe })).toBe(lists.users.fields.join('\t'))
    expect(render({ json: false, screen: pipe, header: false })).toBe('')
    expect(render({ json: true, screen: pipe })).toBe('{"store":"/s.db","users":[]}')
    expect(render({ json: false, screen: terminal(80) })).toMatch(
      /There are no users yet\n {2}\/s\.db\n\n {2}To add the first: {3}svc users add/,
    )
  })
})

describe('a declaration', () => {
  type Row = { readonly name: string; readonly size: number; readonly at: Date | undefined }
  const rows: readonly Row[] = [
    { name: 'a', size: 5, at: undefined },
    { name: 'a', size: 1_200, at: undefined },
  ]

  test('accepts no key that the row lacks, unless it defines the value', () => {
    type Declared = Parameters<ReturnType<typeof list<Row>>>[0]['columns'][number]
    type WithoutValue = Extract<Declared, { readonly value?: undefined }>
    expectTypeOf<WithoutValue['key']>().toEqualTypeOf<'name' | 'size' | 'at'>()
  })

  test('aligns numbers at the right, shows a repeated cell once and omits columns that are empty in each row', () => {
    const sizes = list<Row>()({
      columns: [
        { key: 'name', title: 'NAME', once: true },
        { key: 'size', title: 'SIZE', align: 'right' },
        { key: 'at', title: 'AT', optional: true },
        { key: 'unit', value: () => 'MiB', title: 'IN' },
      ],
    })
    expect(sizes.table(rows, terminal(80)).split('\n')).toEqual([
      '  NAME   SIZE   IN',
      '  a         5   MiB',
      '         1200   MiB',
    ])
    expect(sizes.table([{ name: 'b', size: 1, at }], terminal(80))).toContain('2026-05-01')
    expect(sizes.json(rows[0] as Row)).toEqual({ name: 'a', size: 5, at: null, unit: 'MiB' })
  })

  test('never wraps a title, and becomes a block for each row where the table does not fit', () => {
    const wide = list<Row>()({
      columns: [
        { key: 'name', title: 'PERMISSIONS', shrink: 1 },
        { key: 'size', title: 'SIZE' },
        { key: 'text', value: () => 'one two three four five six', title: 'TEXT', shrink: 1, least: 20 },
      ],
    })
    const [head] = wide.table(rows, terminal(45)).split('\n')
    expect(head?.trim().split(/ +/)).toEqual(['PERMISSIONS', 'SIZE', 'TEXT'])
    expect(wide.table(rows, terminal(36)).split('\n')[0]).toBe('  permissions   a')
  })
})

test('a key past its end is shown as expired, and a revoked one as revoked', () => {
  const facts: KeyFacts = { ...key((name) => name), revokedAt: undefined }
  expect(lists.keyRow(facts, at).state).toBe('active')
  expect(lists.keyRow(facts, new Date('2026-06-01T00:00:00Z')).state).toBe('expired')
  expect(lists.keyRow({ ...facts, revokedAt: at }, new Date('2027-01-01T00:00:00Z')).state).toBe('revoked')
})

test('a key with the roles of its user shows * for them, and has no field and no member for permissions', () => {
  const row = { ...key((name) => name), roles: undefined, permissions: undefined }
  expect(lists.keys.record(row, { store: '/s.db' }).split('\t')).toEqual([
    '/s.db',
    'name',
    'userName',
    'expired',
    '*',
    '2026-06-01T00:00:00.000Z',
    '2026-05-01T10:20:30.000Z',
  ])
  expect(lists.keys.json(row)).toMatchObject({ roles: null })
  expect(lists.keys.json(row)).not.toHaveProperty('permissions')
})

test('a change of roles shows the store, the changes and the resulting lists', () => {
  const change = {
    ...roleChange((name) => name),
    userName: 'bob',
    changed: { roles: ['Ops'], permissions: [] },
    unchanged: { roles: ['Old'], permissions: [] },
    all: { roles: ['Old', 'Ops'], permissions: [] },
  }
  const lines = renderChange(
    change,
    'https://svc.example.com',
    { json: false, screen: terminal(80) },
    new Date(),
  ).split('\n')
  expect(lines.map((line) => line.replace(/^\W+/, '').replace(/ {2,}/, ': '))).toEqual([
    'bob now has "Ops"',
    'Unchanged: "Old"',
    'Roles: Old, Ops',
    'Permissions: none',
    'Where: https://svc.example.com',
  ])
})

test('ambiguous names are quoted', () => {
  expect(names(['Admin', 'Night shift', 'a,b'])).toBe('Admin, "Night shift", "a,b"')
  expect(names([])).toBe('none')
  expect(jsvNames(['Admin', 'a,b', 'say "hi"', ''])).toBe('[Admin,"a,b","say ""hi""",""]')
})

test.each([
  ['90d', 90 * 86_400_000],
  ['12h', 12 * 3_600_000],
  ['52w', 52 * 604_800_000],
  ['3650d', 3_650 * 86_400_000],
])('a lifetime of %s', (input, ms) => expect(parseLifetime('expires', input)).toBe(ms))

test.each(['', '90', 'd', '0d', '-1d', '1.5d', '3651d', '999999w', 'soon', '1y'])(
  '%j is not a valid lifetime',
  (input) => {
    expect(() => parseLifetime('expires', input)).toThrow('--expires')
  },
)

/** The audit entry of a user whose role A ends. */
const ending = (endsAt: string): string =>
  JSON.stringify({ roles: ['A'], permissions: [], ends: [{ kind: 'role', name: 'A', endsAt }] })

test.each([
  [{ before: '{"roles":["A"],"permissions":[]}', after: '{"roles":["B c"],"permissions":["p"]}' }, '+"B c" -A +p'],
  [{ before: '{"roles":["A"],"permissions":[]}', after: '{"roles":["A"],"permissions":[]}', reason: 'r' }, '(r)'],
  [
    { before: '{"roles":[],"permissions":[]}', after: ending('2026-11-28T18:00:00.000Z') },
    '+A A until 2026-11-28 18:00 UTC',
  ],
  [
    { before: ending('2026-11-28T18:00:00.000Z'), after: ending('2026-11-29T18:00:00.000Z') },
    'A until 2026-11-29 18:00 UTC',
  ],
  [{ before: ending('2026-11-28T18:00:00.000Z'), after: '{"roles":["A"],"permissions":[]}' }, 'A permanent'],
  [
    {
      before: ending('2026-11-28T18:00:00.000Z'),
      after: '{"roles":[],"permissions":[],"ended":{"kind":"role","name":"A","endsAt":"2026-11-28T18:00:00.000Z"}}',
    },
    '-A',
  ],
  [{ after: '{"user":"deploy","roles":null}' }, 'user deploy'],
  [{ before: '{"roles":["A","B"],"permissions":[]}' }, 'was roles A, B'],
  [{ before: 'Ops', after: 'Admin' }, 'was Ops Admin'],
  [{ after: '{"x' }, '{"x'],
  [{}, ''],
])('an audit entry, %j, shows the change %j', (entry, text) => {
  expect(auditChange({ before: undefined, after: undefined, reason: undefined, ...entry })).toBe(text)
})

test('a terminal shows the status of an agent in the words of all states, and a record as the interface has it', () => {
  const agent = (status: 'Ok' | 'Warn' | 'Fail'): heartbeats.ListedHeartbeat => ({
    ...{ name: status, at, who: 'svc', status, ageMs: 5_000, message: undefined, version: undefined },
  })
  const rows = [agent('Ok'), agent('Warn'), agent('Fail')] as const
  const output = lists.heartbeats.table(rows, terminal(80)).split('\n').slice(1)
  expect(output.map((line) => line.trim().split(/\s+/).slice(0, 2))).toEqual([
    ['Ok', 'ok'],
    ['Warn', 'warning'],
    ['Fail', 'failed'],
  ])
  expect(lists.heartbeats.record(rows[1], { store: 's' }).split('\t')[2]).toBe('Warn')
})

test('a check that another failure stopped is skipped, and one without a verdict is not checked', () => {
  const finding = (fault: string, message: string, level: 'fail' | 'not checked' = 'fail') => ({
    check: 'query',
    level,
    message,
    fault,
  })
  const rows = [
    finding('dependency', 'not run: connect failed'),
    finding('data', 'not checked: no figure', 'not checked'),
    finding('data', '7'),
  ]
  const output = lists.findings.table(rows, terminal(100)).split('\n').slice(1)
  expect(output.map((line) => /query +(\w+(?: checked)?)/.exec(line)?.[1])).toEqual([
    'skipped',
    'not checked',
    'failed',
  ])
})
