import { expect, test } from 'vitest'
import {
  type Effect,
  States,
  subjectId,
  type Transition,
  type Verdict,
  victimsBySubject,
  type WatchedMonitor,
} from '../../../src/core/watch/states/index.ts'

const second = 1_000
const minute = 60 * second
const origin = 1_700_000_000_000

const monitor = (key: string, more: Partial<WatchedMonitor> = {}): WatchedMonitor => ({
  key,
  type: 'Sql',
  name: key,
  runsOn: 'network',
  every: { Standard: minute, Advanced: 60 * minute },
  dependsOn: [],
  confirmMs: 20 * second,
  flapping: 6,
  formerly: [],
  fingerprint: 'settings',
  ...more,
})

const ok: Partial<Verdict> = { level: 'ok' }
const refused: Partial<Verdict> = { level: 'failed', fault: 'refused' }

/** States with a clock in seconds since the start, and what they have log. */
function watching(monitors: readonly WatchedMonitor[], witnesses: readonly string[] = []) {
  const states = new States(origin, witnesses)
  const transitions: Transition[] = []
  const asks: Extract<Effect, { type: 'ask' }>[] = []
  let tries = 0
  const take = (effects: readonly Effect[]): void => {
    for (const effect of effects) {
      if (effect.type === 'transition') transitions.push(effect.transition)
      if (effect.type === 'ask') asks.push(effect)
      if (effect.type === 'witness') tries += 1
    }
  }
  take(states.configure(monitors, origin))
  return {
    states,
    transitions,
    asks,
    /** How often the witnesses were asked. */
    witnessTries: () => tries,
    take,
    log: () => transitions.map(({ what, key, check, from, to }) => `${what} ${key} ${check} ${from} → ${to}`),
    /** A run that began `at` seconds after the start, and what it says of the check `connect` or others. */
    run: (
      key: string,
      at: number,
      verdicts: Partial<Verdict> | readonly Partial<Verdict>[],
      depth: Verdict['depth'] = 'Standard',
    ) => {
      const beganAt = origin + at * second
      const all = [verdicts]
        .flat()
        .map((one): Verdict => ({ check: 'connect', level: 'ok', message: 'm', depth: 'Basic', ...one }))
      take(states.ran({ key, depth, beganAt, endedAt: beganAt + 10, verdicts: all }, beganAt + 10))
    },
    tick: (at: number) => take(states.tick(origin + at * second)),
  }
}

test('W18 two bad runs at least `confirm` apart begin an incident, dated from the first of them', () => {
  const { run, transitions, log } = watching([monitor('a')])
  run('a', 0, ok)
  run('a', 60, refused)
  run('a', 65, refused)
  run('a', 79, refused)
  expect(log()).toEqual([])
  run('a', 80, refused)
  expect(log()).toEqual(['begin a connect ok → failed'])
  expect(transitions[0]).toMatchObject({ at: origin + 60 * second, fault: 'refused', depth: 'Standard' })
})

test('W18 a caller who runs a monitor every second confirms nothing earlier', () => {
  const { run, log } = watching([monitor('a')])
  for (let at = 0; at < 20; at += 1) run('a', 60 + at, refused)
  expect(log()).toEqual([])
  run('a', 80, refused)
  expect(log()).toEqual(['begin a connect ok → failed'])
})

test('W18 an unreachable peer is tried again after 5, 10 and 20 s, and other faults after 20 s', () => {
  const { run, asks } = watching([monitor('a'), monitor('b')])
  run('a', 60, refused)
  expect(asks.map(({ at }) => (at - origin) / second)).toEqual([65, 70, 80])
  asks.length = 0
  run('b', 60, { level: 'failed', fault: 'data' })
  expect(asks.map(({ at }) => (at - origin) / second)).toEqual([80])
})

test('W18 200 restarts of 3 to 15 s with `flapping: off` are 200 blips and no incident', () => {
  const { run, log, asks, states } = watching([monitor('a', { flapping: Number.POSITIVE_INFINITY })])
  for (let restart = 0; restart < 200; restart += 1) {
    const at = (restart + 1) * 240
    const lasts = 3 + (restart % 13)
    asks.length = 0
    run('a', at, refused)
    for (const { at: askAt } of [...asks]) {
      const after = (askAt - origin) / second - at
      run('a', at + after, after < lasts ? refused : ok)
    }
  }
  expect(log().filter((one) => !one.startsWith('blip'))).toEqual([])
  expect(log()).toHaveLength(200)
  expect([...states.views(origin + 60 * 60 * minute)].map(({ state }) => state.blips)).toEqual([200])
})

test('W18 the seventh fault within an hour is one incident, `flapping`, until it stays healthy for 30 min', () => {
  const { run, log } = watching([monitor('a')])
  for (let at = 0; at < 20; at += 1) {
    run('a', 60 + at * 28, refused)
    run('a', 74 + at * 28, ok)
  }
  expect(log().filter((one) => !one.startsWith('blip'))).toEqual(['flapping a connect ok → failed'])
  const last = 74 + 19 * 28
  run('a', last + 29 * 60, ok)
  expect(log().filter((one) => one.startsWith('end'))).toEqual([])
  run('a', last + 31 * 60, ok)
  expect(log().filter((one) => one.startsWith('end'))).toEqual(['end a connect failed → ok'])
})

test('W18 a healthy run in Basic does not end the incident of a check that fails in Advanced', () => {
  const { run, log } = watching([monitor('a')])
  const deep: Partial<Verdict> = { check: 'replication', depth: 'Advanced' }
  run('a', 0, [ok, { ...deep, level: 'failed', fault: 'data' }], 'Advanced')
  run('a', 20, [ok, { ...deep, level: 'failed', fault: 'data' }], 'Advanced')
  run('a', 60, ok, 'Basic')
  run('a', 120, ok, 'Standard')
  expect(log()).toEqual(['begin a replication ok → failed'])
  run('a', 180, [ok, { ...deep, level: 'ok' }], 'Advanced')
  run('a', 190, [ok, { ...deep, level: 'ok' }], 'Advanced')
  expect(log()).toEqual(['begin a replication ok → failed', 'end a replication failed → ok'])
})

