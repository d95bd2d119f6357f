import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
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
