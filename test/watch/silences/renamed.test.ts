import { expect, onTestFinished, test, vi } from 'vitest'
import { SilenceKeeper } from '../../../src/core/service/silences/silence-keeper.ts'
import { noticeSubject } from '../../../src/core/service/watch/notice-subject.ts'
import type { SilenceRows } from '../../../src/core/store/index.ts'
import { type Matcher, matchersFor } from '../../../src/core/watch/notify/receivers/alertmanager-matchers.ts'
import { labelsOf } from '../../../src/core/watch/notify/receivers/message.ts'
import {
  type Acknowledgement,
  type HandSilence,
  mutesOf,
  type RenamedSubject,
  renamedAmong,
  silencesOf,
  silencesOfResult,
} from '../../../src/core/watch/silences/index.ts'
import { subjectOf } from '../../../src/core/watch/states/index.ts'
import { load } from '../../config/given.ts'
import { monitorOf, RenamedMonitor } from '../../support/notify/renamed-monitor.ts'

/** `Sql/tcp a` with an open incident, which is called `tcp b` and then `tcp c`. */
function renamed() {
  const fixture = new RenamedMonitor('a')
  fixture.level = 'failed'
  fixture.pass(60)
  fixture.reload(monitorOf('b', ['a']))
  fixture.reload(monitorOf('c', ['b']))
  const views = () => [...fixture.states.views(fixture.now)]
  const [view] = views()
  if (!view?.state.incident) throw new Error('no incident is open')
  const { incident } = view.state
  const [begin] = fixture.sent.flat()
  if (!begin) throw new Error('nothing was sent')
  const open = (): readonly RenamedSubject[] => renamedAmong(views().map((one) => ({ subject: one, state: one.state })))
  return { fixture, subject: subjectOf(view), state: view.state, incident, labels: labelsOf(begin), open }
}

const entryFor = ({ now }: RenamedMonitor, pattern: string): HandSilence => ({
  ...{ what: 'silence', id: 'h1', monitors: [pattern], by: 'alice', reason: 'patches' },
  ...{ from: now - 3_600_000, until: now + 3_600_000 },
})
const ackOf = ({ fixture, subject, incident: { id } }: ReturnType<typeof renamed>, name: string): Acknowledgement => ({
  ...{ what: 'ack', id: 'k1', incident: id, level: 'failed', by: 'alice', reason: 'INC-7' },
  ...{ from: fixture.now - 1_000, until: fixture.now + 3_600_000 },
  subject: { ...subject, key: `Sql/tcp/${name}`, monitor: `tcp ${name}` },
})

/** Whether Alertmanager silences an alert with these labels. */
const isSilenced = (labels: Readonly<Record<string, string>>, mutes: ReturnType<typeof mutesOf>): boolean => {
  const holds = ({ name, value, isRegex, isEqual }: Matcher): boolean => {
    const text = labels[name] ?? ''
    const isMatch = isRegex
      ? new RegExp(`^(?:${value.replace(/^\(\?i:(.*)\)$/, '$1')})$`, 'i').test(text)
      : text === value
    return isMatch === isEqual
  }
  return mutes.some(({ targets }) =>
    targets.some((target) => matchersFor(target, 'prod').some((matchers) => matchers.every(holds))),
  )
}
const mutesWith = (entries: readonly (HandSilence | Acknowledgement)[], now: number, open: readonly RenamedSubject[]) =>
  mutesOf({ clock: [], entries }, (subject) => noticeSubject('prod', subject), now, open)

test.each([
  ['its first name', 'Sql/tcp a', true],
  ['a name in between', 'tcp b', true],
  ['its present name', 'Sql/tcp c', true],
  ['a pattern for the present name', '*p C', true],
  ['all of its type', 'Sql/*', true],
  ['another name', 'tcp d', false],
  ['the first name with another type', 'App/tcp a', false],
])(
  'M8 M10 a silence by %s covers the open incident of a renamed monitor here and in Alertmanager: %s',
  (_, pattern, covers) => {
    const { fixture, subject, state, labels, open } = renamed()
    const entries = [entryFor(fixture, pattern)]
    expect(silencesOf(subject, state, { clock: [], entries }, fixture.now).length).toBe(covers ? 1 : 0)
    const { type, monitor, check } = subject
    const result = { type, monitor, check, level: 'failed', formerly: state.incident?.formerly } as const
    expect(silencesOfResult(result, { clock: [], entries }, fixture.now).length).toBe(covers ? 1 : 0)
    expect(isSilenced(labels, mutesWith(entries, fixture.now, open()))).toBe(covers)
  },
)

test('M8 a silence by a former name ends with the incident, and covers the next one no longer', () => {
  const { fixture, subject, labels, open } = renamed()
  const entries = [entryFor(fixture, 'tcp b')]
  fixture.level = 'ok'
  fixture.pass(60)
  fixture.level = 'failed'
  fixture.pass(60)
  const state = fixture.states.stateOf(subject)
  if (typeof state !== 'object' || !state.incident) throw new Error('no incident is open')
  expect(silencesOf(subject, state, { clock: [], entries }, fixture.now)).toEqual([])
  expect(isSilenced(labels, mutesWith(entries, fixture.now, open()))).toBe(false)
})

test.each(['a', 'b', 'c'])(
  'M9 M10 an acknowledgement that was made as tcp %s goes on under every name, also in Alertmanager',
  async (name) => {
    const one = renamed()
    const { fixture, subject, state, labels, open } = one
    const ack = ackOf(one, name)
    expect(isSilenced(labels, mutesWith([ack], fixture.now, open()))).toBe(true)
    const endings: string[] = []
    const end: SilenceRows['end'] = async (id) => {
      endings.push(id)
      return undefined
    }
    const rows: SilenceRows = { list: async () => [ack], add: async () => {}, end }
    // svc.yaml has the last rename alone.
    const config = await load(
      'types: {Sql: {host: false, monitors: [{kind: tcp, name: c, formerly: Sql/tcp/b, host: 127.0.0.1, port: 9}]}}',
    )
    const keeper = new SilenceKeeper({
      config,
      store: { rows: async () => rows, now: () => fixture.now },
      now: () => fixture.now,
      stateOf: (of, incident) => fixture.states.stateOf(of, incident),
    })
    onTestFinished(() => keeper.close())
    await keeper.read()
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    keeper.begin()
    vi.advanceTimersByTime(1_000)
    expect(keeper.of(subject, state).silences).toMatchObject([{ source: 'ack', id: 'k1' }])
    fixture.level = 'ok'
    fixture.pass(60)
    vi.advanceTimersByTime(1_000)
    const after = fixture.states.stateOf(subject)
    expect([keeper.of(subject, after).silences, keeper.inForce, endings]).toEqual([[], [], []])
  },
)