test('W18 a fault that only deeper runs show is looked at again there, also after an outage that all runs show', () => {
  const { run, log, asks } = watching([monitor('a')])
  run('a', 0, { level: 'failed', fault: 'tls' }, 'Advanced')
  run('a', 20, { level: 'failed', fault: 'tls' }, 'Advanced')
  asks.length = 0
  run('a', 60, ok)
  expect(asks).toMatchObject([{ depth: 'Advanced' }])
  run('a', 120, refused)
  run('a', 180, ok)
  run('a', 190, ok)
  expect(log()).toEqual(['begin a connect ok → failed'])
  run('a', 200, ok, 'Advanced')
  run('a', 210, ok, 'Advanced')
  expect(log()).toEqual(['begin a connect ok → failed', 'end a connect failed → ok'])
})

test('W18 two healthy runs at least 10 s apart are a recovery, and the second is asked for', () => {
  const { run, log, asks } = watching([monitor('a')])
  run('a', 0, refused)
  run('a', 20, refused)
  asks.length = 0
  run('a', 60, ok)
  expect(asks).toMatchObject([{ key: 'a', at: origin + 70 * second }])
  run('a', 65, ok)
  expect(log()).toHaveLength(1)
  run('a', 70, ok)
  expect(log()[1]).toBe('end a connect failed → ok')
})

test('W18 of a recovery in steps, the level, the class and the message are those of one run', () => {
  const { run, transitions } = watching([monitor('a')])
  const warning = (message: string): Partial<Verdict> => ({ level: 'warning', message })
  run('a', 0, refused)
  run('a', 20, refused)
  run('a', 60, warning('lag 40 s'))
  run('a', 65, warning('lag 35 s'))
  run('a', 70, { level: 'ok', message: 'lag 1 s' })
  run('a', 80, { level: 'ok', message: 'lag 0 s' })
  expect(transitions.slice(1)).toMatchObject([
    { what: 'change', from: 'failed', to: 'warning', message: 'lag 35 s' },
    { what: 'end', from: 'warning', to: 'ok', message: 'lag 0 s' },
  ])
})

test('W18 a refused sign-in is tried once more, and what is only remembered confirms and heals nothing', () => {
  const { run, log, asks } = watching([monitor('a')])
  const signIn: Partial<Verdict> = { check: 'sign-in' }
  run('a', 0, { ...signIn, level: 'failed', fault: 'auth' })
  expect(asks).toMatchObject([{ at: origin + 20 * second, repeatsRefused: true }])
  run('a', 60, { ...signIn, level: undefined, reason: 'remembered' })
  expect(log()).toEqual([])
  run('a', 80, { ...signIn, level: 'failed', fault: 'auth' })
  expect(log()).toEqual(['begin a sign-in ok → failed'])
  // The right password again: the check of the sign-in is only reported where it fails.
  run('a', 140, ok)
  run('a', 150, ok)
  expect(log()[1]).toBe('end a sign-in failed → ok')
})

test('W18 the results of an observation that another run takes over count once', () => {
  const { run, log, states } = watching([monitor('a')])
  run('a', 60, refused)
  const verdicts: Verdict[] = [{ check: 'connect', level: 'failed', fault: 'refused', message: 'm', depth: 'Basic' }]
  states.ran(
    { key: 'a', depth: 'Standard', beganAt: origin + 60 * second, endedAt: origin + 61 * second, verdicts },
    origin + 95 * second,
  )
  expect(log()).toEqual([])
})

test('W18 a threshold that has been exceeded for its `for` needs no second run', () => {
  const { run, log } = watching([monitor('a')])
  run('a', 0, { level: 'failed', fault: 'threshold', isHeld: true })
  expect(log()).toEqual(['begin a connect ok → failed'])
})

test('W18 a check without a verdict for three intervals and 10 min is unobserved, with the reason, and its incident stays open', () => {
  const { run, log, tick, transitions, states } = watching([monitor('a')])
  run('a', 0, refused)
  run('a', 20, refused)
  run('a', 60, { level: undefined, reason: 'permission' })
  tick(9 * 60)
  expect(log()).toHaveLength(1)
  tick(12 * 60)
  expect(log()[1]).toBe('unobserved a connect failed → unobserved')
  expect(transitions[1]?.message).toBe('not checked: permission')
  expect([...states.views(origin)][0]?.state.incident?.level).toBe('failed')
  run('a', 800, refused)
  expect(log()[2]).toBe('observed a connect unobserved → failed')
})

test('W18 an item that two whole runs no longer report is removed, and has not recovered', () => {
  const { run, log } = watching([monitor('a')])
  const disk: Partial<Verdict> = { check: 'disk', item: '/data', level: 'failed', fault: 'threshold' }
  run('a', 0, [ok, disk])
  run('a', 20, [ok, disk])
  // A run that ends at its first check says nothing of the disk.
  run('a', 60, refused)
  run('a', 120, ok)
  expect(log().filter((one) => one.includes('disk'))).toHaveLength(1)
  run('a', 180, ok)
  expect(log().at(-1)).toBe('removed a disk failed → removed')
})

test('W18 an incident goes on under a new name, starts its confirmation anew under other settings, and ends with its monitor', () => {
  const { run, log, states, take } = watching([monitor('a')])
  run('a', 0, refused)
  run('a', 20, refused)
  const id = [...states.views(origin)][0]?.state.incident?.id
  take(states.configure([monitor('b', { formerly: ['a'] })], origin + 30 * second))
  expect([...states.views(origin)].map(({ key, state }) => `${key} ${state.incident?.id}`)).toEqual([`b ${id}`])
  run('b', 60, ok)
  take(states.configure([monitor('b', { fingerprint: 'other' })], origin + 65 * second))
  run('b', 70, ok)
  expect(log()).toHaveLength(1)
  take(states.configure([], origin + 90 * second))
  expect(log().at(-1)).toBe('removed b connect failed → removed')
})

