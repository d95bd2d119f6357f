import { posix, win32 } from 'node:path'
import { Fault } from '../errors.ts'

export type WhereOptions = {
  /** `--config`. */
  readonly path?: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
  /** The user's home folder. */
  readonly home: string
  /** The system's folder, when not that of the platform. */
  readonly systemFolder?: string | undefined
}

export type Candidate = {
  readonly path: string
  /** What named it: with the first two, a missing file is a fault. */
  readonly from: '--config' | 'SVC_CONFIG' | 'user' | 'system'
}

const fileName = 'svc.yaml'

/**
 * Where svc.yaml may be, the first that exists wins. The working directory is never among them: a
 * cloned repository must not choose what runs or where secrets go. Throws Fault `Usage` for a flag
 * or variable that is set but empty: a missing CI secret must not pass for "not given".
 */
export function candidates(options: WhereOptions): readonly Candidate[] {
  const { env, platform, home } = options
  const paths = platform === 'win32' ? win32 : posix
  if (options.path !== undefined) return [{ path: paths.resolve(given(options.path, '--config')), from: '--config' }]
  const named = env['SVC_CONFIG']
  if (named !== undefined) return [{ path: paths.resolve(given(named, 'SVC_CONFIG')), from: 'SVC_CONFIG' }]
  const svcHome = env['SVC_HOME']
  const user = svcHome === undefined ? userFolder(env, platform, home) : paths.resolve(given(svcHome, 'SVC_HOME'))
  return [
    { path: paths.join(user, fileName), from: 'user' },
    { path: systemConfig(options), from: 'system' },
  ]
}

/** The svc.yaml of the whole machine. */
export function systemConfig({ env, platform, systemFolder }: WhereOptions): string {
  const paths = platform === 'win32' ? win32 : posix
  const usual = platform === 'win32' ? win32.join(variable(env, 'ProgramData') ?? 'C:\\ProgramData', 'svc') : '/etc/svc'
  return paths.join(systemFolder ?? usual, fileName)
}

function userFolder(env: WhereOptions['env'], platform: NodeJS.Platform, home: string): string {
  if (platform === 'win32') return win32.join(variable(env, 'APPDATA') ?? win32.join(home, 'AppData', 'Roaming'), 'svc')
  if (platform === 'darwin') return posix.join(home, 'Library', 'Application Support', 'svc')
  const xdg = env['XDG_CONFIG_HOME']
  // The XDG specification: an empty or relative one is ignored.
  return posix.join(xdg !== undefined && posix.isAbsolute(xdg) ? xdg : posix.join(home, '.config'), 'svc')
}

function given(value: string, name: string): string {
  if (value.trim() !== '') return value
  const hint = name.startsWith('--') ? `Give ${name} a path, or leave it out.` : `Give ${name} a path, or unset it.`
  throw new Fault('Usage', `${name} is set but empty`, { hints: [hint] })
}

/** A variable whose name Windows does not tell apart by letter case; a copy of the environment does. */
function variable(env: WhereOptions['env'], name: string): string | undefined {
  const key = Object.keys(env).find((candidate) => candidate.toLowerCase() === name.toLowerCase())
  return (key === undefined ? undefined : env[key]) || undefined
}
