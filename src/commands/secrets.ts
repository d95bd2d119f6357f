import { lists, prints } from '../cli/command/base.ts'
import { boolean, localFlag, text } from '../cli/command/flags.ts'
import { thisMachine } from '../cli/io/process.ts'
import { checkedSecretName, nameArg } from '../cli/keychain/secrets.ts'
import { document, flag, string } from '../cli/render/document.ts'
import { TargetCommand } from '../cli/session/target-command.ts'
import { Fault } from '../core/base/errors.ts'
import { hostAndPort } from '../core/base/settings/index.ts'
import { nearestHint } from '../core/base/suggest.ts'

export class SecretsList extends TargetCommand {
  static override summary = 'List the secrets, and the host to which each may be sent'
  static override answers = { '': lists(async () => (await import('../cli/setup/lists.ts')).secrets) }
  static override examples = ['<%= config.bin %> secrets list', '<%= config.bin %> secrets list --json']
  static override flags = { local: localFlag }

  protected async perform(): Promise<undefined> {
    await this.parse(SecretsList)
    await this.sayLocal(async () => 'the OS keychain')
    const [{ secretsKnown }, { secrets }] = await Promise.all([
      import('../cli/keychain/secrets.ts'),
      import('../cli/setup/lists.ts'),
    ])
    const rows = (await secretsKnown(this.io.env)).map(({ name, host, port }) => ({
      name,
      for: hostAndPort(host, port),
    }))
    this.printList(secrets.render(rows, { target: thisMachine }, this.output))
  }
}

const removedSecrets = document<{ readonly name: string; readonly removed: true }>()({
  around: { target: string },
  rows: 'secrets',
  members: { name: string, removed: flag },
})

export class SecretsRemove extends TargetCommand {
  static override summary = 'Remove a secret from the OS keychain'
  static override answers = { '': prints(async () => removedSecrets) }
  static override examples = ['<%= config.bin %> secrets remove orders-db']
  static override args = nameArg
  static override flags = { local: localFlag }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(SecretsRemove)
    await this.sayLocal(async () => 'the OS keychain')
    const name = checkedSecretName(args.name)
    const { removeSecret, secretsKnown } = await import('../cli/keychain/secrets.ts')
    const names = (await secretsKnown(this.io.env)).map((secret) => secret.name)
    if (!(await removeSecret(name, this.io.env, signal))) {
      const others = names.filter((one) => one !== name)
      throw new Fault('NotFound', `the OS keychain has no secret "${name}"`, {
        hints: [...nearestHint(name, others), 'svc secrets list shows the names.'],
      })
    }
    this.print(
      flags.json
        ? removedSecrets.text({ target: thisMachine }, [{ name, removed: true }])
        : `${name} is removed from the OS keychain`,
    )
  }
}

const keptSecrets = document<{ readonly name: string; readonly for: string; readonly kept: true }>()({
  around: { target: string },
  rows: 'secrets',
  members: { name: string, for: string, kept: flag },
})

export class SecretsSet extends TargetCommand {
  static override summary = 'Store a secret for svc.yaml in the OS keychain'
  static override description =
    `svc.yaml refers to it as {keychain: NAME}. svc sends the secret only to the host and port of --for: a
monitor that would send it elsewhere fails before it sends anything. A daemon has no keychain: if
svc serve runs under its own account, use {file: /path}.`
  static override answers = { '': prints(async () => keptSecrets) }
  static override examples = [
    '<%= config.bin %> secrets set orders-db --for db1.internal:5432',
    'pass show orders | <%= config.bin %> secrets set orders-db --for db1.internal:5432 --stdin',
  ]
  static override args = nameArg
  static override flags = {
    for: text('for')({
      helpValue: '<HOST:PORT>',
      description: 'The only host and port to which svc may send the secret',
    }),
    stdin: boolean({ description: 'Read the secret from standard input' }),
    local: localFlag,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(SecretsSet)
    await this.sayLocal(async () => 'the OS keychain')
    const name = checkedSecretName(args.name)
    if (flags.for === undefined) {
      throw new Fault('Usage', '--for is missing', {
        hints: [`svc secrets set ${name} --for db1.internal:5432   (host and port as in svc.yaml)`],
      })
    }
    const { keepSecret, placeOf, proveKeychain } = await import('../cli/keychain/secrets.ts')
    const place = placeOf(flags.for)
    await proveKeychain(this.io.env)
    const { newPassword } = await import('../cli/command/prompt.ts')
    const secret = await newPassword({ message: `${name}:`, stdin: flags.stdin, flag: '--stdin' }, this.io, signal)
    await keepSecret(name, { secret, ...place }, this.io.env, signal)
    const address = hostAndPort(place.host, place.port)
    this.print(
      flags.json
        ? keptSecrets.text({ target: thisMachine }, [{ name, for: address, kept: true }])
        : `${name} is stored in the OS keychain, for ${address} only: {keychain: ${name}}`,
    )
  }
}
