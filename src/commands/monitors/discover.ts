import { SvcCommand } from '../../cli/base.ts'
import { boolean } from '../../cli/flags.ts'
import { sanitizeLine } from '../../core/sanitize.ts'

export default class Discover extends SvcCommand {
  static override summary = 'Look at what listens on this machine, and propose a svc.yaml for it'
  static override description =
    `Connects to every port that listens here and greets it in the protocols that svc knows. It signs in
nowhere and changes nothing. The file goes to stdout, what was found to stderr.`
  static override examples = [
    '<%= config.bin %> monitors discover',
    '<%= config.bin %> monitors discover > svc.yaml && <%= config.bin %> health --config svc.yaml -t all',
    '<%= config.bin %> monitors discover --write',
  ]
  static override flags = {
    write: boolean({
      description: "Write it into the user's folder, where svc finds it; never over another file",
    }),
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(Discover)
    const [{ discover }, { proposals: proposing }, { servesHere }, { hostname }] = await Promise.all([
      import('../../core/discover/index.ts'),
      import('../../core/config/index.ts'),
      import('../../cli/running.ts'),
      import('node:os'),
    ])
    const { proposedFile } = await proposing()
    // svc does not monitor itself: its own responses would be part of what they report.
    const skip = servesHere().map(({ url }) => Number(new URL(url).port))
    const { proposals, others } = await discover(signal, { skip })
    const file = await proposedFile(proposals, [
      `Proposed by svc monitors discover on ${hostname()}, ${new Date().toISOString().slice(0, 10)}.`,
      'It works as it is. Names, thresholds and accounts are yours to add: svc monitors kinds',
    ])
    if (flags.json) {
      this.print(JSON.stringify({ proposals, others, file }))
      return
    }
    for (const { entry, type } of proposals) this.say(sanitizeLine(`${type}: ${entry.kind} ${entry.name}`))
    for (const { host, port, product } of others) {
      this.say(sanitizeLine(`not recognised: ${host} port ${port}${product === undefined ? '' : ` (says ${product})`}`))
    }
    if (proposals.length === 0) this.say('Nothing that svc knows listens here: name your servers in svc.yaml yourself.')
    if (!flags.write) {
      this.print(file.trimEnd())
      return
    }
    const types = [...new Set(proposals.map(({ type }) => type))]
    const { writeProposed } = await import('../../cli/write-proposed.ts')
    this.print(
      `${writeProposed(file, process.env)} is written. Try it: svc health ${types.map((type) => `-t ${type}`).join(' ')}`,
    )
  }
}
