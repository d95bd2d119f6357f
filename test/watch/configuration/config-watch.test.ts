import { expect, test } from 'vitest'
import {
  afterLook,
  afterNewFiles,
  afterRefusal,
  type ConfigWatch,
  type Consequences,
  isSettled,
  isToRead,
  newConfigWatch,
  overdue,
  reasonToWait,
  type Stamp,
} from '../../../src/core/watch/configuration/index.ts'

const second = 1_000
const minute = 60_000
/** `a1 b1`: the files a and b, each with its content. */
const files = (text: string): Stamp => new Map(text.split(' ').map((one) => [one.slice(0, 1), one]))

/**
 * The seconds at which svc reads what its looks find. `looks`: what they find from which second on; it looks every 2 s. `verdict`:
 * what becomes of what it reads. `loads`: the files that a load reads, where they are others.
 */
function readings(
  looks: Readonly<Record<number, string>>,
  {
    verdict = () => undefined,
    loads = (text) => text,
    until = 60,
  }: {
    readonly verdict?: (text: string) => string | undefined
    readonly loads?: (text: string) => string
    readonly until?: number
  } = {},
): { readonly at: readonly string[]; readonly watch: ConfigWatch } {
  let watch = newConfigWatch(files(looks[0] ?? ''), 0)
  const at: string[] = []
  for (let now = 2; now <= until; now += 2) {
    const [, text = ''] = Object.entries(looks).findLast(([from]) => Number(from) <= now) ?? []
    const read = files(loads(text))
    const again = new Map([...files(text)].filter(([name]) => watch.latest.has(name)))
    watch = afterLook(watch, again, now * second)
    if (!isToRead(watch, now * second)) continue
    if (!isSettled(watch, read)) {
      watch = afterNewFiles(watch, read, now * second)
      at.push(`${now} gives up`)
      continue
    }
    const reason = verdict(text)
    at.push(`${now} ${reason ?? 'in force'}`)
    watch = reason === undefined ? newConfigWatch(read, now * second) : afterRefusal(watch, reason, now * second)
  }
  return { at, watch }
}

const broken = (text: string): string | undefined => (text.includes('!') ? 'invalid' : undefined)

test.each<[string, Record<number, string>, readonly string[]]>([
  ['nothing changes', { 0: 'a1' }, []],
  ['a change is read after 5 s', { 0: 'a1', 3: 'a2' }, ['10 in force']],
  ['an editor that saves again begins the time anew', { 0: 'a1', 3: 'a2', 8: 'a3' }, ['14 in force']],
  ['a change that is taken back at once is never read', { 0: 'a1', 3: 'a2', 7: 'a1' }, []],
  ['a file that is being written is never read', { 0: 'a1', 2: 'a2', 6: 'a3', 10: 'a4', 14: 'a5' }, ['20 in force']],
  ['a mistake is read once', { 0: 'a1', 3: 'a!' }, ['10 invalid']],
  ['its correction is read', { 0: 'a1', 3: 'a!', 20: 'a2' }, ['10 invalid', '26 in force']],
  ['and so is the way back', { 0: 'a1', 3: 'a!', 20: 'a1' }, ['10 invalid', '26 in force']],
  ['another mistake is read, too', { 0: 'a1', 3: 'a!', 20: 'a!!' }, ['10 invalid', '26 invalid']],
  ['a mistake that is in force already is no change', { 0: 'a!' }, []],
  ['each of several files counts', { 0: 'a1 b1', 3: 'a1 b2' }, ['10 in force']],
])('W9 %s', (_, looks, expected) => {
  expect(readings(looks, { verdict: broken }).at).toEqual(expected)
})

test('W9 a file that a change includes has to settle as well before the change is put into force', () => {
  const looks = { 0: 'a1', 3: 'a2 b1', 14: 'a2 b2' }
  expect(readings(looks).at).toEqual(['10 gives up', '20 in force'])
})

test('W9 a load that reads other content than the look before it is given up', () => {
  const watch = afterLook(newConfigWatch(files('a1'), 0), files('a2'), 0)
  expect(isSettled(watch, files('a3'))).toBe(false)
  expect(isToRead(afterNewFiles(watch, files('a3'), 6 * second), 6 * second)).toBe(false)
})

test('W9 a load that ends at a mistake in svc.yaml has read fewer files, and counts', () => {
  const loads = (text: string): string => (text.includes('!') ? text.slice(0, 2) : text)
  expect(readings({ 0: 'a1 b1', 3: 'a! b1', 20: 'a2 b1' }, { verdict: broken, loads }).at).toEqual([
    '10 invalid',
    '26 in force',
  ])
})

test('W9 what waits is overdue after 10 min, whatever mistakes follow the first, and no longer once it is in force', () => {
  const looks = { 0: 'a1', 3: 'a!', 300: 'a!!' }
  const { watch } = readings(looks, { verdict: broken, until: 400 })
  expect(overdue(watch, 10 * second + 10 * minute - 1)).toBeUndefined()
  expect(overdue(watch, 10 * second + 10 * minute)).toBe('invalid')
  const corrected = readings({ ...looks, 700: 'a2' }, { verdict: broken, until: 800 }).watch
  expect(overdue(corrected, 60 * minute)).toBeUndefined()
})

const nothing: Consequences = { removed: [], of: 40, ends: [], receivers: [] }
const monitors = (count: number): readonly string[] => Array.from({ length: count }, (_, at) => `App/tcp m${at}`)

test.each<[string, Partial<Consequences>, RegExp | undefined]>([
  ['nothing that matters', {}, undefined],
  ['a tenth of the monitors', { removed: monitors(4) }, undefined],
  ['more than a tenth of the monitors', { removed: monitors(5) }, /^it removes 5 of 40 monitors: App\/tcp m0, /],
  ['the only monitor', { removed: monitors(1), of: 1 }, /^it removes 1 of 1 monitors/],
  ['a monitor with an open incident', { ends: ['App/tcp a'] }, /^it ends the open incident of App\/tcp a/],
  ['a receiver', { receivers: ['oncall'] }, /^it removes the receiver oncall/],
  ['another file', { replaces: { before: '/etc/a', after: '/b' } }, /^\/b takes the place of \/etc\/a/],
])('W9 a valid change that removes %s', (_, consequences, reason) => {
  const waits = reasonToWait({ ...nothing, ...consequences })
  if (reason === undefined) expect(waits).toBeUndefined()
  else {
    expect(waits).toMatch(reason)
    expect(waits).toContain('svc serve reload')
  }
})
