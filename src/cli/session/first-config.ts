import { existsSync } from 'node:fs'
import { candidates } from '../../core/config/index.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { homeOf, machine } from '../io/process.ts'

/**
 * Hints for somebody who has configured nothing: how to get a first svc.yaml. `origin` is the file that svc read, if
 * there is one. The last line is the next step. `svc init` never overwrites a file, so it is proposed only where it can write.
 */
export function waysToConfigure(origin: string | undefined, env: ProcessEnvironment): readonly string[] {
  const [own, system] = candidates({ env, platform: machine.platform, home: homeOf(env) })
  if (origin === undefined) return ['svc init   writes a svc.yaml for this machine']
  const isSystem = own !== undefined && origin === system?.path && !existsSync(own.path)
  if (!isSystem) return ['svc monitors discover   proposes monitors for this file']
  return [
    `svc monitors discover   proposes monitors for ${origin} (the service)`,
    `svc init                writes ${own.path} (your account)`,
  ]
}
