import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { isQuick } from '../support/suite/tier.ts'
import { type Accounts, bearer, startAccounts } from './accounts.ts'
import { ask } from './site.ts'

let site: Accounts
let token: string
beforeAll(async () => {
  site = await startAccounts()
  token = (await site.signIn()).BearerToken
})
afterAll(async () => await site?.close())
afterEach(async () => void (await site.post('/unassignroles', { UserName: 'Ned', Roles: ['Ops'] }, bearer(token))))

const json = (expires: string): string => `{"UserName":"Ned","Roles":["Ops"],"Meta":{"reason":"INC-1",${expires}}}`
const form = (meta: string): string => new URLSearchParams({ UserName: 'Ned', Roles: 'Ops', Meta: meta }).toString()
const csv = (meta: string): string => `UserName,Roles,Meta\r\nNed,[Ops],"${meta.replaceAll('"', '""')}"\r\n`
const jsv = (meta: string): string => `{UserName:Ned,Roles:[Ops],Meta:${meta}}`

/** Entries of Meta that say that there is an end, and not which, in every form of a request. */
const requests: readonly (readonly string[])[] = [
  ...[
    '"expires":null',
    '"Expires":null',
    '" expires ":null',
    '"expires":""',
    '"expires":"null"',
    '"expires":" "',
  ].flatMap((entry) => [
    ['/assignroles', 'application/json', json(entry)],
    ['/json/reply/AssignRoles', 'application/json', json(entry)],
    ['/api/AssignRoles', 'text/plain', json(entry)],
    ['/api/AssignRoles[]', 'application/json', `[${json(entry)}]`],
  ]),
  ...['{expires:}', '{expires:""}', '{reason:x,expires:}', '{expires:null}', '{reason:x, expires :}'].flatMap(
    (meta) => [
      ['/assignroles', 'application/x-www-form-urlencoded', form(meta)],
      ['/assignroles', 'text/csv', csv(meta)],
      ['/assignroles', 'application/jsv', jsv(meta)],
      [`/assignroles?Meta=${encodeURIComponent(meta)}`, 'application/json', '{"UserName":"Ned","Roles":["Ops"]}'],
      ['/json/reply/AssignRoles[]', 'application/jsv', `[${jsv(meta)}]`],
    ],
  ),
]

const send = async (path: string, type: string, body: string) =>
  await ask(site.port, path, { method: 'POST', headers: { 'content-type': type, ...bearer(token) }, body })
const rolesOfNed = async () =>
  (await site.post('/assignroles', { UserName: 'Ned' }, bearer(token))).json as {
    readonly AllRoles?: readonly string[]
  }

test.each(requests)(
  'O8 an end without a value grants nothing: %s as %s: %s',
  async (path = '', type = '', body = '') => {
    const { status, json } = await send(path, type, body)
    expect([
      status,
      json.ResponseStatus?.Errors.map(({ FieldName }) => FieldName.toLowerCase().replaceAll(' ', '')),
    ]).toEqual([400, ['meta.expires']])
    expect((await rolesOfNed()).AllRoles).toEqual([])
  },
)

test.each([
  ['/assignroles', 'application/json', json('"expires":5')],
  ['/assignroles', 'application/json', json('"expires":{}')],
  ['/assignroles', 'application/json', json('"expires":["PT2H"]')],
  ['/assignroles', 'application/json', '{"UserName":"Ned","Roles":["Ops"],"Meta":"expires"}'],
])('O8 an end of another type grants nothing: %s as %s: %s', async (path = '', type = '', body = '') => {
  expect((await send(path, type, body)).status).toBe(400)
  expect((await rolesOfNed()).AllRoles).toEqual([])
})

test('O8 an end after a blank in JSV is an end', async () => {
  const { status, json } = await send('/assignroles', 'application/jsv', jsv('{reason:x, expires:PT2H}'))
  expect([status, (json as { readonly Meta?: object }).Meta]).toMatchObject([200, { expires: 'PT2H' }])
})

/** A Meta as JSON, and the end in it. */
const metas: readonly (readonly [meta: Readonly<Record<string, string>> | undefined, end?: string])[] = [
  [undefined],
  [{}],
  [{ reason: 'INC-1' }],
  [{ expires: 'PT1H' }, 'PT1H'],
  [{ Expires: 'PT1H' }, 'PT1H'],
  [{ expires: 'PT3H', reason: 'INC-1' }, 'PT3H'],
  [{ expires: 'never' }, 'never'],
]
const jsvOf = (meta: object): string =>
  `{${Object.entries(meta)
    .map((entry) => entry.join(':'))
    .join(',')}}`
