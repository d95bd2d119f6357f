/**
 * The parts that Icinga 2 and Nagios Core have in common: both run a plugin for each output, which prints it with the
 * exit code of its first word.
 */
import { spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { summary } from './common.mjs'

/** The folder with the unpacked packages. */
const [unpacked = '', outputs = ''] = process.argv.slice(2)
export const inPackages = (path) => join(unpacked, path)
export const env = { ...process.env, LD_LIBRARY_PATH: inPackages('usr/lib/x86_64-linux-gnu') }
export const names = readdirSync(outputs).sort()

/** The time within which a program must have read all outputs; it only ends a hang. */
const deadlineMs = 120_000

/** Starts a program in a new folder, and gives `answer` the path of a file until it says something. */
export async function withProgram(configure, answer) {
  const home = mkdtempSync(join(tmpdir(), 'svc-monitoring-'))
  for (const folder of ['data', 'log', 'run', 'cache', 'spool']) mkdirSync(join(home, folder))
  const plugin = join(home, 'plugin')
  writeFileSync(
    plugin,
    `#!/bin/sh
cat '${outputs}'/"$1"
read -r _ state _ <'${outputs}'/"$1"
case $state in OK) exit 0 ;; WARNING) exit 1 ;; CRITICAL) exit 2 ;; *) exit 3 ;; esac
`,
  )
  chmodSync(plugin, 0o755)
  const { command, file } = configure(home, plugin)
  const [program, ...args] = command
  // A group of its own: both programs start further ones.
  const child = spawn(program, args, { env, detached: true, stdio: 'ignore' })
  try {
    const until = Date.now() + deadlineMs
    while (Date.now() < until && child.exitCode === null) {
      const found = existsSync(file) ? answer(readFileSync(file, 'utf8')) : undefined
      if (found) return found
      await setTimeout(200)
    }
    throw new Error(child.exitCode === null ? 'not all outputs were read' : `exit ${child.exitCode}`)
  } finally {
    // Nagios Core ends its workers, Icinga 2 may wait for its checks.
    child.kill()
    for (let left = 25; left > 0 && child.exitCode === null && child.signalCode === null; left -= 1)
      await setTimeout(200)
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      // All have ended.
    }
    rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
}

/** What a program shows of one output. `data`: the figures, with their largest value. */
export function shown(name, { state, line, more, data }) {
  const [, ...written] = readFileSync(join(outputs, name), 'utf8').trimEnd().split('\n')
  if (more !== written.join('\n')) return { error: `shows ${JSON.stringify(more)} below the line` }
  const figures = Object.fromEntries(data.map(({ label, value }) => [label, value]))
  const total = (end) => data.filter(({ label }) => new RegExp(`^(\\w+ )?${end}$`).test(label))
  const sum = (numbers) => numbers.reduce((all, number) => all + number, 0)
  const of = (end) => sum(total(end).map(({ value }) => value))
  const tests = sum(total('failed').map(({ max }) => max))
  return { ...summary(tests, of('failed'), of('not_checked'), [], figures), state, line }
}
