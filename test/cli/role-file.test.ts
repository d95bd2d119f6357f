import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { jsvNames } from '../../src/cli/render/table.ts'
import { type FileChange, readRoleFile } from '../../src/cli/roles/role-file.ts'
import { Fault } from '../../src/core/base/errors.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const folder = temporaryFolder()

let count = 0
function file(content: string | Uint8Array, ending = 'csv'): string {
  count += 1
  const path = join(folder, `${count}.${ending}`)
  writeFileSync(path, content)
  return path
}

async function fault(path: string): Promise<Fault> {
  const error = await readRoleFile(path, 'assign', new AbortController().signal).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof Fault) return error
  throw new Error(`no fault, but ${String(error)}`)
}

const header = 'UserName,Action,Roles,Permissions\n'
const row = (over: Partial<FileChange>): FileChange => ({
  row: 2,
  action: 'assign',
  userName: 'bob',
  roles: ['Ops'],
  permissions: [],
  ...over,
})

describe('a file of role changes', () => {
  test('is CSV with lists in JSV, with or without brackets, and ignores blanks around names', async () => {
    const path = file(`${header}bob,assign,"[Ops, Night shift]",a:b\ncarol,UnAssign,"Ops,""x, y""",[]\n`)
    expect(await readRoleFile(path, 'assign', new AbortController().signal)).toEqual([
      row({ roles: ['Ops', 'Night shift'], permissions: ['a:b'] }),
      row({ row: 3, userName: 'carol', action: 'unassign', roles: ['Ops', 'x, y'] }),
    ])
  })

  test('may come from a spreadsheet: byte-order mark, CRLF, columns in any order and letter case, blank rows', async () => {
    const path = file('\ufeffroles,USERNAME\r\nOps,bob\r\n,\r\nOps,carol\r\n')
    expect(await readRoleFile(path, 'unassign', new AbortController().signal)).toEqual([
      row({ action: 'unassign' }),
      row({ row: 4, action: 'unassign', userName: 'carol' }),
    ])
  })

  test('accepts the lists that a pipe printed', async () => {
    const roles = ['Ops', 'a,b', 'say "hi"', '[x]', 'k:v', 'Night shift']
    const path = file(`${header}bob,assign,"${jsvNames(roles).replaceAll('"', '""')}",\n`)
    expect((await readRoleFile(path, 'assign', new AbortController().signal))[0]?.roles).toEqual(roles)
  })

  test('is recognized as JSON by its name or its content', async () => {
    const content =
      '[{"UserName": "bob", "Roles": ["Ops"]}, {"userName": "bob", "permissions": ["p"], "action": "Assign"}]'
    const expected = [row({ row: 1 }), row({ row: 2, roles: [], permissions: ['p'] })]
    expect(await readRoleFile(file(content, 'json'), 'assign', new AbortController().signal)).toEqual(expected)
    expect(await readRoleFile(file(content, 'txt'), 'assign', new AbortController().signal)).toEqual(expected)
  })

  test('reports each mistake with its row and column', async () => {
    const invalid = `${header},assign,Ops,\nbob,asign,Ops,\nbob,assign,,\nbob,assign,"[Ops",\nbob,assign,"[Ops,"""" ]",\n${'x'.repeat(129)},,Ops,\nbob,,${'y'.repeat(129)},\n`
    const { exitCode, details } = await fault(file(invalid))
    expect(exitCode).toBe(12)
    expect(details.fields?.map(({ FieldName }) => FieldName)).toEqual([
      'row 2, UserName',
      'row 3, Action',
      'row 4',
      'row 5, Roles',
      'row 6, Roles',
      'row 7, UserName',
      'row 8, Roles',
    ])
    expect(details.hints?.at(-1)).toBe('Nothing was changed.')
  })

  test('reports twenty mistakes and counts the others', async () => {
    const { message, details } = await fault(file(header + 'bob,nope,Ops,\n'.repeat(50)))
    expect(message).toContain('50 errors')
    expect(details.fields).toHaveLength(20)
    expect(details.hints).toContain('… and 30 more.')
  })

  test.each([
    ['a column that nobody knows', 'UserName,Role\nbob,Ops\n', 'row 1: unknown column "Role"'],
    ['no column UserName', 'Roles\nOps\n', 'the column UserName is missing'],
    ['a column twice', 'UserName,Roles,Roles\nbob,a,b\n', 'row 1: the column Roles appears twice'],
    [
      'a column twice in another letter case',
      'UserName,Roles,roles\nbob,a,b\n',
      'row 1: the column roles appears twice',
    ],
    ['semicolons', 'UserName;Roles\nbob;Ops\n', 'separated by semicolons'],
    ['tabs', 'UserName\tRoles\nbob\tOps\n', 'separated by tabs'],
    ['more cells than columns', 'UserName,Roles\nbob,Ops,Admin\n', 'row 2: 3 cells for 2 columns'],
    ['a quote that is not closed', 'UserName,Roles\nbob,Ops\nbob,"Ops\n', 'not valid CSV'],
    ['nothing', '', 'is empty'],
    ['a header alone', header, 'contains no rows'],
  ])('is refused for %s', async (_, content, text) => {
    const { message, exitCode } = await fault(file(content))
    expect(message).toContain(text)
    expect(exitCode).toBe(12)
  })

  test.each([
    ['[{"UserName": "bob", "Roles": "Ops"}]', 'entry 1, Roles'],
    ['[{"UserName": "bob", "Roles": [1]}]', 'entry 1, Roles'],
    ['[{"UserName": 7, "Roles": ["Ops"]}]', 'entry 1, UserName'],
    ['[{"UserName": "bob", "Roles": ["Ops"]}, {"UserName": "bob", "Action": 1, "Roles": ["x"]}]', 'entry 2, Action'],
  ])('reports the entry of JSON: %s', async (content, place) => {
    expect((await fault(file(content, 'json'))).details.fields?.map(({ FieldName }) => FieldName)).toEqual([place])
  })

  test.each([
    ['{"UserName": "bob"}', 'must be a JSON list'],
    ['[1]', 'entry 1 is not an object'],
    ['[{"UserName": "bob", "Role": ["x"]}]', 'unknown column "Role"'],
    ['[{"__proto__": {"a": 1}, "UserName": "bob", "Roles": ["x"]}]', 'unknown column "__proto__"'],
    ['[{"Roles": ["x"], "roles": ["y"]}]', 'entry 1: Roles occurs twice'],
    ['[', 'is not valid JSON'],
  ])('JSON %s is refused', async (content, text) => {
    expect((await fault(file(content, 'json'))).message).toContain(text)
  })

  test('that is missing, not UTF-8 or a folder is reported as such', async () => {
    expect((await fault(join(folder, 'nowhere.csv'))).message).toContain('does not exist')
    expect((await fault(file(Uint8Array.of(0xff, 0xfe, 0x55, 0x00)))).message).toContain('is not UTF-8')
    expect((await fault(folder)).message).toContain('is a folder')
  })
})
