import { expect, test } from 'vitest'
import type { Query } from '../../src/core/database/index.ts'
import type { Result } from '../../src/core/engine/index.ts'
import sqlserver from '../../src/core/kinds/sqlserver/index.ts'
import { escapeSequences } from '../support/faults.ts'
import { type RunKindOptions, runKind, secret } from '../support/run-kind.ts'
import { type TdsAnswer, type TdsPeer, tdsPeer } from '../support/tds.ts'
import { hungUp } from '../support/until.ts'

const word = 'correct horse'
type PartialQuery = Partial<Query> & { readonly sql: string }

/** Asks a simulated server, which answers a statement by what it contains; all else of it is not there. */
async function asking<T>(
  answers: Readonly<Record<string, TdsAnswer>>,
  use: (
    ask: (queries: readonly PartialQuery[], options?: RunKindOptions) => Promise<readonly Result[]>,
    server: TdsPeer,
  ) => T,
): Promise<Awaited<T>> {
  const answer = (sql: string): TdsAnswer => {
    for (const [part, input] of Object.entries(answers)) if (sql.includes(part)) return input
    if (sql.includes('SELECT 1 AS one')) return { rows: [{ one: 1 }] }
    if (sql.includes('IS_SRVROLEMEMBER')) return { rows: [{ sysadmin: 0 }] }
    return { error: { number: 208, message: 'Invalid object name.' } }
  }
  await using server = await tdsPeer({ answer })
  const ask = async (queries: readonly PartialQuery[], options: RunKindOptions = {}) => {
    const namedQueries = queries.map((query) => ({ name: 'jobs', depth: 'Standard' as const, ...query }))
    const url = `sqlserver://monitor@127.0.0.1:${server.port}/orders`
    const results = await runKind(
      sqlserver,
      { url, password: secret(word), queries: namedQueries },
      'Standard',
      options,
    )
    return results.filter(({ check }) => check === 'queries' || check === 'settings')
  }
  const result = await use(ask, server)
  await hungUp(server)
  return result
}
const rows = (...values: readonly (string | number | null)[]): TdsAnswer => ({
  rows: values.map((x) => ({ x, y: 'no' })),
})
const messages = (results: readonly Result[]): readonly string[] => results.map(({ message }) => message)

