import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { farMs } from '../suite/until.ts'

const programs = ['dbus-run-session', 'gnome-keyring-daemon', 'secret-tool']
const absent = programs.filter((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0)
/** For `suiteWith`. */
export const keyringMissing = absent.length > 0 ? `not installed: ${absent.join(', ')}` : undefined

export type Session = {
  /** The environment that leads a process to it. */
  readonly env: Readonly<Record<string, string>>
  /** The secret that secret-tool, a program of others, finds there; undefined for none. */
  readonly lookup: (service: string, username: string) => string | undefined
  readonly close: () => Promise<void>
}

/** A home folder whose keyrings outlive a session. */
export function keyringHome(): { readonly home: string; readonly remove: () => void } {
  const home = mkdtempSync(join(tmpdir(), 'svc-keyring-'))
  return { home, remove: () => rmSync(home, { recursive: true, force: true }) }
}

const starts = {
  // A real desktop unlocks the keyring with the password of the sign-in; an empty one would leave it unencrypted.
  unlocked: 'printf %s "a keyring password" | gnome-keyring-daemon --unlock --components=secrets',
  locked: 'gnome-keyring-daemon --start --components=secrets',
}

/** A real D-Bus session with a real GNOME Keyring in it. */
export async function keyringSession(home: string, state: keyof typeof starts): Promise<Session> {
  const script = `${starts[state]} >/dev/null 2>&1; echo "bus=$DBUS_SESSION_BUS_ADDRESS"; exec cat >/dev/null`
  const child = spawn('dbus-run-session', ['--', 'sh', '-c', script], {
    env: { PATH: process.env.PATH, HOME: home, XDG_RUNTIME_DIR: home },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const address = await new Promise<string>((resolve, reject) => {
    let text = ''
    child.stdout.on('data', (chunk) => {
      text += String(chunk)
      const [, match] = /^bus=(.+)$/m.exec(text) ?? []
      if (match !== undefined) resolve(match)
    })
    child.once('close', () => reject(new Error(`dbus-run-session ended: ${text}`)))
  })
  const env = { PATH: process.env.PATH ?? '', HOME: home, XDG_RUNTIME_DIR: home, DBUS_SESSION_BUS_ADDRESS: address }
  return {
    env,
    lookup: (service, username) => {
      const args = ['lookup', 'service', service, 'username', username]
      const { status, stdout } = spawnSync('secret-tool', args, { env, encoding: 'utf8', timeout: farMs })
      return status === 0 ? stdout : undefined
    },
    close: async () => {
      child.stdin.end()
      await ended
    },
  }
}
