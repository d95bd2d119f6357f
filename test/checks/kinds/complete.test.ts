import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { AnyKind } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors, registered } from '../../../src/core/checks/kinds/index.ts'
import { describeSettings, loadKind } from '../../../src/core/checks/plan/index.ts'
import { kindsInPeers } from '../../support/engine/ended-connection.ts'
import { kindRows } from '../../support/engine/kind-rows.ts'

const root = new URL('../../..', import.meta.url).pathname
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const filesIn = (folder: string, begins = ''): readonly string[] =>
  readdirSync(join(root, folder))
    .filter((name) => name.startsWith(begins) && name.endsWith('.ts'))
    .map((name) => join(folder, name))

/** The keys and the names at the first level of the tables of a file. */
const rowsOf = (...files: readonly string[]): ReadonlySet<string> =>
  new Set(files.flatMap((file) => [...read(file).matchAll(/^ {2}'?([a-z-]+)'?[:,]/gm)].map(([, name = '']) => name)))
/** The kinds that the monitors in files have. */
const kindsIn = (...files: readonly string[]): ReadonlySet<string> =>
  new Set(files.flatMap((file) => [...read(file).matchAll(/kind: '([a-z-]+)'/g)].map(([, name = '']) => name)))

const inLeaks = rowsOf(...filesIn('test/prove', 'leak-rows'))
const inSilent = rowsOf('test/checks/kinds/silent-peers.test.ts', 'test/support/engine/tcp-kinds.ts')
const endings = [
  'test/checks/kinds/ended-connections.long.test.ts',
  'test/checks/kinds/ended-connections.peers.test.ts',
]
const inEnded = new Set([...rowsOf(...endings), ...kindsIn(...endings), ...kindsInPeers])
const inTested = new Set(
  [...read('docs/tested.md').matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, all = '']) => all.split(', ')),
)
const inCorpus = kindsIn(...filesIn('test/corpus'))
const inCounted = kindsIn(...filesIn('test/checks/kinds', 'costs'))
const tests = readdirSync(join(root, 'test/checks/kinds'))

type Demand = {
  readonly what: string
  readonly has: (name: KindName, kind: AnyKind) => boolean
  readonly of?: (kind: AnyKind) => boolean
}
const isRecognized = ({ recognition = 'none' }: AnyKind): boolean => recognition !== 'none'

/** The requirements of a kind besides its checks and its loader. */
const demands: readonly Demand[] = [
  {
    what: 'a test test/checks/kinds/KIND*.test.ts',
    has: (name) => tests.some((file) => file.startsWith(name)),
    of: ({ internal }) => !internal,
  },
  { what: 'a row in docs/tested.md', has: (name) => inTested.has(name) },
  {
    what: 'rows for silent peers and ended connections in test/checks/kinds/KIND.rows.ts',
    has: (name) => name in kindRows || (inSilent.has(name) && inEnded.has(name)),
  },
  {
    what: 'a row for leaks in test/checks/kinds/KIND.rows.ts',
    has: (name) => name in kindRows || inLeaks.has(name),
    of: ({ internal, target }) => !internal || target !== undefined,
  },
  { what: 'a cost in its declaration', has: (_, { cost }) => cost !== undefined },
  {
    what: 'in its declaration, what its account exposes to somebody who has stolen it',
    has: (_, { exposure }) => exposure !== undefined,
    // The password of a proxy gives access to no server of the kind.
    of: ({ internal, settings: { proxyPassword: _, ...settings } }) =>
      !internal && describeSettings(settings).some(({ type }) => type.includes('secret')),
  },
  {
    what: 'a row for costs in test/checks/kinds/KIND.rows.ts, which counts its cost',
    has: (name) => kindRows[name]?.costs !== undefined || inCounted.has(name),
    of: ({ cost }) => cost !== undefined && 'unit' in cost,
  },
  {
    what: 'a row in test/corpus',
    has: (name) => inCorpus.has(name),
    // No service manager runs where the tests run, so no fault can be planted in one.
    of: ({ internal, name }) => !internal && name !== 'service',
  },
  {
    what: "a recognition for discovery in its declaration, or 'none'",
    has: (_, { recognition }) => recognition !== undefined,
    of: ({ internal, runsOn }) => !internal && runsOn === 'network',
  },
  {
    what: 'in its declaration, what it sends that servers may lack (optionalParts)',
    has: (_, { optionalParts }) => optionalParts !== undefined,
    of: ({ runsOn }) => runsOn === 'network',
  },
  {
    what: 'a server type with standard ports in its line in src/core/checks/kinds/index.ts',
    has: (name) => Object.keys(registered[name].ports ?? {}).length > 0,
    of: isRecognized,
  },
  {
    what: 'a standard port in that line, because it recognizes its servers at standard ports alone',
    has: (name) => Object.values(registered[name].ports ?? {}).some((ports) => Object.keys(ports).length > 0),
    of: ({ recognition = 'none' }) => recognition !== 'none' && recognition.some((one) => one.onlyAtStandardPorts),
  },
]

test('each kind has a test, and a row in every table that proves or documents kinds', async () => {
  const kinds = await Promise.all((Object.keys(monitors) as KindName[]).map(loadKind))
  const lacking = kinds.flatMap((kind) =>
    demands
      .filter(({ has, of = () => true }) => of(kind) && !has(kind.name as KindName, kind))
      .map(({ what }) => `${kind.name} lacks ${what.replaceAll('KIND', kind.name)}`),
  )
  expect(lacking).toEqual([])
})
