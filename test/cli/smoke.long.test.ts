import { describe, expect, test } from 'vitest'
import { commands } from '../../src/registry.ts'
import type { Home, Ran } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

/**
 * Every command once as the built program in a process of its own, and once in this process: both give the same. All
 * other tests of a command may therefore run in this process. The order counts: later lines use what earlier ones made.
 */
const nowhere = ['--server', 'http://127.0.0.1:1']
const lines: readonly { readonly args: readonly string[]; readonly code: number; readonly stdin?: string }[] = [
  { args: ['users', 'add', 'ann', '--role', 'Admin', '--password-stdin'], stdin: 'correct horse 7\n', code: 0 },
  { args: ['users', 'add', 'bob', '--no-password'], code: 0 },
  { args: ['users', 'list'], code: 0 },
  { args: ['users', 'show', 'ann'], code: 0 },
  { args: ['users', 'disable', 'bob'], code: 0 },
  { args: ['users', 'enable', 'bob'], code: 0 },
  { args: ['users', 'unlock', 'bob'], code: 0 },
  { args: ['users', 'passwd', 'bob', '--password-stdin'], stdin: 'quiet meadow 17\n', code: 0 },
  { args: ['users', 'link', 'bob', '--provider', 'https://login.example.com', '--subject', 'b'], code: 0 },
  { args: ['users', 'unlink', 'bob', '--provider', 'https://login.example.com'], code: 0 },
  { args: ['roles', 'assign', 'bob', '--role', 'Ops'], code: 0 },
  { args: ['roles', 'show', 'bob'], code: 0 },
  { args: ['roles', 'holders', 'Ops'], code: 0 },
  { args: ['roles', 'assign', 'bob', '--role', 'Deploy', '--until', '2099-01-01T00:00Z'], code: 0 },
  { args: ['roles', 'extend', 'bob', '--role', 'Deploy', '--for', '1h', '--reason', 'why'], code: 0 },
  { args: ['roles', 'give-back', 'Deploy'], code: 2 },
  { args: ['roles', 'history', 'bob'], code: 0 },
  { args: ['roles', 'unassign', 'bob', '--role', 'Ops'], code: 0 },
  { args: ['keys', 'create', 'ci', '--user', 'ann', '--expires', '90d'], code: 0 },
  { args: ['keys', 'list'], code: 0 },
  { args: ['keys', 'revoke', 'ci'], code: 0 },
  { args: ['heartbeat', 'nightly'], code: 0 },
  { args: ['heartbeats', 'list', '--json'], code: 0 },
  { args: ['heartbeats', 'remove', 'nightly'], code: 0 },
  { args: ['sessions', 'list', '--user', 'ann'], code: 0 },
  { args: ['sessions', 'end', '--all', '--user', 'ann'], code: 0 },
  { args: ['history'], code: 0 },
  { args: ['impact', 'shop'], code: 9 },
  { args: ['drill', '--last'], code: 9 },
  { args: ['silence', 'shop', '--for', '1h', '--reason', 'x'], code: 2 },
  { args: ['silence', 'list'], code: 0 },
  { args: ['silence', 'end', '1a2b3c4d'], code: 9 },
  { args: ['ack', 'shop', '--reason', 'x'], code: 9 },
  { args: ['drivers', 'list'], code: 0 },
  { args: ['drivers', 'add', 'nosuch'], code: 2 },
  { args: ['nodes'], code: 9 },
  { args: ['nodes', 'forget', 'node-b'], code: 9 },
  { args: ['audit', 'list'], code: 0 },
  { args: ['audit', 'head'], code: 0 },
  { args: ['audit', 'verify'], code: 0 },
  { args: ['audit', 'export', '/nonexistent/a.jsonl'], code: 12 },
  { args: ['backup', '/nonexistent/b.db'], code: 12 },
  { args: ['restore', '/nonexistent/b.db'], code: 12 },
  { args: ['users', 'remove', 'bob', '--yes'], code: 0 },
  { args: ['monitors', 'kinds', 'tcp'], code: 0 },
  { args: ['monitors', 'profiles'], code: 0 },
  { args: ['monitors', 'list', '--type', 'Sql'], code: 0 },
  { args: ['monitors', 'validate'], code: 12 },
  { args: ['monitors', 'test', 'shop'], code: 2 },
  { args: ['monitors', 'discover', '--no-such-flag'], code: 2 },
  { args: ['monitors', 'add', 'heartbeat', 'x'], code: 2 },
  { args: ['monitors', 'remove', 'shop'], code: 2 },
  { args: ['monitors', 'edit', 'shop'], code: 2 },
  { args: ['notify', 'list'], code: 0 },
  { args: ['notify', 'add', 'slack', '--secrets', 'env'], code: 12 },
  { args: ['notify', 'preview', 'ops'], code: 2 },
  { args: ['notify', 'test'], code: 12 },
  { args: ['secrets', 'list'], code: 0 },
  { args: ['secrets', 'set', 'db', '--for', 'db1:5432', '--stdin'], stdin: 'x', code: 11 },
  { args: ['secrets', 'remove', 'db'], code: 11 },
  { args: ['profile', 'add', 'prod', ...nowhere], code: 0 },
  { args: ['profile', 'use', 'prod'], code: 0 },
  { args: ['profile', 'list'], code: 0 },
  { args: ['profile', 'show'], code: 0 },
  { args: ['config', 'set', 'credentials', 'always'], code: 0 },
  { args: ['config', 'get', 'credentials'], code: 0 },
  { args: ['config', 'list', '--json'], code: 0 },
  { args: ['config', 'path'], code: 0 },
  { args: ['config', 'unset', 'credentials'], code: 0 },
  { args: ['health', '-t', 'App'], code: 6 },
  { args: ['whoami'], code: 4 },
  { args: ['passwd', '--password-stdin'], stdin: 'a\nb\n', code: 4 },
  { args: ['logout'], code: 0 },
  { args: ['login', ...nowhere, '-u', 'ann', '--password-stdin', '--insecure-storage'], stdin: 'x', code: 6 },
  { args: ['api', 'GET', '/auth'], code: 6 },
  { args: ['doctor', '--json'], code: 6 },
  { args: ['profile', 'remove', 'prod'], code: 0 },
  { args: ['init'], code: 2 },
  { args: ['import', 'nowhere.yaml'], code: 12 },
  { args: ['serve', '--port', 'abc'], code: 2 },
  { args: ['serve', 'reload'], code: 6 },
  { args: ['completion', 'bash'], code: 0 },
  { args: ['version'], code: 0 },
]

