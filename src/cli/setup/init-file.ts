import { once } from 'node:events'
import { existsSync, mkdtempSync, rmdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Fault } from '../../core/base/errors.ts'
import { localWay, makeFolder, untrustedPlaces } from '../../core/base/own-files.ts'
import type { Config } from '../../core/config/index.ts'
import { variable } from '../command/flags.ts'
import { spawnOn } from '../io/command-child.ts'
import type { Io, ProcessEnvironment } from '../io/io.ts'
import { machine, packageRoot } from '../io/process.ts'
import { configuration } from '../session/session.ts'
import { settingsFolder, trouble, writePrivate } from '../settings/private-file.ts'

/**
 * A svc.yaml to begin with where discovery recognizes no service. It is valid, and its only monitor fails until
 * somebody edits it: a file that checks nothing must not turn a gate green.
 */
export const starterFile = (head: readonly string[]): string => `${head.map((line) => `# ${line}\n`).join('')}types:
  # The type decides the name under which the answer appears: App, Sql, Ftp, Batch, Identity, Mongo and others.
  App:
    # Edit this first: the URL of a page of yours. Until then this monitor fails, because .invalid never exists.
    - kind: http
      name: web
      url: https://change-me.invalid/

  # A database, with a password that stands in a file of mode 0600 and not here:
  # Sql:
  #   - kind: postgres
  #     name: orders
  #     url: postgres://monitor@db1.example.com/orders
  #     password: {file: /run/credentials/svc/orders-db}

  # A port that must accept connections:
  # Batch:
  #   - kind: tcp
  #     name: queue
  #     host: queue.example.com
  #     port: 5672

# Every kind and its settings: svc monitors kinds
# After every change: svc monitors validate && svc health
`

const initCommands = ['svc init', 'svc monitors discover'] as const
/**
 * Where `svc init` writes: the file that `--config` or `SVC_CONFIG` names, or the one in the user's folder. Throws
 * `Fault` Local when it exists or cannot be written.
 */
export function newConfigPath(
  configFlag: string | undefined,
  env: ProcessEnvironment,
  [command, prints]: readonly [string, string] = initCommands,
): string {
  const path = resolve(configFlag ?? variable(env, 'SVC_CONFIG') ?? join(settingsFolder(env), 'svc.yaml'))
  if (!existsSync(path)) {
    demandWritable(path)
    return path
  }
  throw new Fault('Local', `${path} exists, and ${command} never overwrites a file`, {
    hints: [`Print a proposal beside it: ${prints}`, `Or move it away first: mv '${path}' '${path}.old'`],
  })
}

/** The line by which editors find the schema of svc.yaml, without the comment sign. */
export const schemaLine = (): string =>
  `yaml-language-server: $schema=${join(packageRoot(), 'dist', 'schemas', 'svc.schema.json')}`

/** Asks whether to write the file. Rejects with `Fault` Interrupted at ctrl-C. */
export async function confirmed(path: string, io: Io, signal: AbortSignal): Promise<boolean> {
  const { askLine } = await import('../command/prompt.ts')
  const answer = await askLine(`Write ${path}? (y/n)`, io, signal)
  return /^y(?:es)?$/i.test(answer.trim())
}

/** Writes the file, which must not exist, and reads it as every command does. */
export async function writeConfig(path: string, file: string, env: ProcessEnvironment): Promise<Config> {
  makeFolder(dirname(path))
  writePrivate(path, file)
  return await configuration({ config: path }, env)
}

/** Runs `svc health` on the new file, on this terminal. Its result is shown, and is not the result of `svc init`. */
export async function runHealth(path: string, isNamed: boolean, io: Io): Promise<void> {
  const args = ['health', '--local', ...(isNamed ? ['--config', path] : [])]
  const child = spawnOn(io, [...io.program, ...args], io.env, { stdin: 'ignore' })
  // A health check that cannot be started says so itself; the file is written either way.
  await Promise.race([once(child, 'close'), once(child, 'error')]).catch(() => {})
}

/** The commands to run next, in words that can be pasted. */
export function nextCommands(
  path: string,
  { isStarter, isNamed }: { readonly isStarter: boolean; readonly isNamed: boolean },
): string {
  const config = isNamed ? ` --config '${path}'` : ''
  const edit: readonly (readonly [string, string])[] = isStarter
    ? [[`"\${EDITOR:-vi}" '${path}'`, 'opens the file to edit the monitor']]
    : []
  const steps = [
    ...edit,
    [`svc monitors validate${config}`, 'checks the file, after every change'],
    [`svc health${config}`, 'checks once more'],
    ['svc monitors kinds', 'lists what else svc can check'],
    [`svc serve${config}`, 'runs the monitors every minute: status page, /metrics'],
  ] as const
  const width = Math.max(...steps.map(([command]) => command.length))
  return `\nNext:\n${steps.map(([command, gives]) => `  ${command.padEnd(width)}   ${gives}`).join('\n')}`
}

/**
 * Throws `Fault` Local for a svc.yaml that cannot be written, or that svc would not trust: before anything connects to
 * the servers of this machine, and before a person answers a question. Leaves nothing behind.
 */
export function demandWritable(path: string): void {
  const folder = dirname(path)
  let existing = folder
  while (!existsSync(existing) && existing !== dirname(existing)) existing = dirname(existing)
  try {
    // Only an attempt shows what modes, read-only file systems and quotas allow.
    rmdirSync(mkdtempSync(join(existing, '.svc-')))
  } catch (error) {
    throw new Fault('Local', trouble(path, 'written', error).message, {
      hints: [`Make ${existing} a folder that this account can write, or name another file: --config FILE`],
      cause: error,
    })
  }
  const uid = machine.accountId()
  if (existing !== folder || uid === undefined) return
  const { places, end = folder } = localWay(resolve(folder))
  const future = { path: join(end, 'svc.yaml'), uid, gid: 0, mode: 0o600, isFolder: false, isReadOnly: false }
  const [untrusted] = untrustedPlaces([...places, future], { uid }).filter((place) => place.path === end)
  if (!untrusted) return
  throw new Fault('Local', `${untrusted.reason}, so svc would not trust a svc.yaml in it`, {
    hints: [untrusted.cure, 'Or name a file in another folder: --config FILE'],
  })
}

/** Where a proposed svc.yaml is written. Throws `Fault` Local when there is already one, or it cannot be written. */
export function proposedPath(env: ProcessEnvironment): string {
  const path = join(settingsFolder(env), 'svc.yaml')
  if (existsSync(path)) {
    throw new Fault('Local', `${path} already exists and is not overwritten`, {
      hints: ['To print the proposal: svc monitors discover', `To keep a copy: mv ${path} ${path}.old`],
    })
  }
  demandWritable(path)
  return path
}

/** Writes a proposed svc.yaml where svc finds it, and returns its path. */
export function writeProposed(file: string, env: ProcessEnvironment): string {
  const path = proposedPath(env)
  makeFolder(dirname(path))
  writePrivate(path, file)
  return path
}
