import { chmodSync, lstatSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { machine } from '../../src/cli/io/process.ts'
import { documentOf } from '../support/program/documents.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

let home: Home
let file: string
let port: number
beforeEach(async () => {
  home = temporaryHome()
  file = join(home.folder, 'svc.yaml')
  const peer = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
  await new Promise((resolve) => peer.once('listening', resolve))
  onTestFinished(() => void peer.close())
  port = (peer.address() as { readonly port: number }).port
})
afterEach(() => {
  vi.restoreAllMocks()
})

const tcp = (name: string, more = ''): string =>
  `    - kind: tcp # ${name}\n      name: ${name}\n      host: 127.0.0.1\n      port: ${port}\n${more}`
const put = (text: string): void => writeFileSync(file, text, { mode: 0o600 })
const read = (): string => readFileSync(file, 'utf8')
const monitors = (...args: readonly string[]) => home.run(['monitors', ...args])

test('C20 svc monitors add writes an entry, shows the difference and runs it once; every other line, the mode and a link stay', async () => {
  const before = `# mine\ntypes:\n  App:\n${tcp('one')}\nserve: {every: off} # why\n`
  put(before)
  chmodSync(file, 0o640)
  const linked = join(home.folder, 'linked.yaml')
  symlinkSync(file, linked)
  const { code, stdout, stderr } = await monitors(
    'add',
    'tcp',
    `127.0.0.1:${port}`,
    '--name',
    'two',
    '--config',
    linked,
  )
  expect([code, stdout.split('\n')[1]]).toEqual([0, ['this machine', 'added', 'App', 'tcp two', linked].join('\t')])
  const entry = `    - kind: tcp\n      name: two\n      host: 127.0.0.1\n      port: ${port}\n`
  expect(read()).toBe(before.replace('\nserve', `${entry}\nserve`))
  expect([statSync(file).mode & 0o777, lstatSync(linked).isSymbolicLink()]).toEqual([0o640, true])
  expect(stderr).toContain(`${linked}:8\n+     - kind: tcp\n`)
  expect(stderr).toMatch(/tcp two|accepted in/)
})

test('C20 without a svc.yaml, svc monitors add makes one that only this account can read', async () => {
  const { code, stdout } = await monitors('add', 'http', 'http://127.0.0.1:9/', '--json')
  expect(code).toBe(0)
  documentOf('monitors add', stdout)
  expect(read()).toContain('types:\n  App:\n    - kind: http\n      name: 127.0.0.1\n      url: http://127.0.0.1:9/\n')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect((await monitors('validate')).code).toBe(0)
})

test.each<[string, readonly string[], number, string]>([
  ['an unknown kind', ['add', 'htpp', 'http://x'], 2, 'Did you mean http?'],
  ['a target that is no URL', ['add', 'http', 'shop.example'], 12, 'App[1].url'],
  ['a target without its port', ['add', 'tcp', 'db1'], 12, 'port'],
  ['a password in the target', ['add', 'postgres', 'postgres://u:s3cret@h/d'], 12, 'url'],
  ['a kind without a target', ['add', 'heartbeat', 'x'], 2, 'cannot read a TARGET for the kind heartbeat'],
  [
    'a name that is there already',
    ['add', 'tcp', '127.0.0.1:9', '--name', 'one'],
    9,
    'already has a monitor "tcp one"',
  ],
  ['a name that cannot be one', ['add', 'tcp', '127.0.0.1:9', '--name', 'a\u0007b'], 12, 'name'],
  ['an unknown monitor', ['remove', 'tw'], 2, 'no monitor is called "tw"'],
  ['a monitor that others depend on', ['remove', 'base'], 12, 'base'],
  ['a monitor of a profile', ['remove', 'tcp pair first'], 2, 'a profile of'],
])('C20 %s is refused, and nothing is written', async (_, args, exit, words) => {
  const before = `profiles: {p: {monitors: [{kind: tcp, name: first, host: a, port: 1}]}}
types:
  App:
${tcp('one', '      dependsOn: [Sql/base]\n')}  Sql:
${tcp('base')}    - {profile: p, name: pair}
`
  put(before)
  const { code, stderr } = await monitors(...args)
  expect([code, stderr]).toEqual([exit, expect.stringContaining(words)])
  expect(stderr).not.toContain('s3cret')
  expect(read()).toBe(before)
})

test('C20 svc monitors remove takes an entry out of the file that has it, and shows it', async () => {
  put(`include: [part.yaml]\ntypes:\n  App:\n${tcp('one')}${tcp('two')}`)
  const part = join(home.folder, 'part.yaml')
  writeFileSync(part, `types:\n  Sql:\n${tcp('three')}    # last\n${tcp('four')}`, { mode: 0o600 })
  const { code, stdout, stderr } = await monitors('remove', 'Sql/three')
  expect([code, stdout]).toEqual([0, expect.stringContaining(`removed\tSql\ttcp three\t${part}`)])
  expect(stderr).toContain(`${part}:3\n-     - kind: tcp # three\n`)
  expect(readFileSync(part, 'utf8')).toBe(`types:\n  Sql:\n    # last\n${tcp('four')}`)
})

test('C20 svc monitors remove says that svc serve waits where that is more than a tenth of the monitors', async () => {
  const some = (length: number): string => Array.from({ length }, (_, at) => tcp(`m${at}`)).join('')
  put(`types:\n  App:\n${some(9)}`)
  expect((await monitors('remove', 'm0')).stderr).toContain(
    'Note: a running svc serve goes on with the old file: it removes 1 of 9 monitors: App/tcp m0 (if this is intended: svc serve reload)',
  )
  put(`types:\n  App:\n${some(10)}`)
  expect((await monitors('remove', 'm0')).stderr).not.toContain('Note:')
})

test('C20 svc monitors add and remove do not write a file of another account, or one that has changed meanwhile', async () => {
  put(`types:\n  App:\n${tcp('one')}${tcp('two')}`)
  const before = read()
  const own = process.geteuid?.() ?? 0
  vi.spyOn(machine, 'accountId').mockReturnValue(own + 4_242)
  for (const args of [
    ['add', 'tcp', '127.0.0.1:9'],
    ['remove', 'one'],
  ] as const) {
    const { code, stderr } = await monitors(...args)
    expect([code, stderr]).toEqual([12, expect.stringContaining(`belongs to another account (uid ${own};`)])
  }
  expect(read()).toBe(before)
})

/** An editor that runs a line of a shell with the copy as `$copy`. */
const editor = (line: string): Record<string, string> => {
  const script = join(home.folder, 'editor.sh')
  writeFileSync(script, `#!/bin/sh\ncopy="$1"\n${line}\n`, { mode: 0o700 })
  return { VISUAL: `sh ${script}` }
}
const edit = (line: string) => home.run(['monitors', 'edit', 'one'], { env: editor(line) })

test('C20 svc monitors edit replaces the file with what the editor leaves, once that is valid', async () => {
  put(`types:\n  App:\n${tcp('one')}`)
  const unchanged = await edit(':')
  expect([unchanged.code, unchanged.stdout]).toEqual([0, expect.stringContaining('unchanged\tApp\ttcp one')])
  const { code, stderr } = await edit('sed \'s/name: one/name: shop/\' "$copy" > "$copy.new"; mv "$copy.new" "$copy"')
  expect([code, stderr]).toEqual([0, expect.stringContaining('-       name: one\n+       name: shop')])
  expect(read()).toContain('name: shop')
})

test.each([
  ['a mistake', 'echo "x: 1" >> "$copy"', 12, 'x'],
  ['a change of the file meanwhile', 'echo "# mine" >> "$copy"; echo "# theirs" >> FILE', 9, 'has changed meanwhile'],
  ['an editor that ctrl-C ends', 'echo "# mine" >> "$copy"; kill -INT $$', 130, 'interrupted; nothing was written'],
  ['a ctrl-C that a shell reports', 'echo "# mine" >> "$copy"; exit 130', 130, 'interrupted; nothing was written'],
  ['an editor that fails', 'echo "# mine" >> "$copy"; exit 3', 12, 'ended with 3'],
])('C20 svc monitors edit writes nothing after %s', async (_, line, exit, words) => {
  put(`types:\n  App:\n${tcp('one')}`)
  const { code, stderr } = await edit(line.replace('FILE', file))
  expect([code, stderr]).toEqual([exit, expect.stringContaining(words)])
  expect(read()).not.toMatch(/x: 1|mine/)
  const [, copy] = /The edited text is in (\S+)/.exec(stderr) ?? []
  if (exit !== 130 && !words.startsWith('ended')) expect(readFileSync(copy ?? '', 'utf8')).toMatch(/x: 1|mine/)
  if (copy !== undefined) rmSync(join(copy, '..'), { recursive: true })
})

test('C20 the answers of svc monitors remove and edit are documents', async () => {
  put(`types:\n  App:\n${tcp('one')}${tcp('two')}`)
  documentOf('monitors remove', (await monitors('remove', 'two', '--json')).stdout)
  const edited = await home.run(['monitors', 'edit', 'one', '--json'], { env: editor('echo "# more" >> "$copy"') })
  expect(documentOf('monitors edit', edited.stdout)).toMatchObject({
    monitors: [{ change: 'edited', monitor: 'tcp one' }],
  })
})

test('C20 svc monitors edit says which editor cannot be started', async () => {
  put(`types:\n  App:\n${tcp('one')}`)
  const { code, stderr } = await home.run(['monitors', 'edit', 'one'], { env: { VISUAL: '/nowhere/ed' } })
  expect([code, stderr]).toEqual([12, expect.stringContaining('the editor /nowhere/ed cannot be started')])
})
