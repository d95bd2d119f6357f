import { lists, SvcCommand } from '../cli/command/base.ts'
import { connectionFlags } from '../cli/command/flags.ts'
import { thisMachine } from '../cli/io/process.ts'

export default class Doctor extends SvcCommand {
  static override summary = 'Check the installation of svc, and suggest corrections'
  static override description =
    `Checks Node, the settings folder, svc.yaml, drivers, the store, the keychain, the current server, the sign-in
there, the clock, other programs named svc, and completion. svc health checks servers; this command
checks svc. The exit code is 0 if nothing failed, that of the failure if there is one cause, and 12 if
there are several.`
  static override answers = { '': lists(async () => (await import('../cli/setup/lists.ts')).installation) }
  static override examples = ['<%= config.bin %> doctor', '<%= config.bin %> doctor --profile prod --json']
  static override flags = connectionFlags

  protected async perform(signal: AbortSignal): Promise<number> {
    const { flags } = await this.parse(Doctor)
    const [{ examinationExit, examine }, { installation }] = await Promise.all([
      import('../cli/setup/doctor.ts'),
      import('../cli/setup/lists.ts'),
    ])
    const findings = await examine(flags, this.io, signal)
    this.printList(installation.render(findings, { target: thisMachine }, this.output))
    return examinationExit(findings)
  }
}
