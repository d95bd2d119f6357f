import { lists, SvcCommand } from '../../cli/command/base.ts'
import { thisMachine } from '../../cli/io/process.ts'
import { readSettings } from '../../cli/session/session.ts'

export default class ProfileList extends SvcCommand {
  static override summary = 'List the profiles; * marks the current one'
  static override answers = { '': lists(async () => (await import('../../cli/setup/lists.ts')).serverProfiles) }
  static override examples = ['<%= config.bin %> profile list']

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(ProfileList)
    const { current, profiles } = await readSettings(this.io.env)
    if (profiles.length === 0 && !flags.json) {
      this.say('There is no profile: all commands act on this machine. To create one: svc login --server URL')
      if (this.io.stdout.isTTY) return
    }
    const { serverProfiles } = await import('../../cli/setup/lists.ts')
    const rows = profiles.map((profile) => ({ ...profile, current: profile.name === current }))
    this.printList(serverProfiles.render(rows, { target: thisMachine }, this.output))
  }
}
