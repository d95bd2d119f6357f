import { spawn } from 'node:child_process'
import { delimiter } from 'node:path'
import type { ProcessEnvironment } from '../../io/io.ts'
import { machine } from '../../io/process.ts'

type Line = readonly [program: string, ...args: readonly string[]]

const isSet = (env: ProcessEnvironment, name: string): boolean => (env[name] ?? '') !== ''

/** Whether a browser on this machine can be expected to open in front of the user. */
export function hasBrowser(env: ProcessEnvironment, platform: NodeJS.Platform): boolean {
  if (isSet(env, 'BROWSER')) return true
  if (['SSH_CONNECTION', 'SSH_CLIENT', 'SSH_TTY'].some((name) => isSet(env, name))) return false
  return platform === 'darwin' || platform === 'win32' || isSet(env, 'DISPLAY') || isSet(env, 'WAYLAND_DISPLAY')
}

/**
 * The command lines that open an address, in the order to try: those of BROWSER (`firefox %s:lynx`), else that of the
 * platform. They run without a shell.
 */
export function browserLines(url: string, env: ProcessEnvironment, platform: NodeJS.Platform): readonly Line[] {
  const own = (env['BROWSER'] ?? '').split(delimiter).flatMap((entry): readonly Line[] => {
    const [program, ...args] = entry.split(' ').filter((word) => word !== '')
    if (program === undefined) return []
    const filled = args.map((word) => word.replaceAll('%s', () => url))
    return [args.some((word) => word.includes('%s')) ? [program, ...filled] : [program, ...args, url]]
  })
  if (own.length > 0) return own
  if (platform === 'darwin') return [['open', url]]
  if (platform === 'win32') return [['rundll32', 'url.dll,FileProtocolHandler', url]]
  return [['xdg-open', url]]
}

/** Milliseconds after which a program that still runs counts as a browser. */
const settledMs = 1_500

/** Opens an http or https address in a browser. Returns whether one started. */
export async function openBrowser(
  url: URL,
  env: ProcessEnvironment,
  platform: NodeJS.Platform = machine.platform,
): Promise<boolean> {
  for (const line of browserLines(url.href, env, platform)) if (await starts(line, env)) return true
  return false
}

function starts([program, ...args]: Line, env: ProcessEnvironment): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  // Its own process group: ctrl-C in the terminal must not end the browser.
  const child = spawn(program, args, { env: { ...env }, stdio: 'ignore', detached: true, shell: false })
  const timer = setTimeout(() => resolve(true), settledMs)
  child.once('error', () => resolve(false))
  child.once('exit', (code) => resolve(code === 0))
  child.unref()
  return promise.finally(() => clearTimeout(timer))
}
