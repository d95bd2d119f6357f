import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Raw, Setting, SettingsSpec } from '../../../src/core/base/settings/index.ts'
import { notifySettings, receiverKinds } from '../../../src/core/watch/notify/index.ts'
import type { AnyReceiverKind } from '../../../src/core/watch/notify/receivers/kind.ts'
import { receiverRows } from '../../support/notify/receiver-rows.ts'
import { serviceRows } from '../../support/notify/service-rows.ts'

const root = new URL('../../..', import.meta.url).pathname
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const section = (path: string, title: string): string => read(path).split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? ''

const tests = readdirSync(join(root, 'test/watch/notify'))
const drills = read('test/watch/drill/broken-hops.peers.test.ts')
const guide = read('docs/notifications.md')
const tested = section('docs/tested.md', 'Notifications')

/** The names of the settings, also in groups, that a secret may be the value of. */
const secretsOf = (spec: SettingsSpec): readonly string[] =>
  Object.entries(spec).flatMap(([name, setting]: [string, Setting]) => {
    if (setting.type === 'group' || setting.type === 'groups') return secretsOf(setting.fields)
    return setting.type === 'secret' || (setting.type === 'url' && setting.orSecret) ? [name] : []
  })
/** The names of the settings that refer to a secret. */
const plantedIn = (value: unknown): readonly string[] =>
  typeof value !== 'object' || value === null
    ? []
    : Object.entries(value as Raw).flatMap(([name, inner]) => [
        ...(typeof inner === 'object' && inner !== null && Object.hasOwn(inner, 'env') ? [name] : []),
        ...plantedIn(inner),
      ])
function isPlanted({ name, settings }: AnyReceiverKind): boolean {
  const { planted = 'no secrets' } = receiverRows[name] ?? {}
  if (planted === 'services.test.ts') return isService(name)
  const all = planted === 'no secrets' ? [] : plantedIn(planted({ origin: 'http://127.0.0.1:1', mail: 1 }))
  return secretsOf(settings).every((one) => all.includes(one))
}

/** Services are proven by one test and one table. */
const isService = (name: string): boolean => Object.hasOwn(serviceRows, name)

type Demand = { readonly what: string; readonly has: (kind: AnyReceiverKind) => boolean }

/** The requirements of a kind of receiver besides its declaration and its line in `receiverKinds`. */
const demands: readonly Demand[] = [
  {
    what: 'a test test/watch/notify/KIND*.test.ts',
    has: ({ name }) => isService(name) || tests.some((file) => file.startsWith(name) && file.endsWith('.test.ts')),
  },
  { what: 'a row in test/support/notify/receiver-rows.ts', has: ({ name }) => Object.hasOwn(receiverRows, name) },
  { what: 'each of its secrets in the settings `planted` of that row', has: isPlanted },
  {
    what: 'a broken hop in test/watch/drill/broken-hops.peers.test.ts',
    // Services have one way: that of PagerDuty is broken.
    has: ({ name }) => isService(name) || drills.includes(`${name}: {`) || drills.includes(`kind: ${name}`),
  },
  {
    what: 'an example `kind: KIND` or `KIND: {…}` in docs/notifications.md',
    // The page of services is generated.
    has: ({ name }) => isService(name) || guide.includes(`kind: ${name}\n`) || guide.includes(`${name}: {`),
  },
  {
    what: 'a row in the section Notifications of docs/tested.md',
    has: ({ name }) => isService(name) || tested.includes(`\n| ${name} |`),
  },
  {
    what: 'names of settings that no other receiver setting has, and that are not its own name',
    has: ({ name, settings }) =>
      !Object.keys(settings).some((key) => key === name || Object.hasOwn(notifySettings, key)) &&
      !Object.hasOwn(notifySettings, name),
  },
]

const lacksOf = (kinds: readonly AnyReceiverKind[]): readonly string[] =>
  kinds.flatMap((kind) =>
    demands
      .filter(({ has }) => !has(kind))
      .map(({ what }) => `${kind.name} lacks ${what.replaceAll('KIND', kind.name)}`),
  )

test('M1 each kind of receiver has a test, and a row in every table that proves or documents kinds', () => {
  expect(lacksOf(receiverKinds)).toEqual([])
})

test('M1 no table has a kind of receiver that does not exist', () => {
  expect(Object.keys(receiverRows).filter((name) => receiverKinds.every((kind) => kind.name !== name))).toEqual([])
})

test('M1 everything that a new kind of receiver lacks is in one list', () => {
  const planted = {
    name: 'throwaway',
    doc: 'A kind without anything',
    settings: {
      token: { type: 'secret', required: true, doc: 'Token' },
      silences: { type: 'flag', doc: 'Without sound' },
    },
    needsStore: false,
    mistakes: () => [],
    to: () => '',
    target: () => undefined,
    open: () => Promise.reject(new Error('is not opened')),
  } as const satisfies AnyReceiverKind
  expect(lacksOf([...receiverKinds, planted])).toEqual(
    demands.map(({ what }) => `throwaway lacks ${what.replaceAll('KIND', planted.name)}`),
  )
})
