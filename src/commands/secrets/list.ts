import { SvcCommand } from '../../cli/base.ts'

export default class SecretsList extends SvcCommand {
  static override summary = 'Show which secrets were set here, and where each may be sent'
  static override examples = ['<%= config.bin %> secrets list', '<%= config.bin %> secrets list --json']
  static override flags = {}

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(SecretsList)
    const [{ secretsKnown }, { renderSecrets, secretJson }] = await Promise.all([
      import('../../cli/secrets.ts'),
      import('../../cli/secrets.ts'),
    ])
    const secrets = secretsKnown(process.env)
    const shown = flags.json ? JSON.stringify(secrets.map(secretJson)) : renderSecrets(secrets, process.stdout)
    if (shown !== '') this.print(shown)
  }
}
