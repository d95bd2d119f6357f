import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Serving, serving } from './serving.ts'
import { entry, type Home } from './svc.ts'
import { unwatched } from './unwatched.ts'

export const admin = { userName: 'Ann', password: 'violet-harbour-42' } as const

/**
 * Starts `svc serve` of this home with this svc.yaml, which runs nothing by itself unless it says how often, and with a
 * store in the home where Ann is Admin, at a free port or at `port`, and resolves once it listens.
 */
export async function startServe(
  home: Home,
  yaml: string,
  flags: readonly string[] = [],
  port?: number,
): Promise<Serving> {
  const host = flags.includes('--host') ? (flags[flags.indexOf('--host') + 1] ?? '') : '127.0.0.1'
  const folder = join(home.folder, 'server')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content, { mode: 0o600 })
    return join(folder, name)
  }
  const args = [
    ...['--store', join(folder, 'svc.db')],
    ...['--config', file('svc.yaml', home.program === entry ? unwatched(yaml) : yaml)],
    ...['--bootstrap-admin', admin.userName, '--bootstrap-password-file', file('password', admin.password)],
    ...flags,
  ]
  const serve = await serving(args, { folder, port, program: home.program, env: home.env })
  return { ...serve, url: `http://${host}:${serve.port}` }
}
