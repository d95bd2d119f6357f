/**
 * Writes test/snapshot: what svc prints about its commands, its profiles, its plans and the mistakes in a svc.yaml. It
 * runs no monitor, and it uses nothing of the program but its commands: the files show whether a reorganisation of the
 * sources changes what users see. What it prints about kinds is in docs/reference/monitors.md.
 *
 *     node tools/snapshot.ts [--into FOLDER]
 *
 * The YAML files in test/snapshot are written by hand; this tool replaces all others.
 */
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { packageJson } from '../src/cli/io/process.ts'
import { main } from '../src/main.ts'
import { capturedIo } from '../test/support/program/captured-io.ts'

type Outcome = { readonly stdout: string; readonly stderr: string; readonly code: number }
type Svc = (...args: readonly string[]) => Promise<Outcome>
/** The parts of what `svc monitors … --json` prints that this tool rearranges. */
type Kind = {
  readonly name: string
  readonly checks: readonly { readonly name: string; readonly doc: string }[]
}
type Plan = { readonly type: string; readonly monitors: readonly Monitor[] }
type Monitor = {
  readonly MonitorName: string
  readonly Kind: string
  readonly Host: boolean
  readonly Checks: readonly { readonly Name: string; readonly Depth: string; readonly Doc: string }[]
}

const inputs = fileURLToPath(new URL('../test/snapshot', import.meta.url))

/** Where the svc.yaml of a run is. */
let home = ''

type File = readonly [path: string, text: string]

/** The helps that have every form between them: the program, a topic, arguments, flags, the target, and a subject. */
const helpSamples = ['--help', 'users --help', 'users add --help', 'health --help', 'help exit-codes']

/** Some helps as they are, and of every command the parts that no source has in one place: its usage and its flags. */
async function helpTexts(svc: Svc): Promise<readonly File[]> {
  const { commands } = await import('../src/registry.ts')
  const samples = helpSamples.map(async (line) => transcript(line.split(' '), await svc(...line.split(' '))))
  const entries = Object.keys(commands).map(async (id) => {
    const { stdout } = await svc(...id.split(':'), '--help')
    const usage = stdout.split('\n').filter((line) => line.startsWith('  $ svc ') && line.endsWith(' [flags]'))
    const [, common = ''] = /\nCOMMON FLAGS\n([\s\S]*?)\s+\(svc\s+help\s+flags\)/.exec(stdout) ?? []
    const own = ['FLAGS', 'TARGET FLAGS'].map((title) =>
      [
        ...(new RegExp(`\\n${title}\\n([\\s\\S]*?)\\n\\n`).exec(stdout)?.[1] ?? '').matchAll(
          /^ {2,6}(-\S.*?)(?: {2}|$)/gm,
        ),
      ].map(([, flag]) => flag),
    )
    const lists = [...own.map((flags) => flags.join(' ')), common.replaceAll(/,?\s+/g, ' ').trim()]
    return [
      ...usage.map((line) => line.slice(4)),
      ...lists.filter((list) => list !== '').map((list) => `  ${list}`),
      '',
    ].join('\n')
  })
  return [
    ['help.txt', (await Promise.all(samples)).join('\n')],
    ['commands.txt', (await Promise.all(entries)).join('')],
  ]
}

async function profileFiles(svc: Svc): Promise<readonly File[]> {
  const profiles = (
    (await json(svc, 'monitors', 'profiles')) as { readonly profiles: readonly { readonly name: string }[] }
  ).profiles
  return profiles.map((profile) => [`profiles/${profile.name}.json`, layout(profile)])
}

/**
 * Every server type in every mode, without a svc.yaml and with the one that sets every kind. `monitors` has each monitor
 * once, with the names of its checks by depth; a plan names it where it has those that its mode is deep enough for, and
 * has it whole otherwise.
 */
async function planFiles(svc: Svc, kinds: readonly Kind[]): Promise<readonly File[]> {
  const documented = new Set(
    kinds.flatMap(({ name, checks }) => checks.map((check) => JSON.stringify([name, check.name, check.doc]))),
  )
  // docs/reference/monitors.md has the sentences of the checks of kinds.
  const brief = ({ MonitorName: _, Kind, Checks, Host, ...monitor }: Monitor, rank = modes.length): object => {
    const checks = Checks.filter(({ Depth }) => rankOf(Depth) <= rank).map(({ Depth, Name, Doc }) => ({
      Depth,
      it: documented.has(JSON.stringify([Kind, Name, Doc])) ? Name : { Name, Doc },
    }))
    const depths = modes.map(
      ([, mode]) => [mode, checks.filter(({ Depth }) => Depth === mode).map(({ it }) => it)] as const,
    )
    return {
      Kind,
      ...monitor,
      ...(Host ? { Host } : {}),
      Checks: Object.fromEntries(depths.filter(([, names]) => names.length > 0)),
    }
  }
  const monitors: Record<string, Monitor> = {}
  const plans = async (...config: readonly string[]): Promise<object> => {
    const types: Record<string, Record<string, readonly unknown[]>> = {}
    for (const [rank, mode] of modes.toReversed()) {
      const listed = (await json(svc, 'monitors', 'list', '-t', 'all', '--mode', mode, ...config)) as readonly Plan[]
      for (const plan of listed) {
        const entries = plan.monitors.map((monitor) => {
          const first = monitors[monitor.MonitorName] ?? monitor
          monitors[monitor.MonitorName] = first
          const isPart = JSON.stringify(brief(first, rank)) === JSON.stringify(brief(monitor))
          return isPart ? monitor.MonitorName : { [monitor.MonitorName]: brief(monitor) }
        })
        types[plan.type] = { [mode]: entries, ...types[plan.type] }
      }
    }
    return types
  }
  const unconfigured = await plans()
  const config = await place(await readText('svc.yaml'))
  const configured = await plans(...config)
  const listed = Object.fromEntries(Object.entries(monitors).map(([name, monitor]) => [name, brief(monitor)]))
  return [
    ['plans.json', layout({ monitors: listed, unconfigured, configured })],
    ['svc.txt', transcript(['monitors', 'validate'], await svc('monitors', 'validate', ...config))],
  ]
}
const modes = [...['Basic', 'Standard', 'Advanced'].entries()]
const rankOf = (depth: string): number => modes.findIndex(([, mode]) => mode === depth)

