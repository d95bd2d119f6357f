import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OperationSpec, operations, type Schema, schemaOf } from '../../src/core/protocol/index.ts'
import { ask, type Site, startSite } from './site.ts'

/** The text fields of requests that name nobody and nothing: of these, N7 says which source wins. */
const values: Readonly<Record<string, readonly string[]>> = {
  Authenticate: [
    // A provider is a way to sign in.
    'provider',
    'State',
    'oauth_token',
    'oauth_verifier',
    'Password',
    'ErrorView',
    'nonce',
    'uri',
    'response',
    'qop',
    'nc',
    'cnonce',
    'AccessToken',
    'AccessTokenSecret',
    'scope',
  ],
  GetAccessToken: ['RefreshToken'],
  ChangePassword: ['CurrentPassword', 'NewPassword'],
  SilenceMonitors: ['Reason'],
  AcknowledgeFault: ['Reason'],
  ReportHeartbeat: ['Message', 'Version', 'Output'],
  AddUser: ['DisplayName', 'Password', 'Reason'],
  CreateKey: ['Reason'],
  DisableUser: ['Reason'],
  EnableUser: ['Reason'],
  ForgetHeartbeat: ['Reason'],
  LinkUser: ['Provider', 'Reason'],
  RemoveDigest: ['Reason'],
  RemoveUser: ['Reason'],
  RevokeKey: ['Reason'],
  SetPassword: ['Password', 'Reason'],
  UnlinkUser: ['Provider', 'Reason'],
  UnlockUser: ['Reason'],
  GetAudit: ['Events'],
  GetHeartbeats: ['After', 'Like'],
  GetKeys: ['After', 'Like'],
  GetUsers: ['After', 'Like'],
  GetRoleHolders: ['After'],
  VerifyAudit: ['Head'],
}

const textOf = (schema: Schema) =>
  schema.kind === 'text' ? schema : schema.kind === 'list' && schema.item.kind === 'text' ? schema.item : undefined

const fields = (Object.values(operations) as readonly OperationSpec[]).flatMap((operation) =>
  Object.entries(operation.request.fields).flatMap(([field, declared]) => {
    const schema = schemaOf(declared)
    const text = textOf(schema)
    return text ? [{ operation, field, isList: schema.kind === 'list', isName: text.names === true }] : []
  }),
)

test('N7 each text field of a request is declared as a name, or listed here as a value', () => {
  const unnamed = fields.filter(({ isName }) => !isName)
  const listed = Object.entries(values).flatMap(([request, names]) => names.map((name) => `${request}.${name}`))
  expect(unnamed.map(({ operation, field }) => `${operation.name}.${field}`).toSorted()).toEqual(listed.toSorted())
})

let site: Site
beforeAll(async () => {
  site = await startSite()
})
afterAll(async () => await site?.server.stop())

const json = 'application/json'
const form = 'application/x-www-form-urlencoded'
const send = async (method: string, path: string, type = json, body = '') =>
  await ask(site.port, path, {
    method,
    ...(body === '' ? {} : { headers: { 'content-type': type, 'content-length': String(body.length) }, body }),
  })

const batches = (Object.values(operations) as readonly OperationSpec[]).flatMap(({ batch, name, request }) =>
  batch ? Object.keys(request.fields).map((field) => [name, field] as const) : [],
)

test.each(batches)('N7 R3 a batch of %s whose query has a %s reaches nobody', async (name, field) => {
  const before = site.calls.length
  const path = `/json/reply/${name}[]`
  const got = await send('POST', `${path}?${field.toLowerCase()}=one`, json, '[{"UserName":"ann"}]')
  expect([got.status, got.json.ResponseStatus?.Errors[0]?.FieldName]).toEqual([400, field.toLowerCase()])
  expect(site.calls).toHaveLength(before)
  expect((await send('POST', `${path}?${field}=&other=one`, json, '[]')).status).toBe(200)
})

const names = fields.filter(({ isName }) => isName)

test.each(names.map(({ operation, field, isList }) => [operation.name, field, isList] as const))(
  'N7 %s whose %s differs between query, body and form reaches nobody',
  async (name, field, isList) => {
    const before = site.calls.length
    const path = `/json/reply/${name}`
    const body = JSON.stringify({ [field.toLowerCase()]: isList ? ['one'] : 'one' })
    for (const [other, type, text] of [
      ['body', json, body],
      ['form', form, `${field}=one`],
    ] as const) {
      const got = await send('POST', `${path}?${field.toUpperCase()}=two`, type, text)
      const [fault] = got.json.ResponseStatus?.Errors ?? []
      expect([got.status, fault?.FieldName, fault?.Message]).toEqual([
        400,
        field,
        expect.stringMatching(
          new RegExp(`^'${field}' differs between the (query and the ${other}|${other} and the query)`),
        ),
      ])
      expect(got.text).not.toMatch(/one|two/)
    }
    expect(site.calls).toHaveLength(before)
    // The same twice, and what old clients send for an unset field, are no contradiction.
    await send('POST', `${path}?${field}=one`, json, body)
    await send('POST', `${path}?${field}=`, json, body)
    await send('POST', `${path}?${field}=one`, json, JSON.stringify({ [field]: isList ? [] : '' }))
    await send('POST', `${path}?${field}=one`, json, JSON.stringify({ [field]: null }))
    await send('POST', `${path}?${field}=one`, form, `${field}=`)
    const value = isList ? ['one'] : 'one'
    expect(site.calls.slice(before).map(({ request }) => (request as Record<string, unknown>)[field])).toEqual(
      Array.from({ length: 5 }, () => value),
    )
  },
)

const inPaths = names.flatMap(({ operation, field }) =>
  operation.routes
    .filter(({ path }) => path.includes(`{${field}}`))
    .flatMap(({ path, verbs }) => verbs.map((verb) => [verb, path, field] as const)),
)

test('N7 agents, sessions and drills are named in paths', () => {
  expect(inPaths.map(([verb, path]) => `${verb} ${path}`)).toEqual([
    'GET /drills/{Id}',
    'POST /heartbeats/{Name}',
    'DELETE /sessions/{Id}',
  ])
})

test.each(inPaths)('N7 %s %s whose %s differs elsewhere reaches nobody', async (verb, path, field) => {
  const before = site.calls.length
  const places = [
    [`?${field}=two`, json, '', 'query'],
    ['', json, `{"${field}":"two"}`, 'body'],
    ['', form, `${field}=two`, 'form'],
  ] as const
  for (const [query, type, body, other] of verb === 'GET' ? places.slice(0, 1) : places) {
    const got = await send(verb, path.replace(`{${field}}`, 'one') + query, type, body)
    expect([got.status, got.json.ResponseStatus?.Errors[0]?.FieldName]).toEqual([400, field])
    expect(got.json.ResponseStatus?.Message).toMatch(new RegExp(`the path\\b.*the ${other}|the ${other}\\b.*the path`))
  }
  expect(site.calls).toHaveLength(before)
  await send(verb, `${path.replace(`{${field}}`, 'one')}?${field}=one`)
  expect(site.calls).toHaveLength(before + 1)
})

test('N7 one answer names every field with a contradiction', async () => {
  const got = await send('POST', '/assignroles?UserName=eve&Roles=Admin', json, '{"UserName":"ann","Roles":["Ops"]}')
  expect(got.json.ResponseStatus?.Errors.map(({ FieldName }) => FieldName)).toEqual(['UserName', 'Roles'])
})
