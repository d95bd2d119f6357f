import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  administration,
  neverInQuery,
  type OperationSpec,
  operations,
  secretFields,
} from '../../src/core/protocol/index.ts'
import { type Accounts, bearer, by, startAccounts } from './accounts.ts'
import { ask, type Got } from './site.ts'

const withSecrets = Object.values<OperationSpec>(operations).filter(
  ({ request, response }) => secretFields(request).length + secretFields(response).length > 0,
)

describe('operations with a password, a key or a code', () => {
  test.each(withSecrets.map((row) => [row.name, row] as const))(
    'N7 %s takes it in no query and no path, and not in a batch',
    (_, row) => {
      const secrets = secretFields(row.request)
      expect(neverInQuery(row)).toEqual(expect.arrayContaining([...secrets]))
      const inPaths = row.routes.flatMap(({ path }) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name))
      expect(inPaths.filter((name) => name !== undefined && secrets.includes(name))).toEqual([])
      expect(row.batch).toBeUndefined()
    },
  )

  test('N7 a field that is named like a secret is one', () => {
    const secretName = /password|secret|token|^key$|^code$|verifier/i
    const own = Object.values<OperationSpec>(administration).flatMap(({ request, response }) =>
      [request, response].flatMap((dto) =>
        Object.entries(dto.fields).flatMap(([name, field]) =>
          secretName.test(name) && field.kind === 'text' && !secretFields(dto).includes(name)
            ? [`${dto.name}.${name}`]
            : [],
        ),
      ),
    )
    expect(own).toEqual([])
  })
})

describe('administration over HTTP', () => {
  let accounts: Accounts
  let headers: Readonly<Record<string, string>>
  beforeAll(async () => {
    accounts = await startAccounts()
    headers = bearer((await accounts.signIn()).BearerToken)
  })
  afterAll(() => accounts.close())

  const get = (path: string): Promise<Got> => ask(accounts.port, path, { headers })
  const post = (path: string, body: object): Promise<Got> => accounts.post(path, body, headers)
  const read = async (path: string) => (await get(path)).json as unknown as Record<string, unknown>

  test('P70 lists take Take and After, and the pages together have every name once', async () => {
    for (const n of [1, 2, 3]) await accounts.admin.users.add({ userName: `user-${n}`, roles: ['Many'] }, by)
    for (const name of ['a', 'b', 'a']) {
      await accounts.admin.keys.create({ name, userName: 'user-1' }, by)
      await accounts.admin.keys.revoke(name, by)
    }
    const pages = async (path: string, rows: string, field: string): Promise<readonly string[]> => {
      const names: string[] = []
      for (let after = ''; ; ) {
        const page = (await read(`${path}Take=2&After=${after}`))[rows] as Record<string, string>[]
        if (page.length === 0) return names
        names.push(...page.map((row) => row[field] ?? ''))
        after = names.at(-1) ?? ''
      }
    }
    expect(await pages('/users?', 'Users', 'UserName')).toEqual(['Ann', 'Ned', 'user-1', 'user-2', 'user-3'])
    expect(await pages('/roles/holders?Role=Many&', 'Users', 'UserName')).toEqual(['user-1', 'user-2', 'user-3'])
    const at = new Date().toISOString()
    const past = `/roles/holders?Role=Many&At=${at}&`
    expect(await pages(past, 'Users', 'UserName')).toEqual(['user-1', 'user-2', 'user-3'])
    // A name that was used again is on one page, with all of its keys.
    expect(await pages('/keys?', 'Keys', 'Name')).toEqual(['a', 'a', 'b'])
    for (const path of ['/users', '/keys', '/agents', '/audit']) {
      for (const take of ['0', '1001', '-1']) {
        const { status, text } = await get(`${path}?Take=${take}`)
        expect([path, take, status, text]).toEqual([path, take, 400, expect.stringContaining("'Take' must be")])
      }
    }
  })

  test('N7 no answer, header or log repeats a password or a key, and every answer has no-store', async () => {
    const secret = 'zq-copper-lantern-77'
    const answers = [
      await post('/users/add', { UserName: 'Ned', Password: secret }),
      await post('/users/add', { UserName: '-', Password: secret }),
      await post('/users/add', { UserName: 'eve', Password: secret, Take: 7 }),
      await post('/users/password', { UserName: 'nobody', Password: secret }),
      await post(`/users/password?Password=${secret}`, { UserName: 'Ned' }),
      await post('/users/password', { UserName: 'Ned', Password: secret.repeat(99) }),
      await post('/json/reply/SetPassword', { UserName: 'Ned', Password: [secret] }),
      await post('/json/reply/AddUser[]', [{ UserName: 'x', Password: secret }] as object),
    ]
    expect(answers.map(({ status }) => status)).toEqual([409, 400, 200, 404, 400, 400, 400, 400])
    const made = await post('/keys/create', { Name: 'new', UserName: 'Ned' })
    const { Secret } = made.json as unknown as { Secret: string }
    for (const { text, headers } of answers) {
      expect(text).not.toContain(secret)
      expect(headers['cache-control']).toBe('no-store')
    }
    expect([made.status, made.headers['cache-control']]).toEqual([200, 'no-store'])
    expect((await get('/keys')).text).not.toContain(Secret)
    const log = JSON.stringify(accounts.log)
    expect(log).not.toContain(Secret)
    expect(log).not.toContain(secret)
  })

  test('N7 a key is in no JSONP answer', async () => {
    const { status, text } = await accounts.post(
      '/keys/create?callback=cb',
      { Name: 'jsonp', UserName: 'Ned' },
      headers,
    )
    expect([status, text.startsWith('cb(')]).toEqual([200, false])
  })

  test('S10 reading the audit is in the audit, once in a session', async () => {
    const readings = async () =>
      (await accounts.admin.audit.list({ limit: 100, events: ['audit.read'] })).map(({ who, address }) => [
        who,
        address,
      ])
    const first = (await readings()).length
    const other = bearer((await accounts.signIn()).BearerToken)
    for (let n = 0; n < 3; n += 1) await ask(accounts.port, '/audit', { headers: other })
    await accounts.post('/audit/verify', {}, other)
    await ask(accounts.port, '/roles/history?UserName=Ned', { headers: other })
    expect((await readings()).slice(0, -first || undefined)).toEqual([['Ann', '127.0.0.1']])
  })
})
