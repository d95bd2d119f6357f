import { SvcCommand } from '../../cli/base.ts'
import { localFlag } from '../../cli/flags.ts'
import { hostAndPort } from '../../core/settings/index.ts'

export default class SecretsList extends SvcCommand {
  static override summary = 'List the secrets, and the host to which each may be sent'
  static override examples = ['<%= config.bin %> secrets list', '<%= config.bin %> secrets list --json']
  static override flags = { local: localFlag }

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(SecretsList)
    await this.sayLocal(async () => 'the OS keychain')
    const [{ secretsKnown }, { secrets }] = await Promise.all([
      import('../../cli/secrets.ts'),
      import('../../cli/render/lists.ts'),
    ])
    const rows = secretsKnown(this.io.env).map(({ name, host, port }) => ({ name, for: hostAndPort(host, port) }))
    const text = secrets.render(rows, {}, { json: flags.json, screen: this.io.stdout })
    if (text !== '') this.print(text)
  }
}