/** The exit code of a svc.yaml with a mistake. */
const refused = 12

/** Secrets of the files, and what no message may contain. */
const neverShown = /hunter2|defect|undefined|\[object|\*\*\*/

/**
 * The problems that `svc monitors validate` names in each document of mistakes/*.yaml, which is a svc.yaml of its own. The
 * rest of its screen depends on no kind: the excerpt, the sum of the problems and the next step.
 */
async function mistakeFiles(svc: Svc): Promise<readonly File[]> {
  const files: File[] = []
  for (const name of await readdir(join(inputs, 'mistakes'))) {
    if (!name.endsWith('.yaml')) continue
    const screens: string[] = []
    for (const document of (await readText(join('mistakes', name))).split(/^---\n/m)) {
      const [title = ''] = document.split('\n', 1)
      const { stderr, code } = await svc('monitors', 'validate', ...(await place(document)))
      if (code !== refused || neverShown.test(stderr))
        throw new Error(`${name}, ${title}: exit code ${code}: ${stderr}`)
      const problems = [...stderr.matchAll(/^(?:Error:)? *<home>.svc\.yaml:(\d+:\d+): (.*)$/gm)].map(
        ([, ...problem]) => problem,
      )
      // Several problems at one place come in the order of the settings, which says nothing.
      const sorted = problems.toSorted(([place, text = ''], [other, after = '']) =>
        place === other ? Number(text > after) - Number(text < after) : 0,
      )
      screens.push([title, ...sorted.map((problem) => problem.join(': ')), ''].join('\n'))
    }
    files.push([`mistakes/${name.replace(/\.yaml$/, '.txt')}`, screens.join('\n')])
  }
  return files
}

/** A checkout on Windows may have changed the line ends. */
const readText = async (path: string): Promise<string> =>
  (await readFile(join(inputs, path), 'utf8')).replaceAll('\r\n', '\n')

/** Writes a svc.yaml where svc trusts it, and returns the flags that name it. */
async function place(text: string): Promise<readonly string[]> {
  const path = join(home, 'svc.yaml')
  await writeFile(path, text, { mode: 0o600 })
  return ['--config', path]
}

async function json(svc: Svc, ...args: readonly string[]): Promise<unknown> {
  const { stdout, stderr, code } = await svc(...args, '--json')
  if (code !== 0) throw new Error(`svc ${args.join(' ')} exits with ${code}: ${stderr}${stdout}`)
  return JSON.parse(stdout)
}

const transcript = (args: readonly string[], { stdout, stderr, code }: Outcome): string =>
  `$ svc ${args.join(' ')}\n${stdout}${stderr}exit code ${code}\n`

/** JSON with each object that holds no other on one line. */
function layout(value: unknown, indent = ''): string {
  if (!isNested(value)) return JSON.stringify(value)
  const inner = `${indent}  `
  const lines = Array.isArray(value)
    ? value.map((item) => layout(item, inner))
    : Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${layout(item, inner)}`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${open}\n${lines.map((line) => inner + line).join(',\n')}\n${indent}${close}`
}
const isNested = (value: unknown): value is object =>
  isObject(value) &&
  Object.values(value).some((item) => isObject(item) && (!Array.isArray(item) || item.some(isObject)))
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

async function replaceFiles(into: string, files: readonly File[]): Promise<void> {
  await mkdir(into, { recursive: true })
  for (const path of await readdir(into, { recursive: true })) {
    if (/\.(?:json|txt)$/.test(path)) await rm(join(into, path))
  }
  for (const [path, text] of files) {
    const file = join(into, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text.endsWith('\n') ? text : `${text}\n`)
  }
}

/** The program in this process, with an environment of its own; what depends on the machine is masked. */
function capture(folder: string): Svc {
  process.env.TZ = 'UTC'
  const env = { PATH: process.env.PATH, HOME: folder, SVC_HOME: folder, NO_COLOR: '1' }
  const mask = (text: string): string =>
    text
      .replaceAll(folder, '<home>')
      .replaceAll(`/${packageJson().version}`, '/<version>')
      .replaceAll(`svc ${packageJson().version}`, 'svc <version>')
  return async (...args) => {
    const { io, stdout, stderr } = capturedIo({ env })
    await main(io, args)
    return { stdout: mask(stdout()), stderr: mask(stderr()), code: io.exitCode ?? 0 }
  }
}

/** Writes the files below a folder, in place of those that are there. */
export async function writeSnapshot(into: string): Promise<void> {
  home = await realpath(await mkdtemp(join(tmpdir(), 'svc-snapshot-')))
  try {
    const svc = capture(home)
    const kinds = ((await json(svc, 'monitors', 'kinds')) as { readonly kinds: readonly Kind[] }).kinds
    await replaceFiles(into, [
      ...(await helpTexts(svc)),
      ...(await profileFiles(svc)),
      ...(await planFiles(svc, kinds)),
      ...(await mistakeFiles(svc)),
    ])
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  await writeSnapshot(parseArgs({ options: { into: { type: 'string', default: inputs } } }).values.into)
}