test('W18 an incident goes back to the name that its monitor has again, and has no other one', () => {
  const { run, log, states, take } = watching([monitor('a')])
  run('a', 0, refused)
  run('a', 20, refused)
  const names = (): readonly string[] =>
    [...states.views(origin)].map(({ key, state: { incident } }) =>
      [key, incident?.id, ...(incident?.formerly ?? []).map((one) => one.key)].join(' '),
    )
  const [first] = names()
  const id = first?.split(' ')[1]
  for (const [name, former] of [['b', 'a'], ['c', 'b'], ['b', 'a'], ['a']] as const)
    take(states.configure([monitor(name, { formerly: former ? [former] : [] })], origin + 30 * second))
  expect(names()).toEqual([`a ${id}`])
  expect(log()).toEqual(['begin a connect ok → failed'])
})

test('W4 of two incidents of one fault under two names of a monitor, one goes on, and receivers are told that the other one is the same', () => {
  const { run, states, take, transitions } = watching([monitor('a'), monitor('b')])
  for (const key of ['a', 'b']) for (const at of [0, 20]) run(key, at, refused)
  const ids = [...states.views(origin)].map(({ state }) => state.incident?.id)
  take(states.configure([monitor('b', { formerly: ['a'] })], origin + 30 * second))
  expect([...states.views(origin)].map(({ key, state }) => `${key} ${state.incident?.id}`)).toEqual([`b ${ids[1]}`])
  expect(transitions.at(-1)).toMatchObject({ what: 'removed', key: 'a', incident: ids[0], goesOnAs: { key: 'b' } })
})

/** A server that is killed after each of its runs: `levels` of the runs, by seconds since the start. */
function killedAfterEachRun(
  levels: Readonly<Record<number, Partial<Verdict>>>,
  more: Partial<WatchedMonitor> = {},
  fingerprintAt: (at: number) => string = () => 'own',
) {
  const stored = new Map<string, Parameters<States['restore']>[0][number]>()
  const log: string[] = []
  let asks: number[] = []
  for (const [at, verdict] of Object.entries(levels)) {
    const now = origin + Number(at) * second
    const states = new States(now)
    states.restore([...stored.values()], now, now - second)
    const started = states.configure([monitor('a', { fingerprint: fingerprintAt(Number(at)), ...more })], now)
    asks = started.flatMap((effect) => (effect.type === 'ask' ? [(effect.at - origin) / second] : []))
    const verdicts: Verdict[] = [{ check: 'connect', level: 'ok', message: 'm', depth: 'Basic', ...verdict }]
    const run = { key: 'a', depth: 'Standard' as const, beganAt: now, endedAt: now, verdicts }
    for (const effect of [...started, ...states.ran(run, now)]) {
      if (effect.type === 'transition')
        log.push(`${effect.transition.what} ${(effect.transition.at - origin) / second}`)
      if (effect.type !== 'store') continue
      if (effect.state) stored.set(effect.row.check, { row: effect.row, state: effect.state })
      else stored.delete(effect.row.check)
    }
  }
  return { log, asks }
}

test.each<[what: string, runs: Parameters<typeof killedAfterEachRun>[0], transitions: readonly string[]]>([
  [
    'a fault that lasts over restarts is confirmed since its first run',
    { 0: refused, 8: refused, 20: refused },
    ['begin 0'],
  ],
  ['a fault that is over before is a blip', { 0: refused, 30: ok }, ['blip 0']],
  ['a recovery is confirmed too', { 0: refused, 20: refused, 40: ok, 50: ok }, ['begin 0', 'end 40']],
  ['three intervals later, a fault begins anew', { 0: refused, 180: refused, 200: refused }, ['begin 180']],
  ['shortly before, it does not', { 0: refused, 179: refused }, ['begin 0']],
  [
    'three intervals later, a recovery begins anew',
    { 0: refused, 20: refused, 40: ok, 220: ok, 230: ok },
    ['begin 0', 'end 220'],
  ],
])('W18 what waits for its second run survives restarts: %s', (_, runs, transitions) => {
  expect(killedAfterEachRun(runs).log).toEqual(transitions)
})

test('W18 under other settings after a restart, what waited for its second run begins anew', () => {
  const runs = { 0: refused, 20: refused, 40: refused }
  expect(killedAfterEachRun(runs, {}, (at) => (at < 20 ? 'before' : 'after')).log).toEqual(['begin 20'])
})

test('W18 with long intervals, what waits for its second run does so for less than 10 min', () => {
  const rare = { every: { Standard: 3_600 * second } }
  expect(killedAfterEachRun({ 0: refused, 599: refused }, rare).log).toEqual(['begin 0'])
  expect(killedAfterEachRun({ 0: refused, 600: refused }, rare).log).toEqual([])
})

test('W18 after a start, svc asks for the second run that it ended before', () => {
  expect(killedAfterEachRun({ 0: refused, 8: refused }).asks).toEqual([20])
  expect(killedAfterEachRun({ 0: refused, 60: refused }).asks).toEqual([60])
  expect(killedAfterEachRun({ 0: refused, 20: refused, 40: ok, 45: ok }).asks).toEqual([50])
})

test('W18 states and incidents go on after a restart, whatever the clock shows then', () => {
  const before = watching([monitor('a')])
  const rows: Extract<Effect, { type: 'store' }>[] = []
  const keep = (effects: readonly Effect[]): void => {
    for (const effect of effects) if (effect.type === 'store') rows.push(effect)
  }
  const verdicts: Verdict[] = [{ check: 'connect', level: 'failed', fault: 'refused', message: 'm', depth: 'Basic' }]
  for (const at of [0, 20]) {
    const beganAt = origin + at * second
    keep(before.states.ran({ key: 'a', depth: 'Standard', beganAt, endedAt: beganAt, verdicts }, beganAt))
  }
  const state = rows.at(-1)?.state
  if (!state) throw new Error('nothing was stored')
  const after = new States(origin - 3_600 * second)
  const setBack = origin - 3_600 * second
  after.restore([{ row: { key: 'a', type: 'Sql', monitor: 'a', check: 'connect' }, state }], setBack, origin)
  after.configure([monitor('a')], setBack)
  const [view] = after.views(setBack)
  expect(view?.state).toMatchObject({ level: 'failed', incident: { id: state.incident?.id } })
  expect(view?.state.latest?.at).toBeLessThanOrEqual(setBack)
})

