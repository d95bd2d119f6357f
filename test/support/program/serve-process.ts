import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Serving, type ServingOptions, serving } from './serving.ts'
import { svcHome } from './svc.ts'
import { unwatched } from './unwatched.ts'

export type ServeSurroundings = Pick<ServingOptions, 'within'> & { readonly env?: Readonly<Record<string, string>> }

/**
 * Starts `svc serve --only health` of the built program in a home of its own with this svc.yaml, or with `--rehearse` in
 * the flags a rehearsal, under the account `uid` if given, and resolves once it listens. Its disposal kills it.
 */
export async function startServeProcess(
  yaml: string,
  flags: readonly string[] = [],
  uid?: number,
  { env = {}, within }: ServeSurroundings = {},
): Promise<Serving> {
  const { folder, env: own, remove } = svcHome()
  const config = join(folder, 'svc.yaml')
  writeFileSync(config, unwatched(yaml), { mode: 0o600 })
  if (uid !== undefined) for (const path of [folder, config]) chownSync(path, uid, uid)
  const only = flags.includes('--rehearse') ? [] : ['--only', 'health']
  const account = uid === undefined ? {} : { uid, gid: uid }
  const serve = await serving([...only, '--config', config, ...flags], {
    folder,
    env: { ...own, ...env },
    within,
    remove,
    ...account,
  })
  return { ...serve, [Symbol.asyncDispose]: async () => void (await serve.stop('SIGKILL')) }
}
