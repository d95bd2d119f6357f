import { prints, SvcCommand } from '../cli/command/base.ts'
import { boolean, connectionFlags } from '../cli/command/flags.ts'
import { thisMachine } from '../cli/io/process.ts'
import { Fault } from '../core/base/errors.ts'
import { count } from '../core/base/format.ts'

export default class Init extends SvcCommand {
  static override summary = 'Write a svc.yaml for this machine, step by step'
  static override description =
    `Detects the services that listen on this machine and proposes monitors for them. After you confirm, it
writes svc.yaml, validates it and runs svc health once. It tries the protocols that svc knows, and never
signs in. It never overwrites a file. If it recognizes no service, it writes an example with comments,
whose only monitor fails until you edit it.`
  static override answers = { '': prints(async () => (await import('../cli/setup/lists.ts')).firstConfigs) }
  static override examples = [
    '<%= config.bin %> init',
    '<%= config.bin %> init --yes',
    '<%= config.bin %> init --yes --config ./svc.yaml',
  ]
  static override flags = {
    yes: boolean({ char: 'y', description: 'Do not ask for confirmation' }),
    config: connectionFlags.config,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(Init)
    const [{ canAsk }, init, { discoveryLines, proposedBy, proposeForThisMachine }] = await Promise.all([
      import('../cli/command/prompt.ts'),
      import('../cli/setup/init-file.ts'),
      import('../cli/setup/discovery.ts'),
    ])
    const path = init.newConfigPath(flags.config, this.io.env)
    if (!flags.yes && (flags.json || !canAsk(this.io))) {
      throw new Fault('Usage', '--yes is missing: there is no terminal to ask', {
        hints: ['svc init --yes writes what it proposes; svc monitors discover only prints it.'],
      })
    }
    this.say('Looking at what listens on this machine …')
    const discovery = await proposeForThisMachine(this.io.env, signal)
    for (const line of discoveryLines(discovery)) this.say(`  ${line}`)
    const isStarter = discovery.proposals.every(({ problem }) => problem !== undefined)
    const head = [init.schemaLine(), proposedBy('svc init', this.io.clock)]
    const file = isStarter ? init.starterFile(head) : await discovery.file(head)
    if (isStarter) this.say('  svc recognizes no service here: the file has one monitor for you to edit.')
    if (!flags.yes && !(await init.confirmed(path, this.io, signal))) {
      this.say('Nothing is written. svc monitors discover prints the proposal.')
      return
    }
    const { types } = await init.writeConfig(path, file, this.io.env)
    const monitors = Object.values(types).reduce((sum, entry) => sum + entry.monitors.length, 0)
    if (flags.json) {
      const { proposals, others } = discovery
      const { firstConfigs } = await import('../cli/setup/lists.ts')
      this.print(
        firstConfigs.text({ target: thisMachine, file: path, monitors, starter: isStarter, others }, proposals),
      )
      return
    }
    this.print(`${path} is written and valid: ${count(monitors, 'monitor')}`)
    if (!isStarter) await init.runHealth(path, flags.config !== undefined, this.io)
    this.say(init.nextCommands(path, { isStarter, isNamed: flags.config !== undefined }))
  }
}
