import { Fault } from '../../core/errors.ts'
import type { Problem, ProblemKind } from './question.ts'

/** What the keychain was wanted for: sign-in proves it before it asks for the password. */
export type Purpose = 'prove' | 'keep' | 'use' | 'forget'
/** What is kept: the token of a sign-in, or a secret of svc.yaml. */
export type What = 'token' | 'secret'

const waysOut: Record<What, readonly string[]> = {
  token: [
    'CI, containers   SVC_TOKEN=… svc …                 (nothing on disk)',
    'a 0600 file      svc login --insecure-storage      (anyone with your account can read it)',
    'this shell only  svc login --server URL -- bash    (revoked when it ends)',
  ],
  secret: [
    'a daemon         {file: /run/credentials/svc/NAME} in svc.yaml (0600, of its account)',
    'CI, containers   {env: NAME} in svc.yaml',
  ],
}

const whats: Record<ProblemKind, string> = {
  absent: 'there is no OS keychain here',
  locked: 'the OS keychain is locked',
  denied: 'the OS keychain refuses svc',
  'too large': 'the token is too large for the OS keychain',
  'timed out': 'the OS keychain does not answer',
  failed: 'the OS keychain does not work',
}
const cures: Record<ProblemKind, string> = {
  absent: 'Nothing answers as a Secret Service (GNOME Keyring, KWallet) or keychain.',
  locked: 'Unlock it (sign in to the desktop, or start its daemon with --unlock), then try again.',
  denied: 'Allow svc in the settings of the keychain, then try again.',
  'too large': 'The server gives tokens that are longer than an entry may be.',
  'timed out': 'A prompt may be waiting on the desktop, or its service hangs: answer or restart it.',
  failed: 'Its own tools may say more (Keychain Access, Credential Manager, secret-tool).',
}
const firsts: Record<Purpose, (what: What) => string> = {
  prove: (what) => `no place to keep a ${what}`,
  keep: (what) => `the ${what} could not be kept`,
  use: (what) => `the ${what} cannot be read`,
  forget: (what) => `the ${what} cannot be removed`,
}
/** Whoever was about to type something is told that nothing was asked. */
const notAsked: Record<What, string> = {
  token: ' (you were not asked for the password)',
  secret: ' (you were not asked for it)',
}

/** What, why, what next (K2). */
export function keychainFault(problem: Problem, purpose: Purpose, what: What): Fault {
  const spared = purpose === 'prove' ? notAsked[what] : ''
  const said = problem.message === '' ? [] : [`It says: ${problem.message}`]
  return new Fault('NoKeychain', `${firsts[purpose](what)}: ${whats[problem.kind]}${spared}`, {
    hints: [cures[problem.kind], ...said, ...waysOut[what]],
  })
}

/** Linux without a session bus: nothing is tried, because trying would start a bus that nobody ends. */
export const noSessionBus = (purpose: Purpose, what: What): Fault =>
  new Fault('NoKeychain', `${firsts[purpose](what)}: ${whats.absent}${purpose === 'prove' ? notAsked[what] : ''}`, {
    hints: [
      'Linux without a D-Bus session (DBUS_SESSION_BUS_ADDRESS is not set), no Secret Service.',
      ...waysOut[what],
    ],
  })