test('numbers and texts of the first column of a simulated server are evaluated', async () => {
  const answers = { waiting: rows(2), failed: rows(1, 7), dead: rows(null), text: rows('many'), none: rows() }
  await asking(answers, async (ask) => {
    const result = await ask([
      { name: 'queue', sql: "SELECT count(*) FROM jobs WHERE state = 'waiting'", atMost: { limit: 2 } },
      { name: 'failed', sql: 'SELECT n FROM failed', atMost: { limit: 6 } },
      { name: 'dead', sql: 'SELECT min(at) FROM dead', age: { limit: 1 } },
      { name: 'text', sql: 'SELECT text', atMost: { limit: 1 } },
      { name: 'stuck', sql: 'SELECT id FROM none', rows: { limit: 0 } },
    ])
    expect(messages(result)).toEqual([
      'queue: 2 (limit 2)',
      'failed: 7 (limit 6)',
      'dead: none (NULL)',
      'text: "many" is not a number',
      'stuck: rows 0 (limit 0)',
    ])
  })
})
test('each runs in a transaction that is rolled back, also after an error, on a simulated server', async () => {
  const answers = { well: rows(1), gone: { error: { number: 208, message: "Invalid object name 'gone'." } } }
  await asking(answers, async (ask, server) => {
    await ask([
      { sql: 'SELECT well -- so far', rows: { limit: 1 } },
      { sql: 'SELECT gone', rows: { limit: 1 } },
    ])
    const start = (sql: string): string =>
      `SET NOCOUNT ON; SET LOCK_TIMEOUT 500; SET ROWCOUNT 1001; BEGIN TRANSACTION;\n${sql}`
    const end = 'SET ROWCOUNT 0; IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION'
    expect(server.batches().slice(-4)).toEqual([start('SELECT well -- so far'), end, start('SELECT gone'), end])
  })
})
test('a statement that could write is never sent to a simulated server', async () => {
  await asking({}, async (ask, server) => {
    const result = await ask([{ name: 'x', sql: 'SELECT 1 COMMIT DELETE FROM jobs', rows: { limit: 1 } }])
    expect(messages(result)).toEqual([
      'query "x": sql contains COMMIT: only one read-only statement is allowed (if it is a name, write [COMMIT])',
    ])
    expect(server.batches()).toEqual([])
  })
})
test('a query that fails is one result with the message of the simulated server, and does not hide others', async () => {
  const denied = `The SELECT permission was denied on ${escapeSequences}'jobs' to ${word}.`
  const answers: Record<string, TdsAnswer> = {
    gone: { error: { number: 208, message: "Invalid object name 'gone'." } },
    closed: { error: { number: 229, message: denied } },
    locked: { error: { number: 1_222, message: 'Lock request time out period exceeded.' } },
    well: rows(1),
  }
  await asking(answers, async (ask) => {
    const results = await ask([
      { name: 'a', sql: 'SELECT gone', atMost: { limit: 1 } },
      { name: 'b', sql: 'SELECT closed', atMost: { limit: 1 } },
      { name: 'c', sql: 'SELECT locked', atMost: { limit: 1 } },
      { name: 'd', sql: 'SELECT well', atMost: { limit: 1 } },
    ])
    expect(messages(results)).toEqual([
      "a: the query failed: Invalid object name 'gone'.",
      expect.stringMatching(
        /^b: "monitor" has no permission to read this: The SELECT permission was denied on .*'jobs' to \[secret\]\.$/,
      ),
      'c: timed out waiting for a lock',
      'd: 1 (limit 1)',
    ])
    expect(results.map(({ fault }) => fault)).toEqual(['data', 'data', 'timeout', undefined])
    expect(results[1]?.details?.slice(-2)).toEqual(['next: grant SELECT on it', 'query: SELECT closed'])
    expect(JSON.stringify(results)).not.toMatch(/\\u001b|\\u0007|\\u009b|\\u202e|correct horse/)
  })
})
test('a query that hangs is cancelled by an attention before the deadline, at a simulated server', async () => {
  await asking({ hang: 'hang', well: rows(1) }, async (ask, server) => {
    const queries = [
      { name: 'slow', sql: 'SELECT hang', atMost: { limit: 1 } },
      { name: 'next', sql: 'SELECT well', atMost: { limit: 1 } },
    ]
    const result = await ask(queries, { timeoutMs: 1_500 })
    expect(messages(result)).toEqual([
      'slow: the query was cancelled because it took too long',
      expect.stringMatching(/^next: (1 \(limit 1\)|not run: )/),
    ])
    expect([server.attentions(), server.running()]).toEqual([1, 0])
  })
})
test('of many rows of a simulated server a thousand are read, and no value contains the password', async () => {
  const many = rows(...Array.from({ length: 5_000 }, (_, at) => at))
  await asking({ many, echo: rows(`you sent ${word}`) }, async (ask) => {
    const result = await ask([
      { sql: 'SELECT many', atMost: { limit: 5_000 } },
      { sql: 'SELECT many', rows: { limit: 1_000 } },
      { sql: 'SELECT echo', expect: 'a' },
    ])
    expect(messages(result)).toEqual([
      'jobs: 999 (limit 5000)',
      'jobs: only the first 1000 rows were evaluated; there are more',
      'jobs: rows, at least 1001 (limit 1000)',
      'jobs: is "you sent [secret]", expected "a"',
    ])
  })
})
test('a sysadmin is advised to use a read-only account, on a simulated server', async () => {
  const query = { sql: 'SELECT well', rows: { limit: 1 } }
  await asking({ IS_SRVROLEMEMBER: { rows: [{ sysadmin: 1 }] }, well: rows(1) }, async (ask) => {
    const [mighty, ...others] = await ask([query])
    expect(mighty).toMatchObject({
      status: 'warning',
      message: 'queries run as a sysadmin: use a read-only account for svc',
    })
    expect(messages(others)).toEqual(['jobs: rows 1 (limit 1)'])
    // No statement is sent, so nothing can be changed.
    expect(await ask([])).toEqual([])
  })
  // Where the server does not say, that is no failure of a query.
  await asking(
    { IS_SRVROLEMEMBER: { error: { number: 195, message: 'no such function' } }, well: rows(1) },
    async (ask) => expect(messages(await ask([query]))).toEqual(['jobs: rows 1 (limit 1)']),
  )
})
