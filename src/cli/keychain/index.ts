import { spawn } from 'node:child_process'
import { dirname } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { Fault } from '../../core/base/errors.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { machine } from '../io/process.ts'
import type { KeychainAnswer, KeychainProblem, KeychainQuestion, ProblemKind } from './answer.ts'

/** Milliseconds that one call may take (K2). */
export const patience = 3_000
const maxAnswer = 1024 * 1024

/** The file that the child runs: beside this file in the sources, beside the bundle in a build. */
const entry = (): string =>
  fileURLToPath(
    new URL(import.meta.url.endsWith('.ts') ? '../../keychain-child.ts' : './keychain-child.cjs', import.meta.url),
  )

/** The variables passed to the child: those that lead to the keychain. No secrets, and no options that change Node. */
const passed = new Set(
  'APPDATA DBUS_SESSION_BUS_ADDRESS DISPLAY HOME LANG LC_ALL LOCALAPPDATA LOGNAME PATH SYSTEMROOT TEMP TMP TMPDIR USER USERNAME USERPROFILE WAYLAND_DISPLAY WINDIR XAUTHORITY XDG_CURRENT_DESKTOP XDG_RUNTIME_DIR'.split(
    ' ',
  ),
)

/**
 * Queries the keychain in a child process, because a D-Bus socket that never answers would block this one forever. The
 * request goes through a pipe, so that no secret is an argument. Every failure becomes a problem in the reply.
 */
export function askKeychain(
  question: KeychainQuestion,
  env: Readonly<Record<string, string | undefined>>,
  patienceMs = patience,
): Promise<KeychainAnswer> {
  const { promise, resolve } = Promise.withResolvers<KeychainAnswer>()
  const failed = (message: string): void => resolve({ problem: { kind: 'failed', message } })
  const child = spawn(machine.execPath, [entry()], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: Object.fromEntries(Object.entries(env).filter(([name]) => passed.has(name.toUpperCase()))),
    cwd: dirname(machine.execPath),
    windowsHide: true,
    // ctrl-C in the terminal must not interrupt a write: the child has its own timeout of three seconds.
    detached: machine.platform !== 'win32',
  })
  const timer = setTimeout(() => {
    resolve({ problem: { kind: 'timed out', message: `no answer within ${patienceMs / 1_000} s` } })
  }, patienceMs)
  // Listen first: without free descriptors the pipes are missing too, and the error comes later.
  child.once('error', (error) => failed(`its process cannot be started: ${error.message}`))
  const stdin: Writable | null | undefined = child.stdin
  const stdout: Readable | null | undefined = child.stdout
  let output = ''
  stdout?.setEncoding('utf8')
  stdout?.on('data', (text: string) => {
    output += text
    if (output.length > maxAnswer) failed('its answer is too long')
    if (!output.includes('\n')) return
    try {
      resolve(JSON.parse(output) as KeychainAnswer)
    } catch {
      failed('its answer cannot be read')
    }
  })
  child.once('close', (code, signal) => failed(`its process ended without an answer (${signal ?? `exit ${code}`})`))
  // The child may die before it has read the request; `close` reports that.
  stdin?.on('error', () => {})
  stdin?.write(`${JSON.stringify(question)}\n`)
  return promise.finally(() => {
    clearTimeout(timer)
    child.kill('SIGKILL')
    // A child stuck in the kernel must not keep this process alive.
    child.unref()
    stdin?.destroy()
    stdout?.destroy()
  })
}

/** The purpose of a keychain access. `prove` comes before the sign-in asks for the password. */
export type Purpose = 'prove' | 'keep' | 'use' | 'forget'
/** The kind of an entry: the token of a sign-in, or a secret for svc.yaml. */
export type What = 'token' | 'secret'

const waysOut: Record<What, readonly string[]> = {
  token: [
    'CI, containers   SVC_TOKEN=… svc …                 (nothing on disk)',
    'a 0600 file      svc login --insecure-storage      (anyone with your account can read it)',
    'this shell only  svc login -- bash                 (revoked when it ends)',
  ],
  secret: [
    'a daemon         {file: /run/credentials/svc/NAME} in svc.yaml (0600, of its account)',
    'CI, containers   {env: NAME} in svc.yaml',
  ],
}

