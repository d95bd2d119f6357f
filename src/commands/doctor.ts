import { lists, SvcCommand } from '../cli/command/base.ts'
import { connectionFlags } from '../cli/command/flags.ts'
import { thisMachine } from '../cli/io/process.ts'

export default class Doctor extends SvcCommand {
  static override summary = 'Check this installation of svc, and suggest corrections'
  static override description =
    `Checks Node, the folder of the settings, svc.yaml, the store, the keychain, the server that commands
would use, the sign-in there, the clock, other programs called svc, and completion. svc health checks
servers; this command checks svc. It exits with 0 when nothing failed, otherwise with the exit code that
a command would have for the same reason, or 12 for several reasons.`
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
    this.print(installation.render(findings, { target: thisMachine }, this.output))
    return examinationExit(findings)
  }
}
