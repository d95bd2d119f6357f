import { checksOn, fail, machineKind, ok, type Result, warn } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { said } from '../../net/text.ts'
import type { SettingsSpec } from '../../settings/index.ts'
import { plainEnvironment, runProgram } from '../../system/run-program.ts'
import { admitted } from './admit.ts'

/** Bytes of each output that are kept; of the lines after the first, so many become details. */
const keep = 64 * 1024
const maxDetails = 10

const commandSettings = {
  command: {
    type: 'text',
    required: true,
    doc: "The program's whole path, in a folder that the system's svc.yaml allows",
  },
  args: { type: 'texts', doc: 'Its arguments, each as it is: no shell reads them, so no password belongs here' },
} as const satisfies SettingsSpec

export const result = checksOn<object>()({
  depth: 'Basic',
  results: { result: 'It ends with 0 (ok), 1 (warning), 2 (failure) or 3 (unknown)' },
  settings: commandSettings,
  async observe(_, { command, args = [] }, context) {
    context.step('result', command)
    const file = await admitted(command, context.exec)
    const start = context.now()
    const ended = await runProgram({ file, args, env: plainEnvironment(), keep }, context.signal)
    return { ...ended, ms: context.now() - start }
  },
  evaluate({ code, signal, stdout, stderr, more, ms }, { command }) {
    const lines = stdout.split(/\r?\n/).filter((line) => line.trim() !== '')
    // What follows the bar are figures for other programs.
    const [first = ''] = lines.map((line) => said(line.split('|', 1)[0] ?? ''))
    const others = [...lines.slice(1), ...stderr.split(/\r?\n/)].map((line) => said(line)).filter((line) => line !== '')
    const cut = more ? ['(it said more than is kept)'] : []
    const about: Partial<Result> = {
      measurement: { value: ms, unit: 'milliseconds' },
      details: [...others.slice(0, maxDetails), ...cut],
    }
    const message = first === '' ? 'it said nothing' : first
    if (code === 0) return ok('result', `${message} (after ${showDuration(ms)})`, about)
    if (code === 1) return warn('result', message, about)
    if (code === 2) return fail('result', 'threshold', message, about)
    if (code === 3) return fail('result', 'data', `unknown: ${message}`, about)
    const how = signal === undefined ? `ended with ${code}` : `was ended by ${signal}`
    return fail('result', 'protocol', `${command} ${how}, which is no answer of a plugin (0 to 3): ${message}`, about)
  },
})

/**
 * Runs a program that answers as Nagios plugins do: its exit code is the verdict, its first line the
 * message. Off unless the system's svc.yaml allows the folder, and without a shell.
 */
export default machineKind({
  name: 'exec',
  title: 'A program of an allowed folder (a Nagios plugin) says that all is well',
  settings: {},
  open: () => ({}),
  checks: [result],
})
