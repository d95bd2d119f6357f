import { Args } from '@oclif/core'
import { StoreCommand, storeFlags } from '../../cli/admin.ts'
import { required, text } from '../../cli/flags.ts'
import { Fault } from '../../core/errors.ts'
import type { Admin } from '../../core/service.ts'
import { didYouMean } from '../../core/suggest.ts'

export default class Revoke extends StoreCommand {
  static override summary = 'Take a key back: it signs in no longer, from the next request on'
  static override examples = ['<%= config.bin %> keys revoke ci --reason "found in a log"']
  static override args = {
    name: Args.string({ name: 'NAME', description: 'What the key is called', ignoreStdin: true }),
  }
  static override flags = { reason: text('reason')({ description: 'Why: stands in the audit' }), ...storeFlags }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Revoke)
    const name = required(args.name, 'NAME')
    await this.inStore(flags, signal, async ({ admin, by }) => {
      try {
        await admin.keys.revoke(name, by)
      } catch (error) {
        throw error instanceof Fault && error.fault === 'NotFound' ? await unknownKey(admin, name) : error
      }
      const sentence = `The key ${name} is revoked: it no longer signs in`
      await this.printDone(name, admin.store, { json: flags.json, sentence, word: 'revoked' })
    })
  }
}

async function unknownKey(admin: Admin, name: string): Promise<Fault> {
  const nearest = didYouMean(name, await admin.keys.near(name))
  return new Fault('NotFound', `there is no key "${name}"`, {
    hints: [...(nearest === undefined ? [] : [`Did you mean ${nearest}?`]), 'svc keys list shows the keys.'],
  })
}
