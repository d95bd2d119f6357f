import { filesWithin } from '../../../src/core/base/files/index.ts'
import { NotifyDriver, type OpenedReceiver } from '../../../src/core/service/notify/notify-driver.ts'
import { openData } from '../../../src/core/store/index.ts'
import { openReceiver, type ReceiverConfig } from '../../../src/core/watch/notify/index.ts'
import { stateAt, subjects } from './killed-script.ts'

// Sends notifications by the script of faults until it is killed: with a real store and real webhooks, and a clock that is faster.
const [store = '', url = '', epoch = '0', speed = '1', stop = ''] = process.argv.slice(2)
const origin = 1_700_000_000_000
const stopAt = stop === '' ? Number.POSITIVE_INFINITY : Number(stop)
const passed = (): number => (Date.now() - Number(epoch)) * Number(speed)
const now = (): number => origin + passed()

const opened = async (name: string): Promise<OpenedReceiver> => {
  const config: ReceiverConfig = {
    name,
    kind: 'webhook',
    only: { severity: 'warning' },
    details: 'full',
    silences: 'honor',
    volatile: false,
    settings: { method: 'POST', each: 'message', accept: { status: ['2xx'] }, url: `${url}/${name}` },
  }
  const context = { server: 'prod', version: '0', files: filesWithin(30_000), now, warn: () => {} }
  const receiver = await openReceiver(config, context)
  return { receiver, rules: { name, folds: name === 'folds', remindMs: Number.POSITIVE_INFINITY, accepts: () => true } }
}

const data = await openData({ store, create: true })
const stateOf = (key: string) => {
  const at = subjects.findIndex((subject) => subject.key === key)
  return at < 0 ? undefined : stateAt(at, passed(), stopAt, origin)
}
const driver = new NotifyDriver({
  rows: async () => data.outbox,
  lookup: (subject) => {
    const state = stateOf(subject.key)
    return state ? { subject, state, isSilenced: false } : 'removed'
  },
  look: () => {},
  noticeOf: ({ subject: { type, monitor, check }, ...facts }) => ({
    ...facts,
    subject: { server: 'prod', type, monitor, check },
    victims: { count: 0, names: [] },
    tags: [],
  }),
  now,
  isHealthy: () => true,
  log: () => {},
})
await driver.restore()
driver.use(await Promise.all([opened('folds'), opened('plain')]))
process.stdout.write('ready\n')

let before = new Map<string, string>()
setInterval(() => {
  const open = new Map<string, string>()
  for (const subject of subjects) {
    const { incident } = stateOf(subject.key) ?? {}
    if (incident) open.set(subject.key, incident.id)
    const old = before.get(subject.key)
    if (old === incident?.id) continue
    const times = { at: now(), confirmedAt: now(), depth: 'Basic', message: 'changed' } as const
    if (old !== undefined)
      driver.transition({ ...subject, ...times, what: 'end', incident: old, from: 'failed', to: 'ok' })
    if (incident)
      driver.transition({ ...subject, ...times, what: 'begin', incident: incident.id, from: 'ok', to: 'failed' })
  }
  before = open
  driver.tick()
}, 3)