const types: Readonly<Record<string, (meta: Readonly<Record<string, string>> | undefined) => string>> = {
  'application/json': (Meta) => JSON.stringify({ UserName: 'Ned', Roles: ['Ops'], Meta }),
  'application/x-www-form-urlencoded': (meta) => form(meta === undefined ? '' : jsvOf(meta)),
  'text/csv': (meta) => csv(meta === undefined ? '' : jsvOf(meta)),
  'application/jsv': (meta) => (meta === undefined ? '{UserName:Ned,Roles:[Ops]}' : jsv(jsvOf(meta))),
}
const places = ['/assignroles', '/json/reply/AssignRoles', '/json/reply/AssignRoles[]'].flatMap((path) =>
  Object.keys(types).map((type) => [path, type] as const),
)
const isBatch = (path: string): boolean => path.endsWith('[]')

/** In the quick tier every other place, so that each path and each type is there. */
const placesOfTier = places.filter(
  ([path, type], at) => !(isBatch(path) && type.endsWith('urlencoded')) && (!isQuick() || at % 5 === 0),
)

test.each(placesOfTier)(
  'N7 O8 no second Meta makes a grant last longer than one of both says: %s as %s',
  async (path, type) => {
    for (const [inQuery, endInQuery] of metas) {
      for (const [inBody, endInBody] of metas) {
        const query = inQuery === undefined ? '' : `?Meta=${encodeURIComponent(jsvOf(inQuery))}`
        const body = types[type]?.(inBody) ?? ''
        const list = isBatch(path) && type !== 'text/csv' ? `[${body}]` : body
        const { status, json } = await send(`${path}${query}`, type, list)
        const label = `${JSON.stringify(inQuery)} and ${JSON.stringify(inBody)}`
        const differs = inQuery !== undefined && inBody !== undefined && jsvOf(inQuery) !== jsvOf(inBody)
        if (differs || (isBatch(path) && inQuery !== undefined)) {
          expect([status, json.ResponseStatus?.Errors[0]?.FieldName, label]).toEqual([400, 'Meta', label])
          expect((await rolesOfNed()).AllRoles).toEqual([])
          continue
        }
        const [answer] = [json].flat() as readonly { readonly Meta?: Readonly<Record<string, string>> }[]
        expect([status, answer?.Meta?.['expires'], label]).toEqual([200, endInQuery ?? endInBody, label])
        await site.post('/unassignroles', { UserName: 'Ned', Roles: ['Ops'] }, bearer(token))
      }
    }
  },
)

test.each([
  ['?Meta={expires:PT1H}&Meta={expires:never}', ''],
  ['?Meta={expires:PT1H}&meta={expires:never}', ''],
  ['?Meta={expires:PT1H,expires:never}', ''],
  ['', '&Meta={expires:PT1H}&Meta={expires:never}'],
  ['', '&Meta={expires:PT1H}&META={reason:INC-1}'],
])('N7 O8 two Metas in one place that contradict each other grant nothing: %s %s', async (query, fields) => {
  const body = `UserName=Ned&Roles=Ops${fields}`
  expect((await send(`/assignroles${query}`, 'application/x-www-form-urlencoded', body)).status).toBe(400)
  expect((await rolesOfNed()).AllRoles).toEqual([])
})

test('N7 O8 parts of Meta that do not contradict each other count together', async () => {
  const { status, json } = await send(
    '/assignroles?Meta={expires:PT1H}&Meta={reason:INC-1}',
    'application/json',
    '{"UserName":"Ned","Roles":["Ops"]}',
  )
  expect([status, (json as { readonly Meta?: object }).Meta]).toMatchObject([200, { expires: 'PT1H' }])
})

test('N7 O8 a Meta that differs between query and body changes nothing in other changes of roles either', async () => {
  await site.post('/assignroles', { UserName: 'Ned', Roles: ['Ops'] }, bearer(token))
  const body = '{"UserName":"Ned","Roles":["OPS"],"Meta":{"svc.changes":"1"}}'
  const { status } = await send('/unassignroles?Meta={reason:INC-1}', 'application/json', body)
  expect([status, (await rolesOfNed()).AllRoles]).toEqual([400, ['Ops']])
})
