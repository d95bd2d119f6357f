import { type ConfiguredFiles, isOnShare } from '../../../base/files/index.ts'
import { quote } from '../../../base/net/text.ts'
import { type FaultClass, ProbeError } from '../../../base/probe-error.ts'
import type { Problem, SettingsSpec, Values } from '../../../base/settings/index.ts'
import { admitted, type ExecConfig } from '../../../base/system/allowed-program.ts'
import { type Ended, plainEnvironment, runProgram } from '../../../base/system/run-program.ts'
import type { Delivery, Notice, Receiver } from '../receiver.ts'
import type { ReceiverConfig } from '../settings.ts'
import { bodyOf } from './body.ts'
import { type ReceiverContext, receiverKind } from './kind.ts'
import { withReceipt } from './message.ts'

const settings = {
  program: {
    type: 'text',
    required: true,
    doc: "Absolute path of the program, in a folder that the system's svc.yaml allows with `exec: {allow: […]}`. It gets the message on standard input",
  },
  args: {
    type: 'texts',
    allowsEmpty: true,
    doc: 'Arguments, passed unchanged and without a shell; do not put a password here',
  },
} as const satisfies SettingsSpec
type Settings = Values<typeof settings>

/** Milliseconds that the program may take. */
const programMs = 10_000
/** How many bytes of the output are kept, to explain a failure. */
const keptOutput = 8 * 1_024
/** How many characters of the output a message has. */
const maxQuoted = 300

export const exec = receiverKind({
  name: 'exec',
  doc: 'A program of this machine that gets the body of a webhook on standard input',
  settings,
  needsStore: false,
  runsPrograms: true,
  mistakes,
  to: ({ program }) => program,
  target: () => undefined,
  open: async (config, values, context) => new Exec(config, values, context),
})

function mistakes({ program }: Settings): readonly Problem[] {
  return program.startsWith('/')
    ? []
    : [{ path: ['program'], message: 'must be an absolute path, like /usr/local/lib/svc/sms' }]
}

/** Starts the program for each message. Nothing of a message is in its arguments or in its environment. */
class Exec implements Receiver {
  readonly #config: ReceiverConfig
  readonly #values: Settings
  readonly #context: ReceiverContext

  constructor(config: ReceiverConfig, values: Settings, context: ReceiverContext) {
    this.#config = config
    this.#values = values
    this.#context = context
  }

  describe() {
    return { name: this.#config.name, kind: exec.name, to: exec.to(this.#values) }
  }

  async send(notices: readonly Notice[], stop: AbortSignal): Promise<Delivery> {
    const { files, programs } = this.#context
    const { program, args = [] } = this.#values
    const input = `${JSON.stringify(bodyOf(notices, this.#config, this.#context))}\n`
    if (this.#context.show) {
      this.#context.show([program, ...args, '', input].join('\n'))
      return { what: 'accepted' }
    }
    const limit = AbortSignal.timeout(programMs)
    const progress = { hasBegun: false }
    try {
      const ended = await run({ program, args, input, programs, files, progress }, AbortSignal.any([stop, limit]))
      return withReceipt(notices, deliveryOf(ended, program), () => 'exit code 0')
    } catch (error) {
      const { hasBegun: isPerhapsReceived } = progress
      const later = (message: string, fault: FaultClass): Delivery => ({
        what: 'later',
        message,
        isPerhapsReceived,
        fault,
      })
      if (stop.aborted) return later(`svc was stopped while ${program} ran`, 'timeout')
      if (limit.aborted) return later(`${program} did not end within ${programMs / 1_000} s and was killed`, 'timeout')
      if (!(error instanceof ProbeError)) throw error
      const { fault, message } = error
      // Only a change of files or settings makes a program admissible.
      return isPerhapsReceived ? later(message, fault) : { what: 'refused', message, fault: 'internal' }
    }
  }

  async close(): Promise<void> {}
}

type Start = {
  readonly program: string
  readonly args: readonly string[]
  readonly input: string
  readonly programs: ExecConfig | undefined
  readonly files: ConfiguredFiles
  readonly progress: { hasBegun: boolean }
}

async function run({ program, args, input, programs, files, progress }: Start, signal: AbortSignal): Promise<Ended> {
  // Before each start, because the program and its folders may have changed.
  const file = await admitted(program, programs, files)
  progress.hasBegun = true
  const whole = { file, args, input, env: plainEnvironment(), keep: keptOutput, isOnShare: isOnShare(file) }
  return await runProgram(whole, signal)
}

function deliveryOf({ code, signal, stdout, stderr }: Ended, program: string): Delivery {
  if (code === 0) return { what: 'accepted' }
  const how = signal === undefined ? `exited with ${code}` : `was ended by ${signal}`
  const output = [stderr, stdout].map((text) => text.trim()).find((text) => text !== '')
  const says = output === undefined ? '' : `: ${quote(output, maxQuoted)}`
  return { what: 'later', message: `${program} ${how}${says}`, isPerhapsReceived: true, fault: 'protocol' }
}
