import { prints, SvcCommand } from '../cli/command/base.ts'
import { custom, oneOf, required, requiredArgument, text } from '../cli/command/flags.ts'
import { thisMachine } from '../cli/io/process.ts'
import { count } from '../core/base/format.ts'

const formats = ['gatus', 'blackbox', 'goss', 'uptime-kuma'] as const

export default class Import extends SvcCommand {
  static override summary = 'Write a svc.yaml from a file of gatus, blackbox_exporter, goss or Uptime Kuma'
  static override description =
    `Writes a monitor for each entry of the file, and a line for everything that svc does not express. Monitors
that cannot run as they are become comments with the reason. Passwords and tokens become {env: NAME}; svc
lists their names, and copies none of their values. Never overwrites a file, and contacts no server.`
  static override answers = { '': prints(async () => (await import('../cli/setup/lists.ts')).imports) }
  static override examples = [
    '<%= config.bin %> import gatus.yaml',
    '<%= config.bin %> import kuma-backup.json --output ./svc.yaml',
    '<%= config.bin %> import blackbox.yml --from blackbox --output -',
  ]
  static override args = { file: requiredArgument('FILE', 'File of the other tool, as YAML or JSON') }
  static override flags = {
    from: custom<(typeof formats)[number]>({
      helpValue: `<${formats.join('|')}>`,
      description: 'Tool that the file belongs to (default: recognized)',
      parse: async (input) => oneOf('from', formats, input, 'Tools'),
    })(),
    output: text('output')({
      helpValue: '<FILE|->',
      description: "File to write, or - for stdout (default: svc.yaml in the user's configuration folder)",
    }),
  }

  protected async perform(): Promise<undefined> {
    const { args, flags } = await this.parse(Import)
    const source = required(args.file, 'FILE')
    const [{ importedFrom }, { newConfigPath, writeConfig }] = await Promise.all([
      import('../cli/setup/import-file.ts'),
      import('../cli/setup/init-file.ts'),
    ])
    const path =
      flags.output === '-'
        ? undefined
        : newConfigPath(flags.output, this.io.env, ['svc import', 'svc import FILE --output -'])
    const { yaml, entries, secrets } = await importedFrom(source, flags.from, this.io)
    if (path !== undefined) await writeConfig(path, yaml, this.io.env)
    // --json and --output - are refused together.
    if (path !== undefined && this.isJsonRequested()) {
      const { imports } = await import('../cli/setup/lists.ts')
      this.print(imports.text({ target: thisMachine, file: path, secrets }, entries))
      return
    }
    for (const { entry, monitors, problem, notes } of entries) {
      this.say(
        `${entry}: ${monitors.join(', ') || 'no monitor'}${problem === undefined ? '' : ` (as a comment: ${problem})`}`,
      )
      for (const note of notes) this.say(`  ${note}`)
    }
    for (const secret of secrets) this.say(`Set ${secret}`)
    if (path === undefined) this.printList(yaml.trimEnd())
    else this.print(`${path} is written and valid: ${count(entries.length, 'entry', 'entries')} of ${source}`)
  }
}