test('W18 137 monitors behind one that is down are one incident with 137 victims, and a fault of their own is told once it is back', () => {
  const proxy = monitor('proxy')
  const behind = Array.from({ length: 137 }, (_, at) =>
    monitor(`m${at}`, { dependsOn: [{ atLeast: 1, of: ['proxy'] }] }),
  )
  const { run, log, asks, tick, transitions } = watching([proxy, ...behind])
  for (const { key } of [proxy, ...behind]) run(key, 0, ok)
  for (const { key } of behind) run(key, 60, { level: 'failed', fault: 'timeout' })
  expect(asks.some(({ key }) => key === 'proxy')).toBe(true)
  run('proxy', 61, refused)
  for (const { key } of behind) run(key, 80, { level: 'failed', fault: 'timeout' })
  expect(log()).toEqual([])
  run('proxy', 81, refused)
  tick(82)
  expect(log().filter((one) => one.startsWith('begin'))).toHaveLength(138)
  expect(transitions.filter(({ cause }) => cause?.key === 'proxy')).toHaveLength(137)
  run('proxy', 200, ok)
  run('proxy', 210, ok)
  tick(211)
  for (const { key } of behind.slice(1)) run(key, 212, ok)
  for (const { key } of behind.slice(1)) run(key, 222, ok)
  run('m0', 215, { level: 'failed', fault: 'data' })
  tick(216)
  expect(log().some((one) => one.startsWith('freed'))).toBe(false)
  run('m0', 240, { level: 'failed', fault: 'data' })
  // The cause may be gone again: it is run once more before the fault counts as its own.
  expect(log().some((one) => one.startsWith('freed'))).toBe(false)
  expect(asks.at(-1)).toMatchObject({ key: 'proxy', at: origin + 240 * second + 10 })
  run('proxy', 241, ok)
  tick(242)
  expect(log().filter((one) => one.startsWith('freed'))).toEqual(['freed m0 connect failed → failed'])
})

test('W18 a group with one of two down stays well, so that what depends on it speaks for itself', () => {
  const { run, tick, transitions } = watching([
    monitor('one'),
    monitor('two'),
    monitor('shop', { dependsOn: [{ atLeast: 1, of: ['one', 'two'] }] }),
  ])
  run('two', 59, ok)
  run('one', 60, refused)
  run('one', 80, refused)
  run('shop', 85, refused)
  run('two', 106, ok)
  run('one', 106, refused)
  run('shop', 107, refused)
  tick(140)
  expect(transitions.find(({ key }) => key === 'shop')).toMatchObject({ what: 'begin' })
  expect(transitions.find(({ key }) => key === 'shop')?.cause).toBeUndefined()
})

test('W19 while no witness answers, peers that cannot be reached are not checked, and after 10 min the line itself has failed', () => {
  const { run, log, states, take, tick } = watching(
    [monitor('a'), monitor('host', { runsOn: 'machine' })],
    ['w1', 'w2'],
  )
  const witness = (name: string, at: number, isUp: boolean): void => {
    take(states.witnessed(name, { at: origin + at * second, isUp }, origin + at * second + 10))
  }
  run('a', 60, refused)
  witness('w1', 60, false)
  witness('w2', 60, false)
  expect(states.isIsolated).toBe(true)
  run('a', 80, refused)
  run('a', 120, refused)
  run('host', 120, { level: 'failed', fault: 'data' })
  run('host', 140, { level: 'failed', fault: 'data' })
  expect(log()).toEqual(['begin host connect ok → failed'])
  tick(661)
  expect(log()[1]).toBe('begin /svc/ line ok → failed')
  witness('w1', 700, true)
  expect(log()[2]).toBe('end /svc/ line failed → ok')
  expect(states.isIsolated).toBe(false)
})

test('W19 an unreachable peer is an incident only once a witness has answered a try that began after the first bad run', () => {
  const { run, log, states, take } = watching([monitor('a')], ['w1', 'w2'])
  take(states.witnessed('w1', { at: origin, isUp: true }, origin))
  run('a', 60, refused)
  run('a', 80, refused)
  expect(log()).toEqual([])
  take(states.witnessed('w1', { at: origin + 82 * second, isUp: true }, origin + 82 * second))
  run('a', 85, refused)
  expect(log()).toEqual(['begin a connect ok → failed'])
})

const on = (...keys: readonly string[]) => ({ dependsOn: [{ atLeast: 1, of: keys }] })

test('G3 a victim of a victim rests on the first cause, which alone is an incident of its own', () => {
  const { run, tick, transitions } = watching([
    monitor('gateway'),
    monitor('db', on('gateway')),
    monitor('shop', on('db')),
  ])
  for (const key of ['gateway', 'db', 'shop']) run(key, 0, ok)
  for (const at of [60, 81]) for (const key of ['shop', 'db', 'gateway']) run(key, at, refused)
  for (let at = 82; at < 90; at += 1) tick(at)
  const causes = transitions.map(({ what, key, cause }) => `${what} ${key}: ${cause?.key}`)
  expect(causes.toSorted()).toEqual(['begin db: gateway', 'begin gateway: undefined', 'begin shop: gateway'])
})

test('G3 a cause that was down earlier and of which nothing has been seen since takes no blame', () => {
  const { run, tick, log, transitions, asks } = watching([monitor('db'), monitor('shop', on('db'))])
  run('db', 0, ok)
  run('shop', 0, ok)
  run('db', 60, refused)
  run('db', 81, refused)
  expect(log()).toEqual(['begin db connect ok → failed'])
  // From now on its sign-in pauses, so that its runs show nothing.
  run('shop', 600, refused)
  run('shop', 621, refused)
  expect(asks.filter(({ key, at }) => key === 'db' && at >= origin + 600 * second)).not.toHaveLength(0)
  run('db', 622, { level: undefined, reason: 'remembered' })
  for (let at = 623; at < 652; at += 1) tick(at)
  expect(log()).toHaveLength(1)
  tick(652)
  expect(log().slice(1)).toEqual(['begin shop connect ok → failed'])
  expect(transitions.at(-1)?.cause).toBeUndefined()
})

