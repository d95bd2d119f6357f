import { spawn } from 'node:child_process'
import { dirname } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Answer, Question } from './question.ts'

/** Milliseconds that one call may take (K2). */
export const patience = 3_000
const largestAnswer = 1024 * 1024

/** What the child runs: from source the file beside this one, in a bundle a file beside the bundle. */
const entry = (): string =>
  fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? './child-main.ts' : './keychain-child.cjs', import.meta.url))

/** All that the child gets of the environment: what leads to the keychain, no secret, no option that changes Node. */
const passed = new Set(
  'APPDATA DBUS_SESSION_BUS_ADDRESS DISPLAY HOME LANG LC_ALL LOCALAPPDATA LOGNAME PATH SYSTEMROOT TEMP TMP TMPDIR USER USERNAME USERPROFILE WAYLAND_DISPLAY WINDIR XAUTHORITY XDG_CURRENT_DESKTOP XDG_RUNTIME_DIR'.split(
    ' ',
  ),
)

/**
 * Asks the keychain in a process of its own, because a D-Bus socket that never answers would block this one for ever.
 * The question goes by a pipe: no secret is in an argument. Every failure is a problem of the answer.
 */
export function askKeychain(
  question: Question,
  env: Readonly<Record<string, string | undefined>>,
  patienceMs = patience,
): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>()
  const failed = (message: string): void => resolve({ problem: { kind: 'failed', message } })
  const child = spawn(process.execPath, [entry()], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: Object.fromEntries(Object.entries(env).filter(([name]) => passed.has(name.toUpperCase()))),
    cwd: dirname(process.execPath),
    windowsHide: true,
    // ctrl-C in the terminal must not cut a write in two: the child has its own three seconds.
    detached: process.platform !== 'win32',
  })
  const timer = setTimeout(() => {
    resolve({ problem: { kind: 'timed out', message: `no answer within ${patienceMs / 1_000} s` } })
  }, patienceMs)
  // First of all: where there are no descriptors left there are no pipes either, and the error comes later.
  child.once('error', (error) => failed(`its process cannot be started: ${error.message}`))
  const stdin: Writable | null | undefined = child.stdin
  const stdout: Readable | null | undefined = child.stdout
  let said = ''
  stdout?.setEncoding('utf8')
  stdout?.on('data', (text: string) => {
    said += text
    if (said.length > largestAnswer) failed('its answer is too long')
    if (!said.includes('\n')) return
    try {
      resolve(JSON.parse(said) as Answer)
    } catch {
      failed('its answer cannot be read')
    }
  })
  child.once('close', (code, signal) => failed(`its process ended without an answer (${signal ?? `exit ${code}`})`))
  // A child that dies before it has read the question: `close` says so.
  stdin?.on('error', () => {})
  stdin?.write(`${JSON.stringify(question)}\n`)
  return promise.finally(() => {
    clearTimeout(timer)
    child.kill('SIGKILL')
    // One that is stuck in the kernel must not keep this process alive.
    child.unref()
    stdin?.destroy()
    stdout?.destroy()
  })
}
