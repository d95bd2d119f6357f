import { prints, SvcCommand } from '../cli/command/base.ts'
import { required, requiredArgument } from '../cli/command/flags.ts'
import { completionScripts, shells } from '../cli/help/completion/scripts.ts'
import { thisMachine } from '../cli/io/process.ts'
import { document, oneOf, string } from '../cli/render/document.ts'
import { Fault } from '../core/base/errors.ts'
import { nearestHint } from '../core/base/suggest.ts'

const scripts = document<{ readonly shell: string; readonly script: string }>()({
  around: { target: string },
  rows: 'scripts',
  members: { shell: oneOf(...shells), script: string },
})

export default class Completion extends SvcCommand {
  static override summary = 'Print the completion script for bash, zsh or fish'
  static override description =
    `The script completes commands, flags and values: types, modes, formats, kinds, profiles, and the
monitors, users and roles of this machine. It contacts no server and shows no secret. Its first lines
describe how to install it.`
  static override answers = { '': prints(async () => scripts) }
  static override examples = [
    'source <(<%= config.bin %> completion bash)',
    '<%= config.bin %> completion bash > ~/.local/share/bash-completion/completions/svc',
    '<%= config.bin %> completion fish > ~/.config/fish/completions/svc.fish',
  ]
  static override args = { shell: requiredArgument('SHELL', 'bash, zsh or fish') }

  protected async perform(): Promise<undefined> {
    const { args, flags } = await this.parse(Completion)
    const name = required(args.shell, 'SHELL')
    const shell = shells.find((one) => one === name)
    if (shell === undefined) {
      throw new Fault('Usage', `there is no script for "${name}"`, {
        hints: [...nearestHint(name, shells), `Shells: ${shells.join(' ')}`],
      })
    }
    const script = completionScripts[shell]
    if (flags.json) this.print(scripts.text({ target: thisMachine }, [{ shell, script }]))
    else this.print(script, 'verbatim')
  }
}