test('G3 a fault waits anew for its cause after the process stood still, in which nothing could show it', () => {
  const { run, tick, log, transitions } = watching([monitor('db'), monitor('shop', on('db'))])
  run('db', 0, ok)
  run('shop', 0, ok)
  run('shop', 60, refused)
  run('db', 79, refused)
  run('shop', 81, refused)
  for (let at = 82; at < 90; at += 1) tick(at)
  tick(175)
  expect(log()).toEqual([])
  run('db', 176, refused)
  tick(177)
  expect(transitions.map(({ what, key, cause }) => `${what} ${key}: ${cause?.key}`)).toEqual([
    'begin db: undefined',
    'begin shop: db',
  ])
})

test('W18 a run that is reported late does not bring back what two later runs did not report any more', () => {
  const { run, log } = watching([monitor('a')])
  const signIn = { check: 'sign-in', level: 'failed', fault: 'auth' } as const
  run('a', 0, [ok, signIn])
  run('a', 10, ok)
  run('a', 70, ok)
  run('a', 130, ok)
  expect(log()).toEqual(['blip a sign-in ok → failed'])
  run('a', 0, [ok, signIn])
  run('a', 190, ok)
  expect(log()).toHaveLength(1)
})

test('G3 the victims of a monitor stand once, under the check that keeps it from being reached', () => {
  const { run, states, tick } = watching([monitor('db'), monitor('shop', on('db')), monitor('cart', on('db'))])
  const disk = { check: 'disk', level: 'failed', fault: 'threshold', isHeld: true } as const
  run('db', 0, [ok, disk])
  for (const at of [60, 81]) {
    run('db', at, [refused, { ...disk, item: '/a' }])
    for (const key of ['shop', 'cart']) run(key, at, refused)
  }
  for (let at = 82; at < 90; at += 1) tick(at)
  const victims = victimsBySubject(states.views(origin + 90 * second))
  expect([...victims].map(([id, of]) => [id, of.map(({ key }) => key)])).toEqual([
    [subjectId({ key: 'db', check: 'connect' }), ['shop', 'cart']],
  ])
})

test('G3 what shallower runs reach takes no blame for a fault that only deeper runs show', () => {
  const { run, tick, transitions } = watching([monitor('db'), monitor('shop', on('db'))])
  run('db', 0, ok)
  run('shop', 0, ok)
  run('db', 60, { level: 'failed', fault: 'tls' }, 'Advanced')
  run('db', 81, { level: 'failed', fault: 'tls' }, 'Advanced')
  run('db', 120, ok)
  run('shop', 130, refused)
  run('db', 150, ok)
  run('shop', 151, refused)
  tick(152)
  tick(183)
  expect(transitions.map(({ what, key, cause }) => `${what} ${key}: ${cause?.key}`)).toEqual([
    'begin db: undefined',
    'begin shop: undefined',
  ])
})

test('G3 a shallower run decides whether a cause can be reached of which only deeper runs have shown a fault', () => {
  const { run, tick, asks, transitions } = watching([monitor('db'), monitor('shop', on('db'))])
  run('db', 0, ok)
  run('shop', 0, ok)
  run('db', 60, { level: 'failed', fault: 'tls' }, 'Advanced')
  run('db', 81, { level: 'failed', fault: 'tls' }, 'Advanced')
  run('db', 120, ok)
  run('shop', 130, refused)
  // Somebody looks at nothing but the deepest runs.
  for (let at = 131; at < 151; at += 1) run('db', at, refused, 'Advanced')
  asks.length = 0
  run('shop', 151, refused)
  tick(152)
  expect(asks.map(({ key, depth }) => `${key} ${depth}`)).toEqual(['db Standard'])
  run('db', 153, refused)
  tick(154)
  expect(transitions.map(({ what, key, cause }) => `${what} ${key}: ${cause?.key}`)).toEqual([
    'begin db: undefined',
    'begin shop: db',
  ])
})

test('G3 a group that still has enough members takes no blame, and one that has too few does', () => {
  const two = { dependsOn: [{ atLeast: 2, of: ['a', 'b', 'c'] }] }
  const { run, tick, transitions } = watching([monitor('a'), monitor('b'), monitor('c'), monitor('shop', two)])
  const all = ['a', 'b', 'c', 'shop']
  const round = (at: number, ...down: readonly string[]): void => {
    for (const key of all) run(key, at, down.includes(key) ? refused : ok)
  }
  const causes = () => transitions.flatMap(({ what, key, cause }) => (key === 'shop' ? [`${what}: ${cause?.key}`] : []))
  round(0)
  for (const at of [60, 81]) round(at, 'a')
  expect(causes()).toEqual([])
  for (const at of [120, 141]) round(at, 'a', 'shop')
  tick(142)
  expect(causes()).toEqual(['begin: undefined'])
  for (const at of [180, 191]) round(at, 'a')
  for (const at of [240, 261]) round(at, 'a', 'b', 'shop')
  tick(262)
  expect(causes()).toEqual(['begin: undefined', 'end: undefined', 'begin: a'])
})

test('W18 a victim whose cause is down again is not freed while that is in doubt', () => {
  const { run, log, tick } = watching([monitor('db'), monitor('shop', { dependsOn: [{ atLeast: 1, of: ['db'] }] })])
  for (const at of [0, 60, 80]) for (const key of ['db', 'shop']) run(key, at, at === 0 ? ok : refused)
  tick(81)
  run('db', 200, ok)
  run('db', 210, ok)
  tick(211)
  run('shop', 232, refused)
  tick(233)
  run('db', 233, refused)
  tick(234)
  run('db', 253, refused)
  tick(254)
  expect(log().filter((one) => /freed|shop/.test(one))).toEqual(['begin shop connect ok → failed'])
})

