import { prints, SvcCommand } from '../../cli/command/base.ts'
import { boolean, connectionFlags, custom, oneOf, required, requiredArgument, text } from '../../cli/command/flags.ts'
import { shellWord } from '../../cli/render/hints.ts'
import { Fault } from '../../core/errors.ts'
import { sanitizeLine } from '../../core/sanitize.ts'

export default class ProfileAdd extends SvcCommand {
  static override summary = 'Create a profile for a server, without signing in'
  static override answers = { '': prints(async () => (await import('../../cli/setup/lists.ts')).profiles) }
  static override examples = ['<%= config.bin %> profile add prod --server https://svc.example.com --use']
  static override args = {
    name: requiredArgument({ name: 'NAME', description: 'Name of the profile', ignoreStdin: true }),
  }
  static override flags = {
    server: text('server')({ description: 'URL of the server' }),
    use: boolean({ description: 'Make it the current one' }),
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
      import('../../cli/settings/profiles.ts'),
      import('../../cli/credentials/credentials.ts'),
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
      const { profiles } = await import('../../cli/setup/lists.ts')
      this.print(profiles.text({ ...profile, current }))
    } else this.print(sanitizeLine(`Profile ${name}: ${profile.server}${current ? ' (current)' : ''}`))
  }
}
