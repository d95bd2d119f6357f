import { fail, ok, showDuration, warn } from '../judge.ts'
import { type Finding, monitorKind } from '../monitor.ts'
import { said } from '../probe/text.ts'
import { admitted } from '../program/admit.ts'
import { type Ended, plainEnvironment, runProgram } from '../program/run.ts'

type Seen = Ended & { readonly ms: number }

/** Bytes of each output that are kept; of lines beyond the first, so many are told. */
const keep = 64 * 1024
const linesTold = 10

/**
 * Runs a program that answers as Nagios plugins do: its exit code is the verdict, its first line the
 * message. Off unless the system's svc.yaml allows the folder, and without a shell.
 */
export default monitorKind({
  kind: 'exec',
  title: 'A program of an allowed folder (a Nagios plugin) says that all is well',
  settings: {
    command: {
      type: 'text',
      required: true,
      doc: "The program's whole path, in a folder that the system's svc.yaml allows",
    },
    args: { type: 'texts', doc: 'Its arguments, each as it is: no shell reads them, so no password belongs here' },
  },
  checks: [{ name: 'result', depth: 'Basic', doc: 'It ends with 0 (ok), 1 (warning), 2 (failure) or 3 (unknown)' }],
  async *observe({ command, args = [] }, world): AsyncGenerator<Seen> {
    world.step('result', command)
    const file = await admitted(command, world.exec)
    const start = world.now()
    const ended = await runProgram({ file, args, env: plainEnvironment(), keep }, world.signal)
    yield { ...ended, ms: world.now() - start }
  },
  judge: (seen, { command }): Finding => {
    const { code, signal, stdout, stderr, more, ms } = seen
    const lines = stdout.split(/\r?\n/).filter((line) => line.trim() !== '')
    // What follows the bar are figures for other programs.
    const [first = ''] = lines.map((line) => said(line.split('|', 1)[0] ?? ''))
    const others = [...lines.slice(1), ...stderr.split(/\r?\n/)].map((line) => said(line)).filter((line) => line !== '')
    const cut = more ? ['(it said more than is kept)'] : []
    const about = { observed: ms, unit: 'ms', details: [...others.slice(0, linesTold), ...cut] }
    const told = first === '' ? 'it said nothing' : first
    if (code === 0) return ok('result', `${told} (after ${showDuration(ms)})`, about)
    if (code === 1) return warn('result', told, about)
    if (code === 2) return fail('result', 'threshold', told, about)
    if (code === 3) return fail('result', 'data', `unknown: ${told}`, about)
    const how = signal === undefined ? `ended with ${code}` : `was ended by ${signal}`
    return fail('result', 'protocol', `${command} ${how}, which is no answer of a plugin (0 to 3): ${told}`, about)
  },
})
