import { count, showBytes } from '../../../base/format.ts'
import { quote, sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { SettingsSpec } from '../../../base/settings/index.ts'
import { firstFile } from '../../../base/system/files.ts'
import { type Ended, plainEnvironment, runProgram } from '../../../base/system/run-program.ts'
import { atMost, checksOn, fail, machineKind, notChecked, ok, type Result } from '../../engine/index.ts'

type MailServer = 'postfix' | 'exim'

/** The messages that wait in the queue of a mail server. */
type MailQueue = {
  readonly messages: number
  /** The message that waits longest. `ageMs` is accurate to a second with Postfix, to its unit with Exim (min, h, d). */
  readonly oldest:
    | { readonly id: string; readonly ageMs: number | undefined; readonly reason?: string | undefined }
    | undefined
  /** The mail system is down, and its queue was read without it. */
  readonly isDown: boolean
}

/** The queue could not be read because this account may not. */
export class QueuePermissionError extends Error {
  override readonly name = 'QueuePermissionError'
}

type Listing = {
  readonly title: string
  /** Where the program may be. */
  readonly files: readonly string[]
  readonly args: readonly string[]
  readonly parse: (stdout: string, now: Date) => Omit<MailQueue, 'isDown'>
}

/** A listing of tens of thousands of messages. The programs have no option to count the messages and date the oldest. */
const maxListing = 15 * 1024 * 1024
/** A longer line is not a listing. Characters. */
const maxLine = 1024 * 1024

const listings: Readonly<Record<MailServer, Listing>> = {
  postfix: { title: 'Postfix', files: ['/usr/sbin/postqueue'], args: ['-j'], parse: parsePostqueue },
  exim: {
    title: 'Exim',
    files: ['/usr/sbin/exim4', '/usr/sbin/exim', '/usr/exim/bin/exim'],
    // Without sorting, which would take long for a long queue.
    args: ['-bpr'],
    parse: parseExim,
  },
}

/**
 * Reads the queue with the program of the mail server. Throws QueuePermissionError, or ProbeError: `internal` if the
 * program is missing, `data` for a queue that is too long to be listed or an answer that cannot be read.
 */
async function readQueue(server: MailServer, now: Date, signal: AbortSignal): Promise<MailQueue> {
  const { title, files, args, parse } = listings[server]
  const file = await firstFile(files)
  if (file === undefined) throw new ProbeError('internal', `${title} is not installed here: there is no ${files[0]}`)
  const ended = await runProgram({ file, args, env: plainEnvironment(), keep: maxListing }, signal).catch(
    (error: unknown) => {
      throw error instanceof ProbeError && error.fault === 'data' ? tooLong(title) : error
    },
  )
  if (ended.more) throw tooLong(title)
  if (ended.code !== 0) throw refusal(ended, file)
  return { ...parse(ended.stdout, now), isDown: /\bmail system is down\b/i.test(ended.stderr.slice(0, 4096)) }
}

const tooLong = (title: string): ProbeError =>
  new ProbeError('data', `the queue of ${title} is too long to be listed (more than ${showBytes(maxListing)})`)

function refusal({ stderr, stdout, code, signal }: Ended, file: string): Error {
  const [line = ''] = `${stderr}\n${stdout}`
    .slice(0, 4096)
    .split('\n')
    .map((one) => sanitize(one))
    .filter((one) => one !== '')
  if (/permission denied|not permitted|not authorized|not allowed/i.test(line)) return new QueuePermissionError(line)
  const how = code === undefined ? `was ended by ${signal}` : `exited with ${code}`
  return new ProbeError('data', `${file} ${how}: ${line === '' ? 'no output' : quote(line, 160)}`)
}

/** Parses the lines of `postqueue -j` (postqueue(1)): one JSON object for each message. */
export function parsePostqueue(stdout: string, now: Date): Omit<MailQueue, 'isDown'> {
  let messages = 0
  let oldest: { readonly id: string; readonly at: number; readonly reason: string | undefined } | undefined
  for (const line of stdout.split('\n')) {
    if (line === '') continue
    const message = postfixMessage(line)
    if (!message) throw new ProbeError('data', `postqueue does not print a message: ${quote(line.slice(0, 500), 120)}`)
    messages += 1
    if (oldest === undefined || message.at < oldest.at) oldest = message
  }
  if (!oldest) return { messages, oldest: undefined }
  const { id, at, reason } = oldest
  return { messages, oldest: { id, ageMs: Math.max(0, now.getTime() - at), reason } }
}

function postfixMessage(line: string) {
  if (line.length > maxLine) return undefined
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  const { queue_id: id, arrival_time: at, recipients } = (value ?? {}) as Readonly<Record<string, unknown>>
  if (typeof id !== 'string' || typeof at !== 'number' || !Number.isFinite(at)) return undefined
  const [first] = Array.isArray(recipients) ? (recipients as readonly unknown[]) : []
  const { delay_reason: reason } = (first ?? {}) as Readonly<Record<string, unknown>>
  return {
    id: sanitize(id, 40),
    at: at * 1_000,
    reason: typeof reason === 'string' ? sanitize(reason.slice(0, 1000), 200) : undefined,
  }
}

const eximUnits: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Age, size and id. Exim prints the id alone if it cannot read the envelope. */
const eximMessage = /^ {0,8}(?:(\d{1,6})([mhd]) +\S{1,12} )?([0-9A-Za-z]{6}-[0-9A-Za-z]{6,11}-[0-9A-Za-z]{2,4})(?: |$)/

/**
 * Parses the listing of `exim -bp`. Each message begins with a line such as `25m  2.9K 0t5C6f-0000c8-00 <a@example.org>`;
 * its recipients follow, indented further.
 */
export function parseExim(stdout: string, _: Date): Omit<MailQueue, 'isDown'> {
  let messages = 0
  let oldest: MailQueue['oldest']
  for (const line of stdout.split('\n')) {
    const fields = eximMessage.exec(line.slice(0, 200))
    if (!fields) continue
    const [, number, unit = '', id = ''] = fields
    messages += 1
    const ageMs = number === undefined ? undefined : Number(number) * (eximUnits[unit] ?? 0)
    const isFrozen = /\*\*\* frozen \*\*\*/.test(line.slice(0, 2000))
    const reason = ageMs === undefined ? 'its envelope cannot be read' : isFrozen ? 'the message is frozen' : undefined
    if (oldest === undefined || (ageMs ?? -1) > (oldest.ageMs ?? -1)) oldest = { id: sanitize(id, 40), ageMs, reason }
  }
  if (messages === 0 && stdout.trim() !== '')
    throw new ProbeError('data', `exim does not print a queue: ${quote(stdout.slice(0, 500), 120)}`)
  return { messages, oldest }
}

const serverSetting = {
  type: 'choice',
  observed: true,
  values: ['postfix', 'exim'],
  required: true,
  doc: 'The mail server of this machine: svc runs its `postqueue -j` or `exim -bpr`',
} as const satisfies SettingsSpec[string]

/** The privileges that the account needs to read the queue. */
const privileges: Readonly<Record<MailServer, string>> = {
  postfix:
    'usermod -aG postdrop <account>, for an account that may not use set-group-ID programs, e.g. that of the systemd unit; and authorized_mailq_users in main.cf includes it',
  exim: 'usermod -aG Debian-exim <account>, or queue_list_requires_admin = false in the configuration of Exim',
}

export const queue = checksOn<object>()({
  depth: 'Standard',
  results: {
    queue: 'The number of messages that wait; fails if Postfix is down',
    'oldest message': 'How long the oldest message of the queue has waited',
  },
  settings: {
    server: serverSetting,
    messages: {
      type: 'threshold',
      unit: 'count',
      default: { warn: 100, limit: 1_000 },
      doc: 'How many messages may wait',
    },
    age: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 4 * 3_600_000 },
      doc: 'How long the oldest message may wait; a server keeps what it cannot deliver for days',
    },
  },
  privilege: 'usermod -aG postdrop <account> (Postfix), usermod -aG Debian-exim <account> (Exim)',
  async observe(_, { server }, { signal, date, step }): Promise<MailQueue | QueuePermissionError> {
    step('queue')
    try {
      return await readQueue(server, date(), signal)
    } catch (error) {
      if (error instanceof QueuePermissionError) return error
      throw error
    }
  },
  evaluate(waiting, { server, messages, age }): Result<'queue' | 'oldest message'>[] {
    if (waiting instanceof QueuePermissionError)
      return [notChecked('queue', 'permission', `${waiting.message}; ${privileges[server]}`)]
    const { messages: value, oldest, isDown } = waiting
    const measurement = { value, unit: 'count', ...messages, bound: 'atMost' } as const
    const size = isDown
      ? fail('queue', 'refused', `the mail system is down, and its queue contains ${count(value, 'message')}`, {
          measurement,
        })
      : atMost({ check: 'queue', what: 'messages in the queue:', value, unit: 'count', threshold: messages })
    if (!oldest) return [size, ok('oldest message', 'no message is waiting')]
    const why = oldest.reason === undefined ? [] : [oldest.reason]
    const what = `message ${oldest.id} has waited`
    return [
      size,
      atMost({ check: 'oldest message', what, value: oldest.ageMs, unit: 'duration', threshold: age, details: why }),
    ]
  },
})

/** Reads the listing of the mail server's own program, without a shell. Changes nothing. */
export default machineKind({
  name: 'mail-queue',
  title: 'The queue of the mail server of this machine (Postfix, Exim) is short and young',
  cost: { machine: 'It reads the queue of the mail server on this machine.' },
  open: () => ({}),
  checks: [queue],
})
