import { lists } from '../../cli/command/base.ts'
import { localFlag } from '../../cli/command/flags.ts'
import { thisMachine } from '../../cli/io/process.ts'
import { TargetCommand } from '../../cli/session/target-command.ts'
import { hostAndPort } from '../../core/settings/index.ts'

export default class SecretsList extends TargetCommand {
  static override summary = 'List the secrets, and the host to which each may be sent'
  static override answers = { '': lists(async () => (await import('../../cli/setup/lists.ts')).secrets) }
  static override examples = ['<%= config.bin %> secrets list', '<%= config.bin %> secrets list --json']
  static override flags = { local: localFlag }

  protected async perform(): Promise<undefined> {
    await this.parse(SecretsList)
    await this.sayLocal(async () => 'the OS keychain')
    const [{ secretsKnown }, { secrets }] = await Promise.all([
      import('../../cli/keychain/secrets.ts'),
      import('../../cli/setup/lists.ts'),
    ])
    const rows = (await secretsKnown(this.io.env)).map(({ name, host, port }) => ({
      name,
      for: hostAndPort(host, port),
    }))
    this.printList(secrets.render(rows, { target: thisMachine }, this.output))
  }
}
