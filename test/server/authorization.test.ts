import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OperationSpec, operations } from '../../src/core/protocol/index.ts'
import { type OwnPage, ownPages } from '../../src/core/server/routes.ts'
import { isQuick } from '../support/suite/tier.ts'
import { type Cast, casesOf, runMatrix, startCast } from './authorization-matrix.ts'
import { type Row, rows } from './authorization-table.ts'

type Declared = {
  readonly operations: Readonly<Record<string, OperationSpec>>
  readonly pages: Readonly<Record<string, OwnPage>>
}

const sorted = (list: Iterable<string>): readonly string[] => [...new Set(list)].toSorted()
/** The rows of an operation or a page: the one with its name, and those with more words. */
const rowsNamed = (name: string): readonly Row[] =>
  Object.entries(rows).flatMap(([key, row]) => (key.split(' ')[0] === name ? [row] : []))
const places = (all: readonly (readonly [path: string, verbs: string])[]): readonly string[] =>
  sorted(all.flatMap(([path, verbs]) => verbs.split(' ').map((verb) => `${verb} ${path}`)))
const without = (verbs: readonly string[]): string => verbs.filter((verb) => verb !== 'OPTIONS').join(' ')

/** Where the tables of the service and the table of who may do what differ, a line for each operation and page. */
function differences({ operations, pages }: Declared): readonly string[] {
  const declared = new Map<string, readonly string[]>()
  for (const { name, routes, replyVerbs, batch } of Object.values(operations)) {
    const own = routes.map(({ path, verbs }) => [path, without(verbs)] as const)
    const replies = [['{name}', without(replyVerbs)] as const, ...(batch ? [['{name}[]', 'POST'] as const] : [])]
    declared.set(name, places([...own, ...replies]))
  }
  for (const { paths, post, anyHost } of Object.values(pages)) {
    const own = paths.map((path) => [path, post ? 'GET POST' : 'GET'] as const)
    declared.set(paths[0], [...places(own), ...(anyHost ? ['any Host'] : [])])
  }
  const names = sorted([...declared.keys(), ...Object.keys(rows).map((key) => key.split(' ')[0] ?? '')])
  return names.flatMap((name) => {
    const own = rowsNamed(name)
    const described = places(
      own.flatMap((row) => [
        ...Object.entries(row.at),
        ...(row.reply === undefined ? [] : [['{name}', row.reply] as const]),
        ...(row.batch ? [['{name}[]', 'POST'] as const] : []),
      ]),
    )
    const table = [...described, ...(own.some(({ anyHost }) => anyHost) ? ['any Host'] : [])].join(', ')
    const service = (declared.get(name) ?? []).join(', ')
    return table === service
      ? []
      : [`${name}: the service has ${service || 'nothing'}, the table ${table || 'nothing'}`]
  })
}

describe('who may do what', () => {
  test('S11 T6 R3 every operation, page, path and verb has a row in the table of who may do what', () => {
    expect(differences({ operations, pages: ownPages })).toEqual([])
  })

  test('S11 T6 an operation, a page, a path or a verb without a row is found', () => {
    const { assignRoles, getNodes } = operations
    const grown = {
      operations: {
        ...operations,
        dropUsers: { ...assignRoles, name: 'DropUsers', routes: [{ verbs: ['POST'], path: '/users/drop' }] },
        getNodes: { ...getNodes, replyVerbs: ['GET', 'POST', 'DELETE'], batch: true },
        assignRoles: { ...assignRoles, routes: [...assignRoles.routes, { verbs: ['POST'], path: '/assign' }] },
      } as unknown as Declared['operations'],
      pages: { ...ownPages, dump: { ...ownPages.metrics, paths: ['/dump'], anyHost: true } } as Declared['pages'],
    }
    expect(differences(grown)).toEqual([
      '/dump: the service has GET /dump, any Host, the table nothing',
      expect.stringMatching(/^AssignRoles: the service has POST \/assign, /),
      'DropUsers: the service has POST /users/drop, POST {name}, POST {name}[], the table nothing',
      expect.stringMatching(/^GetNodes: the service has DELETE \{name\}, /),
    ])
  })
})

describe('the authorization matrix', () => {
  let cast: Cast
  beforeAll(async () => {
    cast = await startCast()
  })
  afterAll(() => cast.close())

  test('S11 T6 A9 O8 T2 every caller gets what the table says, refusals name nothing and change nothing', async () => {
    const { sent, mistakes } = await runMatrix(cast, casesOf(cast, { all: !isQuick() }))
    expect(mistakes.slice(0, 20)).toEqual([])
    expect(sent).toBeGreaterThan(isQuick() ? 400 : 37_700)
  })
})