test('W18 an isolation begins when the last witness goes, however long another one has been down', () => {
  const { states, take, log, tick } = watching([monitor('db')], ['w1', 'w2'])
  const answers = (witness: string, at: number, isUp: boolean): void =>
    take(states.witnessed(witness, { at: origin + at * second, isUp }, origin + at * second))
  answers('w1', 0, false)
  answers('w2', 0, true)
  answers('w2', 1_000, false)
  tick(1_001)
  expect(states.isIsolated).toBe(true)
  expect(log()).toEqual([])
  tick(1_601)
  expect(log()).toEqual(['begin /svc/ line ok → failed'])
})

test('W18 a peer that answered with an error just now is not unreachable because the run that confirms got no answer', () => {
  const { run, transitions } = watching([monitor('a')])
  run('a', 0, ok)
  run('a', 60, { level: 'failed', fault: 'protocol' })
  run('a', 65, { level: 'failed', fault: 'protocol' })
  run('a', 80, { level: 'failed', fault: 'timeout' })
  expect(transitions).toMatchObject([{ what: 'begin', fault: 'protocol' }])
})

test('W18 a caller who looks many times a second makes svc repeat a run without a verdict once in 5 s', () => {
  const { run, asks } = watching([monitor('a')])
  run('a', 0, ok)
  run('a', 60, refused)
  const before = asks.length
  for (let at = 81; at < 91; at += 0.2) run('a', at, { level: undefined, reason: 'starved' })
  expect(asks.length - before).toBe(2)
})

test('W18 the end of flapping is when the checks stayed healthy, also where the level never changed', () => {
  const { run, transitions } = watching([monitor('a', { flapping: 2 })])
  run('a', 0, ok)
  for (const at of [60, 120, 180]) {
    run('a', at, refused)
    run('a', at + 5, ok)
    run('a', at + 16, ok)
  }
  run('a', 2_100, ok)
  const ended = transitions.filter(({ what }) => what === 'end')
  expect(ended).toMatchObject([{ at: origin + 185 * second }])
})

test('W18 a fault that may be that of the line begins no flapping until a witness has answered', () => {
  const { run, log, states, take } = watching([monitor('a', { flapping: 1 })], ['w1'])
  run('a', 0, ok)
  run('a', 60, refused)
  run('a', 65, ok)
  run('a', 120, refused)
  expect(log().some((one) => one.startsWith('flapping'))).toBe(false)
  take(states.witnessed('w1', { at: origin + 121 * second, isUp: true }, origin + 122 * second))
  run('a', 125, refused)
  expect(log().some((one) => one.startsWith('flapping'))).toBe(true)
})

test('W18 a fault too many that begins while an incident stands asks the witnesses, and is flapping once one has answered', () => {
  const { run, log, states, take, witnessTries } = watching([monitor('a', { flapping: 1 })], ['w1'])
  const witness = (at: number): void =>
    take(states.witnessed('w1', { at: origin + at * second, isUp: true }, origin + at * second + 10))
  run('a', 0, ok)
  for (const at of [60, 80]) run('a', at, refused)
  witness(81)
  run('a', 82, refused)
  expect(log()).toEqual(['begin a connect ok → failed'])
  run('a', 120, ok)
  const before = witnessTries()
  run('a', 125, refused)
  expect(witnessTries()).toBe(before + 1)
  witness(126)
  run('a', 155, refused)
  expect(log().slice(1)).toEqual(['flapping a connect failed → failed'])
  expect(witnessTries()).toBe(before + 1)
})

test('W18 a run that began before a reload with other settings proves nothing', () => {
  const { run, log, states, take } = watching([monitor('a')])
  run('a', 0, ok)
  take(states.configure([monitor('a', { fingerprint: 'other' })], origin + 61 * second))
  run('a', 60, refused)
  run('a', 80, refused)
  expect(log()).toEqual([])
  run('a', 100, refused)
  expect(log()).toEqual(['begin a connect ok → failed'])
})

test('W18 a check that only failures name, and that a deeper run showed first, ends although no schedule runs so deep', () => {
  const { run, log, asks } = watching([monitor('a', { every: { Standard: minute } })])
  const signIn: Partial<Verdict> = { check: 'sign-in', level: 'failed', fault: 'auth' }
  for (const at of [60, 80]) run('a', at, [ok, signIn], 'Advanced')
  run('a', 120, ok)
  expect(asks.at(-1)).toMatchObject({ depth: 'Advanced', at: origin + 120 * second + 10 })
  run('a', 121, ok, 'Advanced')
  run('a', 131, ok, 'Advanced')
  expect(log()).toEqual(['begin a sign-in ok → failed', 'end a sign-in failed → ok'])
})

test('W18 a healthy run looks deeper at once after runs of its own depth have failed as well', () => {
  const { run, asks } = watching([monitor('a')])
  for (const at of [60, 80, 121, 241]) {
    run('a', at, refused, 'Advanced')
    if (at > 80) run('a', at + 1, ok)
  }
  const looks = (): number => asks.filter(({ depth, at }) => depth === 'Advanced' && at > origin + 120 * second).length
  const before = looks()
  run('a', 300, ok)
  expect(looks()).toBe(before)
  run('a', 320, refused)
  run('a', 340, ok)
  expect(looks()).toBe(before + 1)
})

test('W18 two faults on both sides of a pause of the sign-in, in which nobody looked, are no outage', () => {
  const { run, transitions, log } = watching([monitor('a')])
  run('a', 0, ok)
  run('a', 60, refused)
  for (const at of [70, 80, 120]) run('a', at, { check: 'sign-in', level: undefined, reason: 'remembered' })
  run('a', 360, refused)
  expect(log()).toEqual(['blip a connect ok → failed'])
  run('a', 380, refused)
  expect(transitions.at(-1)).toMatchObject({ what: 'begin', at: origin + 360 * second })
})

