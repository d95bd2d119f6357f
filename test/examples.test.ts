import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { monitors } from '../src/core/checks/kinds/index.ts'
import { describePlan, hostKind, isKindName, loadKind } from '../src/core/checks/plan/index.ts'
import { profileNames } from '../src/core/checks/profiles/index.ts'
import { ServerType } from '../src/core/protocol/index.ts'
import { receiverKinds } from '../src/core/watch/notify/index.ts'
import { stable } from '../tools/examples/stable.ts'
import { load } from './config/given.ts'

const root = new URL('../docs/examples/', import.meta.url)
const page = (name: string): string => readFileSync(new URL(name, root), 'utf8')
const fences = (text: string, info: string): readonly string[] =>
  [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, kind, content = '']) =>
    kind === info ? [content] : [],
  )

test('each server type has its page, and the index links to it', () => {
  const pages = ServerType.values.map((type) => `${type}.md`)
  expect(readdirSync(root).sort()).toEqual([...pages, 'README.md'].sort())
  const linked = [...page('README.md').matchAll(/\]\((\w+\.md)\)/g)].map(([, link]) => link)
  expect(linked.sort()).toEqual(pages.sort())
})

test.each(ServerType.values)('the page of %s shows a list, a green screen and a red one', (type) => {
  const screens = fences(page(`${type}.md`), 'text')
  const [list, green, ...red] = screens
  expect(list).toMatch(new RegExp(`^\\$ svc monitors list --type ${type} --mode Advanced -v\\n${type}, Advanced\\n`))
  expect(green).toMatch(new RegExp(`^\\$ svc health -t ${type} -m Advanced -v\\n✓ ${type} is healthy: `))
  expect(red.filter((screen) => screen.includes('\n✗ UNHEALTHY ')).length).toBeGreaterThan(0)
  expect([...page(`${type}.md`).matchAll(/^\*\*What happened\.\*\* /gm)]).toHaveLength(red.length)
})

test.each(ServerType.values)('each svc.yaml on the page of %s is valid', async (type) => {
  const yamls = fences(page(`${type}.md`), 'yaml')
  expect(yamls.length).toBeGreaterThan(0)
  for (const yaml of yamls) expect((await load(yaml)).types[type]?.monitors.length).toBeGreaterThan(0)
})

test.each(ServerType.values)('each check on the page of %s is in the table of its kind', async (type) => {
  const rows = fences(page(`${type}.md`), 'text').flatMap(rowsOf)
  expect(rows.length).toBeGreaterThan(4)
  const tables = new Map<string, readonly string[]>()
  for (const kind of new Set(rows.map(({ kind: each }) => each))) {
    if (!isKindName(kind)) expect.fail(`${kind} is not a kind`)
    const { checks, internal } = await loadKind(kind)
    expect(kind === hostKind || internal).toBeFalsy()
    tables.set(
      kind,
      checks.map(({ name }) => name),
    )
  }
  expect(rows.filter(({ kind, check }) => check !== 'not run' && !tables.get(kind)?.includes(check))).toEqual([])
})

test('pages contain no folder, port, date or duration of the machine that wrote them', () => {
  for (const type of ServerType.values) {
    expect(page(`${type}.md`)).not.toMatch(/\/(?:tmp|home|work|Users)\/|\b(?:3[3-9]|[45]\d)\d{3}\b(?<!50017|50021)/)
    expect(page(`${type}.md`)).not.toMatch(/\b(?!2 ms)\d+(?:\.\d+)? ms\b(?<!(?:warn|fail|below) \d+ ms)/)
  }
})

test('values of one run are replaced, thresholds are not, and no text grows', () => {
  const screen = (took: string, ms: string): string =>
    [
      `  ✗ Sql  postgres orders  connect  127.0.0.1:41234 answered in ${ms} (fail 250 ms), connect timed out`,
      '                                   after 3.02 s',
      '  correlation 0b5f2a31-9c1e-4d5c-8a0d-1f2e3d4c5b6a',
      '',
      `✗ UNHEALTHY  this machine · 1 monitor failed · Advanced · ${took}`,
    ].join('\n')
  const output = stable(screen('612 ms', '318 ms'), [[/\b41234\b/, '15432']])
  expect(output).toBe(stable(screen('734 ms', '0.4 ms'), [[/\b41234\b/, '15432']]))
  expect(output.split('\n')).toEqual([
    '  ✗ Sql  postgres orders  connect  127.0.0.1:15432 answered in 2 ms (fail 250 ms), connect timed out',
    '                                   after 3 s',
    '  correlation 7f3c2a9e-41d0-4c1b-9a57-0d6f3f1f2b11',
    '',
    '✗ UNHEALTHY  this machine · 1 monitor failed · Advanced · 1 s',
  ])
})

test('docs/tested.md has a row for each kind, each profile and each server type', () => {
  const tested = readFileSync(new URL('../tested.md', root), 'utf8')
  const rows = [...tested.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, names = '']) => names.split(', '))
  const all = [...Object.keys(monitors), ...profileNames, ...ServerType.values]
  expect(all.filter((name) => !rows.includes(name))).toEqual([])
  const receivers = receiverKinds.map(({ name }) => name)
  const allowedNames = [
    ...all,
    ...receivers,
    'kind',
    'profile',
    'type',
    'receiver',
    'real',
    'simulated',
    'not run',
    'all',
  ]
  expect(rows.filter((name) => !allowedNames.includes(name) && /\w/.test(name))).toEqual([])
})

test('svc monitors list omits checks without settings', async () => {
  const checks = async (more: string): Promise<readonly string[]> => {
    const config = await load(`types: {App: [{kind: http, url: 'http://localhost/'${more}}]}`)
    const [row] = describePlan(config.types.App?.monitors ?? [], 'Standard')
    return row?.Checks.map(({ Name }) => Name) ?? []
  }
  expect(await checks('')).toEqual(['connect', 'status', 'latency', 'body', 'empty body', 'addresses'])
  expect(await checks(', json: {$.a: b}, health: true')).toEqual([
    'connect',
    'status',
    'latency',
    'body',
    'json',
    'health',
    'cache',
    'addresses',
  ])
})

/** The rows of a table on a screen: their kind and their check, put together again where the table broke them. */
function rowsOf(screen: string): readonly { readonly kind: string; readonly check: string }[] {
  const lines = screen.split('\n')
  const head = lines.findIndex((line) => /^ {2}MONITOR +CHECK +(?:STATUS|FROM) +/.test(line))
  const at = (word: string): number => lines[head]?.indexOf(word) ?? -1
  const [checkAt, stateAt] = [at('CHECK'), Math.max(at('STATUS'), at('FROM'))]
  let kind = ''
  const rows: { kind: string; check: string }[] = []
  for (const line of head < 0 ? [] : lines.slice(head + 1)) {
    if (line.trim() === '' || line.includes(' depends on ')) break
    const [monitor, check, state] = [line.slice(0, checkAt), line.slice(checkAt, stateAt), line.slice(stateAt)]
    const last = rows.at(-1)
    if (/^(?:✓|!|✗|Basic|Standard|Advanced)/.test(state)) {
      if (monitor.trim() !== '') kind = monitor.trim().split(' ')[0] ?? ''
      rows.push({ kind, check: check.trim() })
    } else if (last && check.trim() !== '') last.check += ` ${check.trim()}`
  }
  return rows
}
