import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import pkg from '../package.json' with { type: 'json' }
import slowFiles from './longest.json' with { type: 'json' }
import { compiledCode } from './support/program/compiled-code.ts'
import { peerSuite } from './support/suite/peer.ts'
import { tiers, waiting } from './tiers.ts'

const cwd = new URL('..', import.meta.url).pathname
const sourceOf = (file: string): string => readFileSync(`${cwd}${file}`, 'utf8')
const own = 'test/tiers.test.ts'
const files = globSync('test/**/*.test.ts', { cwd }).sort()

/**
 * The problems of a file that does not fit the tier in its name. Tags are refused by vitest: its configuration has
 * none.
 */
function problemsOf(file: string, source: string): readonly string[] {
  const tier = /\.(\w+)\.test\.ts$/.exec(file)?.[1] ?? 'quick'
  const needsPeers = /\bpeerSuite\(/.test(source)
  const problems: (readonly [boolean, string])[] = [
    [!['quick', 'peers', 'long'].includes(tier), `no tier is called ${tier}`],
    [needsPeers && tier !== 'peers', 'peerSuite belongs into a .peers.test.ts file'],
    [
      tier === 'peers' && !needsPeers && !/\b(?:corpus|sqlSuite|install)[<(]/.test(source),
      'nothing in it needs a peer',
    ],
  ]
  return problems.flatMap(([is, why]) => (is ? [`${file}: ${why}`] : []))
}

test('the name of each test file says its tier, and nothing in the file contradicts it', () => {
  expect(files.length).toBeGreaterThan(300)
  expect(files.filter((file) => file !== own).flatMap((file) => problemsOf(file, sourceOf(file)))).toEqual([])
})

test.each([
  ['a.slow.test.ts', '', 'no tier is called slow'],
  ['a.test.ts', 'peerSuite(missing, "a", () => {})', 'peerSuite belongs into a .peers.test.ts file'],
  ['a.peers.test.ts', 'suiteWith(missing, "a", () => {})', 'nothing in it needs a peer'],
])('a planted %s with `%s` is detected', (file, source, why) => {
  expect(problemsOf(file, source)).toEqual([`${file}: ${why}`])
})

test('a suite that needs an installed program is refused in another tier, also where another module declares it', () => {
  expect(() => peerSuite(undefined, 'a server', () => {})).toThrow('belongs into a .peers.test.ts file')
})

test('each test file belongs to one project of vitest', () => {
  const places = Object.values(tiers).flatMap(({ include, exclude, alone }) => [
    ...globSync(include, { cwd, exclude: [...exclude, ...alone] }),
    ...globSync(alone, { cwd, exclude }),
  ])
  expect(places.sort()).toEqual(files)
})

/** Functions that make a quick file run less than the slow file that imports it. */
const runsLess = /\b(?:isQuick|backendsOfTier|runsOf)\(/
const importsTests = /^import '\.\/([\w-]+\.test\.ts)'$/gm

test('what a quick file leaves out, a slow file that imports it runs', () => {
  const quick = files.filter((file) => file !== own && !/\.(?:long|peers)\.test\.ts$/.test(file))
  const inPart = quick.filter((file) => runsLess.test(sourceOf(file)))
  const imported = files
    .filter((file) => file.endsWith('.long.test.ts'))
    .flatMap((file) => [...sourceOf(file).matchAll(importsTests)].map(([, name]) => `${dirname(file)}/${name}`))
  expect(inPart.length).toBeGreaterThan(15)
  expect(imported.sort()).toEqual(inPart)
})

test('npm test runs the quick tier, test:peers the slow one, and what prove and longest.json name exists', () => {
  expect(Object.keys(tiers)).toEqual(['quick', 'slow'])
  expect(pkg.scripts.test).toContain('--project "quick*"')
  expect(pkg.scripts['test:peers']).toContain('--project "slow*"')
  const proved = pkg.scripts.prove.split(' ').filter((word) => word.startsWith('test/'))
  expect(proved.length).toBeGreaterThan(5)
  expect([...proved, ...Object.keys(slowFiles)].filter((file) => !existsSync(`${cwd}${file}`))).toEqual([])
})

test('docs/slow-tests.md says what each file proves that takes a minute', () => {
  const rows = [...sourceOf('docs/slow-tests.md').matchAll(/^\| `([^`]+)` \|/gm)].map(([, file = '']) => file)
  const long = Object.entries(slowFiles).flatMap(([file, seconds]) => (seconds >= 60 ? [file] : []))
  expect(long.filter((file) => !rows.includes(file))).toEqual([])
})

test('each script of test/e2e has one test, and each test there a script', () => {
  const namesOf = (pattern: string, end: RegExp) => globSync(pattern, { cwd }).map((file) => file.replace(end, ''))
  const scripts = namesOf('test/e2e/scripts/*.txt', /\.txt$/)
  expect(namesOf('test/e2e/scripts/*.test.ts', /(?:\.\w+)?\.test\.ts$/).sort()).toEqual(scripts.sort())
})

test('each file of test/support is in a folder, and the index has a row for each folder', () => {
  const shared = globSync('*/*', { cwd: `${cwd}test/support` })
  expect(shared.length).toBeGreaterThan(100)
  expect(globSync('*.*', { cwd: `${cwd}test/support` })).toEqual(['README.md'])
  const rows = [...sourceOf('test/support/README.md').matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, folder]) => folder)
  expect(rows.toSorted()).toEqual([...new Set(shared.map((file) => file.split('/')[0]))].sort())
})

test('programs that quick tests start with the variables of this process keep their compiled code', () => {
  expect(process.env).toMatchObject(compiledCode)
})

test('each file that is listed as waiting exists', () => {
  const alternatives = (glob: string): number => (/\{(.*)\}/.exec(glob)?.[1] ?? '').split(',').length
  const counts = waiting.map((glob) => [glob, globSync(glob, { cwd }).length])
  expect(counts).toEqual(waiting.map((glob) => [glob, alternatives(glob)]))
})