test('W18 a run that began while no witness answered proves nothing, however late it is reported', () => {
  const { run, log, states, take } = watching([monitor('a')], ['w1'])
  const witness = (at: number, isUp: boolean): void =>
    take(states.witnessed('w1', { at: origin + at * second, isUp }, origin + at * second))
  const late = (from: number, now: number): void => {
    const verdicts: Verdict[] = [{ check: 'connect', level: 'failed', fault: 'timeout', message: 'm', depth: 'Basic' }]
    const [beganAt, endedAt] = [origin + from * second, origin + (from + 5) * second]
    take(states.ran({ key: 'a', depth: 'Standard', beganAt, endedAt, verdicts }, origin + now * second))
  }
  run('a', 0, ok)
  witness(1, true)
  witness(61, false)
  witness(90, true)
  late(65, 91)
  late(88, 93)
  witness(95, true)
  run('a', 96, ok)
  expect(log()).toEqual(['blip /svc/ line ok → failed'])
  late(97, 102)
  run('a', 103, ok)
  expect(log().at(-1)).toBe('blip a connect ok → failed')
})

test('W18 a run of the time in which all witnesses were silent proves nothing, although one answers before that is known', () => {
  const log = (isSecondSilent: boolean): readonly string[] => {
    const watched = watching([monitor('a')], ['w1', 'w2'])
    const { run, states, take } = watched
    const witness = (name: string, at: number, isUp: boolean, now: number): void =>
      take(states.witnessed(name, { at: origin + at * second, isUp }, origin + now * second))
    const long = (from: number): void => {
      const verdicts: Verdict[] = [
        { check: 'connect', level: 'failed', fault: 'timeout', message: 'm', depth: 'Basic' },
      ]
      const [beganAt, endedAt] = [origin + from * second, origin + (from + 30) * second]
      take(states.ran({ key: 'a', depth: 'Standard', beganAt, endedAt, verdicts }, endedAt))
    }
    run('a', 0, ok)
    long(60)
    witness('w1', 93, true, 93)
    witness('w2', 93, true, 93)
    witness('w1', 90, false, 94)
    witness('w2', 90.02, !isSecondSilent, 94)
    long(90)
    return watched.log()
  }
  expect(log(true)).toEqual([])
  expect(log(false)).toEqual(['begin a connect ok → failed'])
})

/** A shop that is a victim of its database, which is well again since 210 s. Witnesses answer at 61 s and 81 s. */
function freedShop() {
  const shop = monitor('shop', { dependsOn: [{ atLeast: 1, of: ['db'] }] })
  const watched = watching([monitor('db'), shop], ['w1'])
  const { run, states, take, tick } = watched
  const witness = (at: number, isUp: boolean): void =>
    take(states.witnessed('w1', { at: origin + at * second, isUp }, origin + at * second))
  for (const at of [0, 60, 80]) {
    for (const key of ['db', 'shop']) run(key, at, at === 0 ? ok : refused)
    witness(at + 1, true)
  }
  for (const key of ['db', 'shop']) run(key, 85, refused)
  tick(86)
  for (const at of [200, 210]) run('db', at, ok)
  tick(211)
  const freed = (): readonly string[] => watched.log().filter((one) => one.startsWith('freed'))
  return { ...watched, witness, freed }
}

test('W18 a victim whose cause is gone does not part from it before a witness has answered', () => {
  const { run, tick, witness, freed, log } = freedShop()
  expect(log()).toEqual([
    'begin db connect ok → failed',
    'begin shop connect ok → failed',
    'end db connect failed → ok',
  ])
  run('shop', 240, refused)
  run('db', 241, ok)
  tick(242)
  expect(freed()).toEqual([])
  witness(243, true)
  tick(244)
  expect(freed()).toEqual(['freed shop connect failed → failed'])
})

test('W18 what a victim shows while the line of the machine is cut does not part it from its cause', () => {
  const { run, tick, witness, freed } = freedShop()
  run('shop', 240, refused)
  run('db', 241, ok)
  witness(243, false)
  witness(300, true)
  run('db', 301, ok)
  tick(302)
  expect(freed()).toEqual([])
  run('shop', 330, refused)
  run('db', 331, ok)
  witness(332, true)
  tick(333)
  expect(freed()).toEqual(['freed shop connect failed → failed'])
})

test('W18 a victim of a victim whose own cause is well rests on the one in the middle', () => {
  const { run, tick, transitions } = watching([
    monitor('net'),
    monitor('db', { dependsOn: [{ atLeast: 1, of: ['net'] }] }),
    monitor('shop', { dependsOn: [{ atLeast: 1, of: ['db'] }] }),
  ])
  for (const at of [60, 80]) for (const key of ['net', 'db']) run(key, at, refused)
  tick(81)
  for (const at of [100, 110]) run('net', at, ok)
  tick(111)
  run('shop', 112, refused)
  run('db', 125, refused)
  run('shop', 132, refused)
  tick(133)
  run('db', 134, refused)
  run('net', 135, ok)
  tick(136)
  tick(137)
  const summary = transitions.map(({ what, key, cause }) => `${what} ${key} ${cause?.key ?? ''}`)
  expect(summary).toEqual(['begin net ', 'begin db net', 'end net ', 'freed db ', 'begin shop db'])
})

test('W18 a victim whose cause is gone parts from it also after the clock of the machine was set back', () => {
  const shop = monitor('shop', { dependsOn: [{ atLeast: 1, of: ['db'] }] })
  const first = watching([monitor('db'), shop])
  for (const at of [60, 80]) for (const key of ['db', 'shop']) first.run(key, at, refused)
  first.tick(81)
  for (const at of [100, 110]) first.run('db', at, ok)
  first.tick(111)
  const rows = [...first.states.views(origin)].map(({ runsOn: _, isObserved: __, state, ...row }) => ({ row, state }))
  expect(rows.map(({ state }) => state.incident?.freedAt)).toContain(origin + 111 * second)
  const now = origin - 30 * minute
  const states = new States(now)
  states.restore(rows, now, now)
  states.configure([monitor('db'), shop], now)
  const at = (after: number, key: string, level: Verdict['level']): readonly Effect[] => {
    const beganAt = now + after * second
    const verdict: Verdict = { check: 'connect', level, fault: 'refused', message: 'm', depth: 'Basic' }
    return states.ran({ key, depth: 'Standard', beganAt, endedAt: beganAt + 10, verdicts: [verdict] }, beganAt + 10)
  }
  at(60, 'shop', 'failed')
  at(61, 'db', 'ok')
  const effects = states.tick(now + 62 * second)
  expect(effects.flatMap((one) => (one.type === 'transition' ? [one.transition.what] : []))).toEqual(['freed'])
})

