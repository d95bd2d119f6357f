import { SvcCommand } from '../../cli/base.ts'
import { readSettings } from '../../cli/session.ts'
import { sanitizeLine } from '../../core/sanitize.ts'

export default class ProfileList extends SvcCommand {
  static override summary = 'List the profiles; * marks the current one'
  static override examples = ['<%= config.bin %> profile list']

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(ProfileList)
    const { current, profiles } = await readSettings(process.env)
    if (flags.json) {
      this.print(JSON.stringify(profiles.map((profile) => ({ ...profile, current: profile.name === current }))))
      return
    }
    if (profiles.length === 0) {
      this.say('There is no profile: commands act on this machine. svc login --server URL makes one.')
      return
    }
    const cells = profiles.map(({ name, server, user }) => [
      name === current ? '*' : ' ',
      sanitizeLine(name),
      sanitizeLine(server),
      user === undefined ? 'not signed in' : sanitizeLine(user),
    ])
    const widths = [0, 1, 2].map((at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)))
    const line = (row: readonly string[]): string => row.map((text, at) => text.padEnd(widths[at] ?? 0)).join('  ')
    this.print(cells.map((row) => line(row).trimEnd()).join('\n'))
  }
}
