import { hostname } from 'node:os'
import { exits, type FaultName } from '../../core/base/errors.ts'
import { filesWithin, patienceMs } from '../../core/base/files/index.ts'
import { type Config, loadEdit } from '../../core/config/index.ts'
import {
  type Delivery,
  type Notice,
  openReceiver,
  type ReceiverConfig,
  receiverAddress,
  receiverKinds,
} from '../../core/watch/notify/index.ts'
import { machine, packageJson } from '../io/process.ts'

/** The outcome of a test message. */
export type ReceiverTest = {
  readonly name: string
  readonly kind: string
  /** Scheme and host. */
  readonly to: string
  readonly result: 'accepted' | 'not accepted' | 'refused'
  readonly durationMs: number
  readonly message: string | undefined
  readonly delivery: Delivery
}

export type Sender = {
  /** `serve.name`; absent: the name of this machine. */
  readonly server: string | undefined
  readonly url: string | undefined
  /** The programs that the system's svc.yaml allows. */
  readonly programs: Config['exec']
  readonly now: () => Date
  /** Gets warnings, such as that of a clock. */
  readonly say: (line: string) => void
}

/** Sends a test message by each receiver, all at the same time. Never rejects. */
export const testReceivers = async (
  receivers: readonly ReceiverConfig[],
  sender: Sender,
  signal: AbortSignal,
): Promise<readonly ReceiverTest[]> =>
  await Promise.all(receivers.map(async (receiver) => await testReceiver(receiver, sender, signal)))

async function testReceiver(
  config: ReceiverConfig,
  { server = hostname(), url, programs, now, say }: Sender,
  signal: AbortSignal,
): Promise<ReceiverTest> {
  const receiver = await openReceiver(config, {
    server,
    url,
    version: packageJson().version,
    programs,
    files: filesWithin(patienceMs, signal),
    now: () => now().getTime(),
    warn: (message) => say(`Warning: ${config.name}: ${message}`),
    isTest: true,
  })
  const since = performance.now()
  try {
    const delivery = await receiver.send([testNotice(server, now().getTime())], signal)
    return {
      name: config.name,
      kind: config.kind,
      to: receiverAddress(config),
      result: delivery.what === 'later' ? 'not accepted' : delivery.what,
      durationMs: Math.round(performance.now() - since),
      message: delivery.what === 'accepted' ? undefined : delivery.message,
      delivery,
    }
  } finally {
    await receiver.close()
  }
}

/** Says itself that it is a test, wherever its text appears. */
function testNotice(server: string, at: number): Notice {
  return {
    subject: { server, monitor: 'svc notify test', check: 'test' },
    id: `test-${at}`,
    what: 'begin',
    level: 'warning',
    incident: `test-${at}`,
    beganAt: at,
    observedAt: at,
    text: `${machine.accountName()} on ${hostname()} tests this receiver with svc notify test`,
    victims: { count: 0, names: [] },
    tags: [],
  }
}

/** 0 if all receivers accepted, `partial` if some did, otherwise the code of the first reason. */
export function exitOfTests(tests: readonly ReceiverTest[]): number {
  const [first] = tests.filter(({ result }) => result !== 'accepted')
  if (first === undefined) return exits.ok.code
  return tests.some(({ result }) => result === 'accepted') ? exits.partial.code : exits[reasonOf(first.delivery)].code
}

/** The fault of a command that ends because a receiver did not accept. */
export const faultFor = (delivery: Delivery): FaultName => faults[reasonOf(delivery)]
const faults = {
  unreachable: 'Unreachable',
  timeout: 'Timeout',
  local: 'Local',
  serverError: 'ServerError',
  rejected: 'BadRequest',
} as const

/**
 * One line for each receiver that refuses: where svc.yaml has it, and the settings that decide. `text`: that of svc.yaml.
 */
export async function linesToChange(
  tests: readonly ReceiverTest[],
  origin: string,
  text: string,
): Promise<readonly string[]> {
  const { lineAt, receiversIn } = await loadEdit()
  const names = await receiversIn(text)
  const lines = tests.flatMap(({ name, kind, delivery }) => {
    const isOurs = delivery.what === 'refused' || (delivery.what === 'later' && delivery.fault === 'internal')
    return isOurs && names.includes(name) ? [{ name, kind, index: names.indexOf(name) }] : []
  })
  return await Promise.all(
    lines.map(async ({ name, kind, index }) => {
      const settings = Object.entries(receiverKinds.find((one) => one.name === kind)?.settings ?? {})
      const decisive = settings.flatMap(([setting, { required }]) => (required === true ? [setting] : []))
      return `${name} is at ${origin}:${await lineAt(text, ['notify', index])}: correct ${decisive.join(', ')}`
    }),
  )
}

function reasonOf(delivery: Delivery): keyof typeof faults {
  const fault = delivery.what === 'accepted' ? undefined : delivery.fault
  if (fault === 'dns' || fault === 'refused' || fault === 'tls') return 'unreachable'
  if (fault === 'timeout') return 'timeout'
  if (fault === 'internal') return 'local'
  return delivery.what === 'later' ? 'serverError' : 'rejected'
}
