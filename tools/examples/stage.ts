import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { ExecutionMode, ServerType } from '../../src/core/protocol/index.ts'
import { type Replacement, stable } from './stable.ts'

const entry = new URL('../../bin/run.js', import.meta.url).pathname
const columns = 100
/** Milliseconds: an Advanced run ends after 45 s by itself. */
const patience = 60_000
/** The folder on the pages in place of that of this run: as long as it, so that lines break alike. */
const shownFolder = '/srv/operations'

export type Red = {
  /** The damage, and that the messages are right about it: sentences. */
  readonly happened: string
  /** Patterns that the screen must match, or the page would not be true. */
  readonly says: readonly RegExp[]
  /** Another svc.yaml for this run, written whole. */
  readonly yaml?: string
  readonly mode?: ExecutionMode
  /** 0 for a warning that is worth a page. */
  readonly code?: number
}

/** Where one type is shown: a home of its own, the real program, and the page that comes of it. */
export type Stage = {
  /** A folder of this run; `/srv/operations` on the page. */
  readonly folder: string
  /** Writes a file below it, with its folders; the real path. */
  readonly file: (name: string, text: string) => string
  /** A port of this run and the one that the page shows: of as many digits. */
  readonly port: (real: number, shown: number) => void
  readonly replace: (found: string | RegExp, shown: string) => void
  readonly env: Record<string, string>
  /** Runs svc with this home, for what a page does not show. */
  readonly svc: (...args: readonly string[]) => Promise<string>
  /** Text of the page itself. */
  readonly text: (markdown: string) => void
  /** Writes svc.yaml, and shows it. */
  readonly yaml: (text: string) => Promise<void>
  /** `svc monitors list`. */
  readonly list: () => Promise<void>
  /** A run in Advanced in which all is well. */
  readonly green: () => Promise<void>
  readonly red: (title: string, red: Red) => Promise<void>
  readonly page: () => string
  readonly end: () => void
}

/** Names of machines in the yaml are loopback addresses, for that is where the peers are. */
export function stage(type: ServerType): Stage {
  const folder = mkdtempSync(join(tmpdir(), 'svc-'))
  const replacements: Replacement[] = [[folder, shownFolder]]
  const parts: string[] = []
  const env: Record<string, string> = {
    PATH: process.env.PATH ?? '',
    HOME: folder,
    SVC_HOME: folder,
    NO_COLOR: '1',
    TERM: 'xterm-256color',
    LANG: 'C.UTF-8',
    NODE_DISABLE_COMPILE_CACHE: '1',
  }
  const stabilize = (text: string): string => stable(text, replacements)
  const file = (name: string, text: string): string => {
    const path = join(folder, name)
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  const screen = async (args: readonly string[]): Promise<{ code: number | null; output: string }> => {
    const { code, output } = await onTerminal(args, folder, env)
    parts.push(`\`\`\`text\n$ svc ${args.join(' ')}\n${stabilize(output).trimEnd()}\n\`\`\``)
    return { code, output }
  }
  const run = async (mode: ExecutionMode, ...more: readonly string[]) => {
    const ran = await screen(['health', '-t', type, '-m', mode, ...more])
    return { ...ran, flat: flat(ran.output) }
  }
  const place = async (text: string): Promise<void> => {
    file('svc.yaml', text)
    // What a page shows is never what svc refuses.
    await must(['monitors', 'validate'], env)
    parts.push(`\`\`\`yaml\n${stabilize(text).trimEnd()}\n\`\`\``)
  }
  return {
    folder,
    file,
    port: (real, as) => void replacements.push([new RegExp(`\\b${real}\\b`, 'g'), String(as)]),
    replace: (text, as) => void replacements.push([text, as]),
    env,
    svc: (...args) => must(args, env),
    text: (markdown) => void parts.push(markdown),
    yaml: async (text) => {
      parts.push('## svc.yaml')
      await place(text)
    },
    list: async () => {
      parts.push('## What would run')
      const { code } = await screen(['monitors', 'list', '--type', type, '--mode', 'Advanced', '-v'])
      if (code !== 0) throw new Error(`${type}: svc monitors list ended with ${code}\n${parts.at(-1)}`)
    },
    green: async () => {
      parts.push('## All is well')
      const { code, flat } = await run('Advanced', '-v')
      if (code !== 0 || !flat.includes('✓ HEALTHY')) throw new Error(`${type}: not all is well\n${parts.at(-1)}`)
    },
    red: async (title, { happened, says, yaml, mode = 'Advanced', code = 3 }) => {
      parts.push(`## ${title}`, `**What happened.** ${happened}`)
      const before = readFileSync(join(folder, 'svc.yaml'), 'utf8')
      if (yaml !== undefined) await place(yaml)
      const ran = await run(mode)
      const unsaid = says.filter((one) => !one.test(ran.flat))
      if (ran.code !== code || unsaid.length > 0) {
        throw new Error(`${type}, ${title}: ended with ${ran.code}, did not say ${unsaid.join(', ')}\n${parts.at(-1)}`)
      }
      file('svc.yaml', before)
    },
    page: () => `${parts.join('\n\n')}\n`,
    end: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** A screen as one line, its messages whole again: for what must stand in it, wherever its lines were broken. */
const flat = (text: string): string => text.replace(/\s+/g, ' ')

/** Runs svc on a terminal of its own; what it wrote to it. Its progress line goes elsewhere. */
async function onTerminal(
  args: readonly string[],
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const errors = join(folder, 'stderr')
  const line = `stty cols ${columns} rows 60; exec ${[process.execPath, entry, ...args].join(' ')} 2>${errors}`
  const ended = await ran('script', ['-qec', line, '/dev/null'], { ...env, SHELL: '/bin/sh' })
  const complaints = readFileSync(errors, 'utf8')
  if (complaints !== '') throw new Error(`svc ${args.join(' ')}: ${complaints}${ended.output}`)
  return ended
}

async function must(args: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
  const { code, output } = await ran(process.execPath, [entry, ...args], env)
  if (code !== 0) throw new Error(`svc ${args.join(' ')} ended with ${code}: ${output}`)
  return output
}

async function ran(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
    })
  }
  const timer = setTimeout(() => child.kill('SIGKILL'), patience)
  const [code] = (await once(child, 'close')) as [number | null]
  clearTimeout(timer)
  return { code, output: output.replaceAll('\r\n', '\n') }
}
