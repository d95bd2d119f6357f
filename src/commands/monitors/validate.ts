import { SvcCommand } from '../../cli/base.ts'
import { text } from '../../cli/flags.ts'
import { configuration } from '../../cli/session.ts'

export default class Validate extends SvcCommand {
  static override summary = 'Check svc.yaml: every mistake with its line and column'
  static override examples = [
    '<%= config.bin %> monitors validate',
    '<%= config.bin %> monitors validate --config ./svc.yaml',
  ]
  static override flags = { config: text('config')({ description: 'The svc.yaml to check (SVC_CONFIG)' }) }

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(Validate)
    const config = await configuration(flags, process.env)
    for (const warning of config.warnings) this.say(`Warning: ${warning}`)
    const types = Object.entries(config.types).map(([type, entry]) => ({ type, monitors: entry.monitors.length }))
    if (flags.json) {
      this.print(JSON.stringify({ valid: true, file: config.origin ?? null, types, warnings: config.warnings }))
      return
    }
    if (config.origin === undefined) {
      this.print('No svc.yaml found: nothing is configured, and that is valid.')
      return
    }
    const counted = types.map(({ type, monitors }) => `${type} ${monitors}`).join(', ')
    this.print(`${config.origin} is valid: ${counted || 'no types'}`)
  }
}
