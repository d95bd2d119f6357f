import { lists, prints, SvcCommand } from '../cli/command/base.ts'
import {
  boolean,
  connectionFlags,
  custom,
  oneOf,
  optionalArgument,
  required,
  requiredArgument,
  text,
  variable,
} from '../cli/command/flags.ts'
import { thisMachine } from '../cli/io/process.ts'
import { document, flag, string } from '../cli/render/document.ts'
import { shellWord } from '../cli/render/hints.ts'
import { readSettings } from '../cli/session/session.ts'
import { Fault } from '../core/base/errors.ts'
import { sanitizeLine } from '../core/base/sanitize.ts'

const load = () => import('../cli/setup/lists.ts')

const profileName = requiredArgument('NAME', 'Name of the profile')

export class ProfileAdd extends SvcCommand {
  static override summary = 'Create a profile for a server, without signing in'
  static override answers = { '': prints(async () => (await load()).profiles) }
  static override examples = ['<%= config.bin %> profile add prod --server https://svc.example.com --use']
  static override args = { name: profileName }
  static override flags = {
    server: text('server')({ description: 'URL of the server' }),
    use: boolean({ description: 'Make the profile the current one' }),
    credentials: custom<'always' | 'when-asked'>({
      helpValue: '<always|when-asked>',
      description: 'When health checks send the token (default when-asked: after a 401)',
      parse: async (input) => oneOf('credentials', ['always', 'when-asked'] as const, input, 'Values'),
    })(),
    'ca-file': connectionFlags['ca-file'],
    'insecure-http': connectionFlags['insecure-http'],
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(ProfileAdd)
    const [{ changeSettings, checkedName, withProfile }, { serverOf }] = await Promise.all([
      import('../cli/settings/profiles.ts'),
      import('../cli/credentials/credentials.ts'),
    ])
    const name = checkedName(required(args.name, 'NAME'))
    if (flags.server === undefined) {
      throw new Fault('Usage', '--server is missing', {
        hints: [`svc profile add ${shellWord(name)} --server https://svc.example.com`],
      })
    }
    const profile = {
      name,
      server: serverOf(flags.server, flags['insecure-http']),
      ...(flags['ca-file'] === undefined ? {} : { caFile: flags['ca-file'] }),
      ...(flags['insecure-http'] ? { insecureHttp: true } : {}),
      ...(flags.credentials === undefined ? {} : { credentials: flags.credentials }),
    }
    const after = await changeSettings(
      this.io.env,
      (settings) => {
        if (settings.profiles.some((one) => one.name === name)) {
          throw new Fault('Usage', `profile "${name}" already exists`, {
            hints: [`svc profile show ${name}`, `svc profile remove ${name}`],
          })
        }
        return { ...withProfile(settings, profile), current: flags.use ? name : settings.current }
      },
      signal,
    )
    const current = after.current === name
    if (flags.json) {
      const { profiles } = await load()
      this.print(profiles.text({ ...profile, current }))
    } else this.print(sanitizeLine(`Profile ${name}: ${profile.server}${current ? ' (current)' : ''}`))
  }
}

export class ProfileList extends SvcCommand {
  static override summary = 'List the profiles; * marks the current one'
  static override answers = { '': lists(async () => (await load()).serverProfiles) }
  static override examples = ['<%= config.bin %> profile list']

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(ProfileList)
    const { current, profiles } = await readSettings(this.io.env)
    if (profiles.length === 0 && !flags.json) {
      this.say('There is no profile: all commands act on this machine. To create one: svc login --server URL')
      if (this.output.screen.isTTY) return
    }
    const { serverProfiles } = await load()
    const rows = profiles.map((profile) => ({ ...profile, current: profile.name === current }))
    this.printList(serverProfiles.render(rows, { target: thisMachine }, this.output))
  }
}

type Removed = { readonly name: string; readonly removed: true; readonly wasCurrent: boolean }
const removed = document<Removed>()({
  around: { target: string },
  rows: 'profiles',
  members: { name: string, removed: flag, wasCurrent: flag },
})

