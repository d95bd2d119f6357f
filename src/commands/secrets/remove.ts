import { prints } from '../../cli/command/base.ts'
import { localFlag } from '../../cli/command/flags.ts'
import { thisMachine } from '../../cli/io/process.ts'
import { checkedSecretName, nameArg } from '../../cli/keychain/secrets.ts'
import { document, flag, string } from '../../cli/render/document.ts'
import { TargetCommand } from '../../cli/session/target-command.ts'
import { Fault } from '../../core/errors.ts'
import { didYouMean } from '../../core/suggest.ts'

const removedSecrets = document<{ readonly name: string; readonly removed: true }>()({
  around: { target: string },
  rows: 'secrets',
  members: { name: string, removed: flag },
})

export default class SecretsRemove extends TargetCommand {
  static override summary = 'Remove a secret from the OS keychain'
  static override answers = { '': prints(async () => removedSecrets) }
  static override examples = ['<%= config.bin %> secrets remove orders-db']
  static override args = nameArg
  static override flags = { local: localFlag }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(SecretsRemove)
    await this.sayLocal(async () => 'the OS keychain')
    const name = checkedSecretName(args.name)
    const { removeSecret, secretsKnown } = await import('../../cli/keychain/secrets.ts')
    const names = (await secretsKnown(this.io.env)).map((secret) => secret.name)
    if (!(await removeSecret(name, this.io.env, signal))) {
      const nearest = didYouMean(
        name,
        names.filter((one) => one !== name),
      )
      throw new Fault('NotFound', `the OS keychain has no secret "${name}"`, {
        hints: [...(nearest === undefined ? [] : [`Did you mean ${nearest}?`]), 'svc secrets list shows the names.'],
      })
    }
    this.print(
      flags.json
        ? removedSecrets.text({ target: thisMachine }, [{ name, removed: true }])
        : `${name} is removed from the OS keychain`,
    )
  }
}
