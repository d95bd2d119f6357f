import { homedir } from 'node:os'
import { posix, win32 } from 'node:path'
import { Fault } from '../core/errors.ts'
import { type Environment, variable } from './variable.ts'

/** The folder of an account's settings: `SVC_HOME`, else the platform's. svc.yaml is looked for in the same one. */
export function settingsFolder(env: Environment, platform: NodeJS.Platform = process.platform): string {
  const paths = platform === 'win32' ? win32 : posix
  const given = variable(env, 'SVC_HOME')
  if (given !== undefined) {
    if (paths.isAbsolute(given)) return given
    throw new Fault('Local', 'SVC_HOME must be the whole path of a folder', {
      hints: ['A relative one would name another folder everywhere: begin it at the root.'],
    })
  }
  const home = homedir()
  if (platform === 'win32') return win32.join(env['APPDATA'] || win32.join(home, 'AppData', 'Roaming'), 'svc')
  if (platform === 'darwin') return posix.join(home, 'Library', 'Application Support', 'svc')
  const xdg = env['XDG_CONFIG_HOME']
  // The XDG specification: an empty or relative one is ignored.
  return posix.join(xdg !== undefined && posix.isAbsolute(xdg) ? xdg : posix.join(home, '.config'), 'svc')
}