export class ProfileRemove extends SvcCommand {
  static override summary = 'Remove a profile; sign out of it first'
  static override answers = { '': prints(async () => removed) }
  static override examples = ['<%= config.bin %> profile remove staging']
  static override args = { name: profileName }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(ProfileRemove)
    const { changeSettings, profileNamed } = await import('../cli/settings/profiles.ts')
    const name = required(args.name, 'NAME')
    let wasCurrent = false
    await changeSettings(
      this.io.env,
      async (settings) => {
        const profile = await profileNamed(settings, name, 'svc profile remove')
        if (profile.user !== undefined) {
          // Its token would stay valid without anyone knowing.
          throw new Fault('Usage', `${profile.user} is still signed in with profile "${name}"`, {
            hints: [`svc logout --profile ${name}`],
          })
        }
        wasCurrent = settings.current === name
        const profiles = settings.profiles.filter((one) => one !== profile)
        return { ...settings, profiles, current: wasCurrent ? undefined : settings.current }
      },
      signal,
    )
    const next = wasCurrent
      ? 'It was the current one: without --server or --profile, all commands now act on this machine.'
      : ''
    if (flags.json) this.print(removed.text({ target: thisMachine }, [{ name, removed: true, wasCurrent }]))
    else this.print(sanitizeLine(`Profile ${name} is removed. ${next}`).trim())
  }
}

export class ProfileShow extends SvcCommand {
  static override summary = 'Show a profile; without a name, the current one'
  static override answers = { '': prints(async () => (await load()).profiles) }
  static override examples = ['<%= config.bin %> profile show', '<%= config.bin %> profile show prod --json']
  static override args = { name: optionalArgument('NAME', 'Name of the profile') }

  protected async perform(): Promise<undefined> {
    const { args, flags } = await this.parse(ProfileShow)
    const { profileNamed } = await import('../cli/settings/profiles.ts')
    const settings = await readSettings(this.io.env)
    const name = args.name ?? variable(this.io.env, 'SVC_PROFILE') ?? settings.current
    if (name === undefined) {
      throw new Fault('Usage', 'no profile is current: all commands act on this machine', {
        hints: ['svc profile list shows the profiles.'],
      })
    }
    const profile = await profileNamed(settings, name, 'svc profile show')
    const current = settings.current === profile.name
    if (flags.json) {
      const { profiles } = await load()
      this.print(profiles.text({ ...profile, current }))
      return
    }
    const { factLines } = await import('../cli/render/table.ts')
    const facts: Parameters<typeof factLines>[0] = [
      ['name', `${profile.name}${current ? ' (current)' : ''}`],
      ['server', profile.server],
      ['user', profile.user ?? 'nobody is signed in'],
      ['token in', profile.user === undefined ? undefined : (profile.storage ?? 'keychain')],
      ['roles', profile.roles?.join(', ')],
      ['ca-file', profile.caFile],
      ['plain http', profile.insecureHttp ? 'allowed' : undefined],
      ['credentials', profile.credentials],
    ]
    this.print(factLines(facts))
  }
}

export class ProfileUse extends SvcCommand {
  static override summary = 'Make a profile the current one'
  static override description =
    `health, history, heartbeat, roles assign|extend|give-back|show|unassign, sessions, api, whoami, passwd and logout then act at its server, unless
--local, --server or --profile selects another target. All other commands act on this machine.`
  static override answers = { '': prints(async () => (await load()).profiles) }
  static override examples = ['<%= config.bin %> profile use prod']
  static override args = { name: profileName }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(ProfileUse)
    const { changeSettings, profileNamed } = await import('../cli/settings/profiles.ts')
    const name = required(args.name, 'NAME')
    const after = await changeSettings(
      this.io.env,
      async (settings) => ({ ...settings, current: (await profileNamed(settings, name, 'svc profile use')).name }),
      signal,
    )
    const profile = await profileNamed(after, name, 'svc profile use')
    if (flags.json) {
      const { profiles } = await load()
      this.print(profiles.text({ ...profile, current: true }))
      return
    }
    const { profileScope } = await import('../cli/session/other-target.ts')
    const lines = [`Profile ${name} is now the current one: ${profile.server}`, ...profileScope]
    this.print(lines.map(sanitizeLine).join('\n'))
  }
}
