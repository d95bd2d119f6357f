import { StoreCommand, storeFlags } from '../../cli/admin.ts'

export default class List extends StoreCommand {
  static override summary = 'List the keys of machines, without the keys themselves'
  static override examples = ['<%= config.bin %> keys list', '<%= config.bin %> keys list --json']
  static override flags = storeFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(List)
    await this.inStore(flags, signal, async ({ admin }) => {
      const keys = await admin.keys.list()
      const now = new Date()
      const { keyJson, renderKeys } = await import('../../cli/render/keys.ts')
      this.answer(
        flags.json,
        { store: admin.store, keys: keys.map((key) => keyJson(key, now)) },
        renderKeys(keys, admin.store, now, process.stdout),
      )
    })
  }
}