test('W18 a fault that begins at the time of an earlier one, because the clock was set back, is another incident', () => {
  const { states, run, tick, take, transitions } = watching([monitor('a')])
  const beganAts = (): readonly string[] =>
    transitions.flatMap(({ what, at, incident }) => (what === 'begin' ? [`${(at - origin) / second} ${incident}`] : []))
  const outage = (at: number): void => {
    for (const after of [0, 20]) run('a', at + after, refused)
    for (const after of [300, 310]) run('a', at + after, ok)
    tick(at + 311)
  }
  outage(794)
  for (const _ of [1, 2]) {
    const move = (at: number): number => at - 2 * 60 * minute
    take(states.shift({ ms: -2 * 60 * minute, errorMs: -2 * 60 * minute, move, correct: move }))
    outage(794)
  }
  expect(beganAts().map((one) => one.split(' ')[0])).toEqual(['794', '794', '794'])
  expect(new Set(beganAts()).size).toBe(3)
  // What is stored meanwhile goes on with the ids.
  const rows = [...states.views(origin)].map(({ runsOn: _, isObserved: __, state, ...row }) => ({ row, state }))
  const next = watching([])
  next.states.restore(rows, origin, origin)
  next.take(next.states.configure([monitor('a')], origin))
  for (const at of [794, 814]) next.run('a', at, refused)
  expect(beganAts().concat(next.transitions.map(({ incident }) => `794 ${incident}`))).toHaveLength(4)
  expect(transitions.map(({ incident }) => incident)).not.toContain(next.transitions[0]?.incident)
})

test('W18 a victim that gets worse as it parts from its cause has the text and the class of then', () => {
  const { states, run, tick } = watching([monitor('db'), monitor('shop', { dependsOn: [{ atLeast: 1, of: ['db'] }] })])
  for (const at of [60, 80]) {
    run('db', at, refused)
    run('shop', at, { level: 'warning', message: 'it is slow' })
  }
  tick(81)
  expect(states.stateOf({ key: 'shop', check: 'connect' })).toMatchObject({
    incident: { cause: { key: 'db' }, level: 'warning', message: 'it is slow' },
  })
  for (const at of [100, 110]) run('db', at, ok)
  tick(111)
  for (const at of [120, 131.5]) run('shop', at, { level: 'failed', fault: 'auth', message: 'it refuses the sign-in' })
  run('db', 140, ok)
  run('shop', 140, { level: 'failed', fault: 'auth', message: 'it refuses the sign-in' })
  const state = states.stateOf({ key: 'shop', check: 'connect' })
  const incident = { level: 'failed', fault: 'auth', message: 'it refuses the sign-in', cause: undefined }
  expect(state).toMatchObject({ incident })
})

test('W18 a victim is not kept by a cause that is well, although the one between them has no verdicts', () => {
  const { run, tick, log } = watching([
    monitor('net'),
    monitor('db', { dependsOn: [{ atLeast: 1, of: ['net'] }] }),
    monitor('shop', { dependsOn: [{ atLeast: 1, of: ['db'] }] }),
  ])
  for (const at of [60, 80]) for (const key of ['net', 'db', 'shop']) run(key, at, refused)
  for (const key of ['net', 'db', 'shop']) run(key, 85, refused)
  tick(86)
  for (const at of [200, 210]) run('net', at, ok)
  for (let at = 211; at < 400; at += 1) {
    if (at % 60 === 0) run('shop', at, refused)
    if (at % 60 === 0) run('db', at, { check: 'sign-in', level: undefined, reason: 'remembered' })
    tick(at)
  }
  expect(log().filter((one) => /shop/.test(one))).toEqual([
    'begin shop connect ok → failed',
    'freed shop connect failed → failed',
  ])
})

test('W18 flapping that a witness makes certain after the peer is well again is as bad as its faults', () => {
  const { run, states, take, transitions } = watching([monitor('a')], ['w1', 'w2'])
  const answers = (at: number): void =>
    take(states.witnessed('w1', { at: origin + at * second, isUp: true }, origin + at * second + 10))
  for (let at = 0; at < 7; at += 1) {
    run('a', 60 + at * 28, refused)
    answers(62 + at * 28)
    run('a', 66 + at * 28, { ...ok, message: 'answers' })
  }
  const flapping = transitions.filter(({ what }) => what === 'flapping')
  expect(flapping).toMatchObject([{ to: 'failed', fault: 'refused', message: '7 faults within an hour: m' }])
})

test('W18 a victim does not part from its causes because one of them has not run while it waited for another', () => {
  const { run, tick, log } = watching([
    monitor('one'),
    monitor('two'),
    monitor('shop', { dependsOn: [{ atLeast: 1, of: ['one', 'two'] }] }),
  ])
  const shows: Readonly<Record<number, readonly [string, Partial<Verdict>]>> = {
    0: ['two', refused],
    20: ['two', refused],
    60: ['shop', refused],
    61: ['one', refused],
    77: ['two', refused],
    80: ['shop', refused],
    81: ['one', refused],
    180: ['one', ok],
    190: ['one', ok],
    205: ['two', refused],
    212: ['shop', refused],
    213: ['one', refused],
    222: ['shop', refused],
    223: ['one', refused],
    232: ['shop', refused],
    233: ['one', refused],
  }
  for (let at = 0; at < 260; at += 1) {
    const step = shows[at]
    if (step) run(step[0], at, step[1])
    tick(at)
  }
  expect(log().filter((one) => one.includes('shop'))).toEqual(['begin shop connect ok → failed'])
})
