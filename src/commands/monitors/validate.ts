import { prints, SvcCommand } from '../../cli/command/base.ts'
import { text } from '../../cli/command/flags.ts'
import type { ProcessEnvironment } from '../../cli/io/io.ts'
import { thisMachine } from '../../cli/io/process.ts'
import { document, flag, integer, oneOf, string, strings } from '../../cli/render/document.ts'
import { waysToConfigure } from '../../cli/session/first-config.ts'
import { configuration } from '../../cli/session/session.ts'
import type { LoadedConfig } from '../../core/config/index.ts'
import { Fault } from '../../core/errors.ts'
import { ServerType } from '../../core/protocol/index.ts'

const validated = document<{ readonly type: string; readonly monitors: number }>()({
  around: { target: string, valid: flag, file: string, warnings: strings },
  rows: 'types',
  members: { type: oneOf(...ServerType.values), monitors: integer },
})

export default class Validate extends SvcCommand {
  static override summary = 'Check svc.yaml: every mistake with its line and column'
  static override answers = { '': prints(async () => validated) }
  static override examples = [
    '<%= config.bin %> monitors validate',
    '<%= config.bin %> monitors validate --config ./svc.yaml',
  ]
  static override flags = { config: text('config')({ description: 'The svc.yaml to check (SVC_CONFIG)' }) }

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(Validate)
    const config = await configuration(flags, this.io.env)
    for (const warning of config.warnings) this.say(`Warning: ${warning}`)
    demandMonitors(config, this.io.env)
    const types = Object.entries(config.types).map(([type, entry]) => ({ type, monitors: entry.monitors.length }))
    if (flags.json) {
      const { origin: file, warnings } = config
      this.print(validated.text({ target: thisMachine, valid: true, file, warnings }, types))
      return
    }
    const counted = types.flatMap(({ type, monitors }) => (monitors > 0 ? [`${type} ${monitors}`] : [])).join(', ')
    this.print(`${config.origin} is valid: ${counted || 'no types'}`)
  }
}

/** Throws Local without a file, for one that configures nothing, and for monitors that cannot run here. */
function demandMonitors(
  { origin, searched, types, otherSections, cannotRun }: LoadedConfig,
  env: ProcessEnvironment,
): void {
  const propose = waysToConfigure(origin, env)
  if (origin === undefined) {
    throw new Fault('Local', 'there is no svc.yaml to check', {
      hints: [...searched.map((path) => `Looked for ${path}`), ...propose],
    })
  }
  const monitors = Object.values(types).flatMap((type) => type.monitors)
  if (monitors.length === 0 && otherSections.length === 0) {
    const places = [{ file: origin, line: 1, column: 1, message: 'configures nothing' }]
    throw new Fault('Local', `${origin} configures nothing`, { places, hints: propose })
  }
  const [first] = cannotRun
  if (!first) return
  const lines = cannotRun.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`)
  const message = lines.length === 1 ? lines[0] : `${origin} has ${lines.length} monitors that cannot run`
  throw new Fault('Local', message, {
    places: cannotRun,
    hints: [
      ...(lines.length === 1 ? [] : lines),
      "Remove the monitor, or allow its folder in the system's svc.yaml: exec: {allow: [FOLDER]}",
    ],
  })
}
