import { homedir, platform } from 'node:os'
import type { Interfaces } from '@oclif/core'
import { Config } from '@oclif/core/config'
import { packageJson, packageRoot } from './version.ts'

/**
 * oclif's Config without its look around the disk: a known command needs no plugins, manifest or
 * user settings of oclif's. Help goes through the full Config instead.
 */
export class StaticConfig extends Config {
  constructor() {
    const pjson = packageJson() as unknown as Interfaces.PJSON
    super({ root: packageRoot(), pjson })
    this.pjson = pjson
    this.root = packageRoot()
    this.name = pjson.name
    this.version = pjson.version
    this.bin = 'svc'
    this.dirname = 'svc'
    this.topicSeparator = ' '
    this.platform = platform() as Interfaces.PlatformTypes
    this.windows = platform() === 'win32'
    this.home = homedir()
    this.shell = 'unknown'
    this.arch = process.arch as Interfaces.ArchTypes
    this.userAgent = `${pjson.name}/${pjson.version}`
    this.valid = true
  }

  /** There are no plugins, so nobody listens; oclif's own needs a root plugin to look at. */
  override async runHook<T extends keyof Interfaces.Hooks>(): Promise<
    Interfaces.Hook.Result<Interfaces.Hooks[T]['return']>
  > {
    return { successes: [], failures: [] }
  }
}
