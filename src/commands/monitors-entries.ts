import { lists, SvcCommand } from '../cli/command/base.ts'
import { required, requiredArgument, text, typeFlag } from '../cli/command/flags.ts'
import { thisMachine } from '../cli/io/process.ts'
import type { ChangedEntry } from '../cli/monitors/lists.ts'
import type { EntryChange } from '../cli/monitors/monitor-entry.ts'
import { configuration } from '../cli/session/session.ts'
import type { Fault } from '../core/base/errors.ts'

const answers = { '': lists(async () => (await import('../cli/monitors/lists.ts')).changedEntries) }
const config = text('config')({ description: 'The svc.yaml to change (SVC_CONFIG)' })
const nameArgument = requiredArgument('NAME', 'Name of the monitor: "postgres orders", orders, or Sql/orders')
const whichType = typeFlag({
  description: 'Server type of the monitor, if several types have a monitor with this name',
})

/** Commands that change one entry of svc.yaml. */
abstract class EntryCommand extends SvcCommand {
  static override answers = answers

  /** Shows the difference, and what has been done, once it has. */
  protected async done({ type, monitor, change }: EntryChange, what: ChangedEntry['change']): Promise<void> {
    const [{ changedEntries }, { difference }] = await Promise.all([
      import('../cli/monitors/lists.ts'),
      import('../cli/session/config-file.ts'),
    ])
    const { path: file, before, after } = change
    if (before !== after) for (const line of difference(change)) this.say(line)
    this.printList(changedEntries.render([{ change: what, type, monitor, file }], { target: thisMachine }, this.output))
  }
}

export class MonitorsAdd extends EntryCommand {
  static override summary = 'Add a monitor to svc.yaml, and run it once'
  static override description =
    `Writes an entry with the kind, the name and the target; every other line of the file stays as it is. If
there is no svc.yaml, it makes one. Nothing is written unless the whole file is valid with the entry. The
result of the run does not change the exit code.`
  static override examples = [
    '<%= config.bin %> monitors add http https://shop.example',
    '<%= config.bin %> monitors add postgres postgres://svc@db1/orders --name orders',
    '<%= config.bin %> monitors add tcp queue.example:5672 --type Batch',
  ]
  static override args = {
    kind: requiredArgument('KIND', 'Kind of the monitor (svc monitors kinds)'),
    target: requiredArgument('TARGET', 'What it checks: a URL, HOST, HOST:PORT, a path or a name'),
  }
  static override flags = {
    type: typeFlag({ description: 'Server type (default: that of such servers, or App)' }),
    name: text('name')({ description: 'Name of the monitor (default: from the target)' }),
    config,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(MonitorsAdd)
    const { addition, demandValid, entryFor, withEntry } = await import('../cli/monitors/monitor-entry.ts')
    const { type, entry } = await entryFor(required(args.kind, 'KIND'), required(args.target, 'TARGET'), flags)
    const before = await configuration(flags, this.io.env)
    let added: EntryChange
    if (before.origin === undefined) {
      const { newConfigPath, schemaLine, writeConfig } = await import('../cli/setup/init-file.ts')
      const path = newConfigPath(flags.config, this.io.env)
      const after = await withEntry(`# ${schemaLine()}\n`, type, entry)
      added = { type, monitor: `${entry.kind} ${entry.name}`, change: { path, before: '', after } }
      await writeConfig(path, after, this.io.env)
    } else {
      const { writeChange } = await import('../cli/session/config-file.ts')
      added = await addition({ ...before, origin: before.origin }, type, entry)
      await demandValid(added.change, flags, this.io.env)
      signal.throwIfAborted()
      writeChange(added.change)
    }
    await this.done(added, 'added')
    if (this.isJsonRequested()) return
    const { renderTrial, tryMonitor } = await import('../cli/monitors/monitor-test.ts')
    const trial = await tryMonitor(added.monitor, { type, config: added.change.path }, this.io.env, signal)
    this.say(renderTrial(trial, { json: false, screen: this.io.stderr }))
  }
}

export class MonitorsRemove extends EntryCommand {
  static override summary = 'Remove a monitor from svc.yaml, or from the file that it includes'
  static override description =
    'Nothing is written unless the whole file is valid without it: no other monitor may depend on it.'
  static override examples = ['<%= config.bin %> monitors remove Sql/orders']
  static override args = { name: nameArgument }
  static override flags = { type: whichType, config }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(MonitorsRemove)
    const [{ demandValid, reasonToWaitFor, removal }, { writeChange }] = await Promise.all([
      import('../cli/monitors/monitor-entry.ts'),
      import('../cli/session/config-file.ts'),
    ])
    const removed = await removal(required(args.name, 'NAME'), flags, this.io.env)
    const { types } = await demandValid(removed.change, flags, this.io.env)
    signal.throwIfAborted()
    writeChange(removed.change)
    await this.done(removed, 'removed')
    const waits = reasonToWaitFor(removed, types)
    if (waits !== undefined) this.say(`Note: a running svc serve goes on with the old file: ${waits}`)
  }
}

export class MonitorsEdit extends EntryCommand {
  static override summary = 'Edit the file that has a monitor, and replace it once it is valid'
  static override description =
    `Opens a copy of svc.yaml, or of the included file that has the monitor, in $VISUAL, $EDITOR or vi, at its
line where the editor takes one. svc reads the copy like svc.yaml itself, and replaces the file only if
it has no mistake and has not changed meanwhile.`
  static override examples = ['<%= config.bin %> monitors edit orders']
  static override args = { name: nameArgument }
  static override flags = { type: whichType, config }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(MonitorsEdit)
    const [{ edition }, { askLine, canAsk }, { renderError }] = await Promise.all([
      import('../cli/monitors/monitor-entry.ts'),
      import('../cli/command/prompt.ts'),
      import('../cli/render/errors.ts'),
    ])
    const again = async (fault: Fault): Promise<boolean> => {
      if (!canAsk(this.io)) return false
      this.say(renderError.text(fault, { colour: this.io.stderr.colour }))
      return /^y(?:es)?$/i.test((await askLine('Edit again? (y/n)', this.io, signal)).trim())
    }
    const edited = await edition(required(args.name, 'NAME'), flags, { io: this.io, signal, again })
    await this.done(edited, edited.change.before === edited.change.after ? 'unchanged' : 'edited')
  }
}
