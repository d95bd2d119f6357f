import { atMost, checksOn, fail, machineKind, notChecked, ok, type Result } from '../../engine/index.ts'
import { count } from '../../net/text.ts'
import type { SettingsSpec } from '../../settings/index.ts'
import { type MailQueue, type MailServer, QueuePermissionError, readQueue } from './queue.ts'

const serverSetting = {
  type: 'choice',
  observed: true,
  values: ['postfix', 'exim'],
  required: true,
  doc: 'The mail server of this machine: svc runs its `postqueue -j` or `exim -bpr`',
} as const satisfies SettingsSpec[string]

/** What the account needs to read the queue. */
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
  settings: {},
  open: () => ({}),
  checks: [queue],
})