const whats: Record<ProblemKind, string> = {
  absent: 'this machine has no OS keychain',
  locked: 'the OS keychain is locked',
  denied: 'the OS keychain denied access to svc',
  'too large': 'the token is too large for the OS keychain',
  'timed out': 'the OS keychain does not answer',
  failed: 'the OS keychain does not work',
}
const cures: Record<ProblemKind, string> = {
  absent: 'Nothing answers as a Secret Service (GNOME Keyring, KWallet) or keychain.',
  locked: 'Unlock it (sign in to the desktop, or start its daemon with --unlock), then try again.',
  denied: 'Allow svc in the settings of the keychain, then try again.',
  'too large': 'The tokens of this server are longer than an entry may be.',
  'timed out':
    'A prompt may be waiting on the desktop, or the keychain service hangs: answer the prompt or restart the service.',
  failed: "For details, use the keychain's own tools (Keychain Access, Credential Manager, secret-tool).",
}
const firsts: Record<Purpose, (what: What) => string> = {
  prove: (what) => `no keychain for the ${what}`,
  keep: (what) => `the ${what} could not be stored`,
  use: (what) => `the ${what} cannot be read`,
  forget: (what) => `the ${what} cannot be removed`,
}
/** States that svc did not request the password or the secret. */
const unavailable: Record<What, string> = {
  token: ' (the password was not requested)',
  secret: ' (the secret was not requested)',
}

/** The fault for a keychain problem: what, why, what next (K2). */
export function keychainFault(problem: KeychainProblem, purpose: Purpose, what: What): Fault {
  const spared = purpose === 'prove' ? unavailable[what] : ''
  const details = problem.message === '' ? [] : [`Details: ${problem.message}`]
  return new Fault('NoKeychain', `${firsts[purpose](what)}: ${whats[problem.kind]}${spared}`, {
    hints: [cures[problem.kind], ...details, ...waysOut[what]],
  })
}

/** The fault for Linux without a session bus. Nothing is tried, because that would start a bus that nobody ends. */
export const noSessionBus = (purpose: Purpose, what: What): Fault =>
  new Fault('NoKeychain', `${firsts[purpose](what)}: ${whats.absent}${purpose === 'prove' ? unavailable[what] : ''}`, {
    hints: [
      'Linux without a D-Bus session (DBUS_SESSION_BUS_ADDRESS is not set), no Secret Service.',
      ...waysOut[what],
    ],
  })

/** Characters that an entry of the Windows Credential Manager can hold in any case (K1). */
const maxOnWindows = 1_200

export type Keychain = {
  readonly read: () => Promise<string | undefined>
  /** The entry is read back before this resolves. */
  readonly write: (secret: string) => Promise<void>
  /** Returns whether there was an entry. */
  readonly remove: () => Promise<boolean>
  /** Writes, reads and removes a test entry. */
  readonly prove: () => Promise<void>
}

/**
 * One entry of the OS keychain: the token of a user at a server, or a secret by its name. Every method rejects with
 * `Fault` NoKeychain, worded for what is stored.
 */
export function keychainEntry(server: string, user: string, env: ProcessEnvironment, what: What = 'token'): Keychain {
  // No blank here: GNOME Keyring finds no entry whose service has one.
  const place = { service: `svc:${server}`, user }
  const maxLength = machine.platform === 'win32' ? maxOnWindows : undefined
  const ask = async (
    question: Pick<KeychainQuestion, 'does' | 'secret'>,
    purpose: Purpose,
  ): Promise<KeychainAnswer> => {
    if (machine.platform === 'linux' && !env['DBUS_SESSION_BUS_ADDRESS']) throw noSessionBus(purpose, what)
    const answer = await askKeychain({ ...place, ...question, maxLength }, env)
    if ('problem' in answer) throw keychainFault(answer.problem, purpose, what)
    return answer
  }
  return {
    read: async () => {
      const answer = await ask({ does: 'read' }, 'use')
      return 'secret' in answer && answer.secret !== null ? answer.secret : undefined
    },
    write: async (secret) => void (await ask({ does: 'write', secret }, 'keep')),
    remove: async () => {
      const answer = await ask({ does: 'remove' }, 'forget')
      return 'removed' in answer && answer.removed
    },
    prove: askProbe,
  }

  async function askProbe(): Promise<void> {
    if (machine.platform === 'linux' && !env['DBUS_SESSION_BUS_ADDRESS']) throw noSessionBus('prove', what)
    const answer = await askKeychain({ does: 'prove', service: 'svc:probe', user: 'probe' }, env)
    if ('problem' in answer) throw keychainFault(answer.problem, 'prove', what)
  }
}