const inside = temporaryHome()
const outside = temporaryHome()

/** Removes the differences between any two runs of one command: the folder, times, and random values. */
function comparable(home: Home, { code, stdout, stderr }: Ran): object {
  const text = (written: string): string =>
    written
      .replaceAll(home.folder, '<home>')
      .replace(/\d{4}-\d\d-\d\d(?:T[\d:.]+Z| \d\d:\d\d UTC)?/g, '<time>')
      .replace(/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/g, '<id>')
      .replace(/\b[0-9a-f]{64}\b/g, '<hash>')
      .replace(/svc_key_[\w-]+/g, '<key>')
      .replace(/("ageSeconds"|"clockSkewMs"):-?\d+/g, '$1:<ms>')
  return { code, stdout: text(stdout), stderr: text(stderr) }
}

describe('svc in a process of its own, and in the process of its caller', () => {
  test.each(lines)('$args give the same', async ({ args, code, stdin = '' }) => {
    const [own, other] = await Promise.all([inside.run(args, { stdin }), outside.svc(args, { stdin })])
    expect(comparable(inside, own)).toEqual(comparable(outside, other))
    expect(other.code).toBe(code)
  })

  test('are compared for every command', () => {
    const ids = lines.map(({ args: [first = '', second = ''] }) =>
      Object.hasOwn(commands, `${first}:${second}`) ? `${first}:${second}` : first,
    )
    expect(Object.keys(commands).filter((id) => !ids.includes(id))).toEqual([])
  })
})
