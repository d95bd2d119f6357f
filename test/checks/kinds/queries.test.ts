import { describe, expect, test } from 'vitest'
import { ProbeError } from '../../../src/core/base/probe-error.ts'
import {
  type Cell,
  type Column,
  ColumnReader,
  clockSetting,
  type Dialect,
  evaluateAsked,
  evaluateClock,
  maxRows,
  type Query,
  queriesProblem,
  queryMs,
  sqlProblem,
} from '../../../src/core/checks/database/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import { escapeSequences } from '../../support/faults/faults.ts'

const now = Date.UTC(2026, 7, 2, 12)
const hour = 3_600_000
const base: Query = { name: 'jobs', sql: 'SELECT x FROM jobs', depth: 'Standard' }
const judged = (settings: Partial<Query>, cells: readonly Cell[], more = false): readonly Result[] =>
  evaluateAsked({ query: { ...base, ...settings }, at: now, column: whole(cells, more) })
const whole = (cells: readonly Cell[], more = false): Column => ({
  cells,
  rows: cells.length,
  retained: cells.length,
  more,
  cut: false,
})
const levels = (...args: Parameters<typeof judged>): readonly string[] => judged(...args).map(({ status }) => status)
const messages = (...args: Parameters<typeof judged>): readonly string[] =>
  judged(...args).map(({ message }) => message)

describe('what is judged of the first column of a query', () => {
  test('the largest figure may be just as large as the limit', () => {
    const atMost = { warn: 10, limit: 100 }
    expect(levels({ atMost }, [10])).toEqual(['ok'])
    expect(levels({ atMost }, [10.01])).toEqual(['warning'])
    expect(levels({ atMost }, ['100', '7'])).toEqual(['warning'])
    expect(levels({ atMost }, ['7', '100.01'])).toEqual(['failed'])
    expect(messages({ atMost }, ['101'])).toEqual(['jobs: 101 (warn 10, fail 100)'])
    expect(judged({ atMost }, ['101'])[0]).toMatchObject({
      check: 'queries',
      fault: 'threshold',
      measurement: { value: 101, limit: 100 },
      details: ['query: SELECT x FROM jobs'],
    })
  })
  test('the smallest figure may be just as small as the limit', () => {
    const atLeast = { limit: 2 }
    expect(levels({ atLeast }, [2, 5])).toEqual(['ok'])
    expect(levels({ atLeast }, [5, 1.99])).toEqual(['failed'])
    expect(levels({ atLeast, atMost: { limit: 4 } }, [5, 1])).toEqual(['failed', 'failed'])
  })
  test('rows are counted with what is NULL, and more than were read are more than any limit', () => {
    const rows = { warn: 0, limit: 2 }
    expect(levels({ rows }, [])).toEqual(['ok'])
    expect(levels({ rows }, ['a'])).toEqual(['warning'])
    expect(levels({ rows }, ['a', null])).toEqual(['warning'])
    expect(levels({ rows }, ['a', null, 'c'])).toEqual(['failed'])
    expect(levels({ leastRows: { limit: 1 } }, ['a'])).toEqual(['ok'])
    expect(messages({ leastRows: { limit: 1 } }, [])).toEqual(['jobs: rows 0 (fail below 1)'])
    const full = Array.from({ length: maxRows }, () => 1)
    expect(levels({ rows: { limit: maxRows } }, full)).toEqual(['ok'])
    expect(messages({ rows: { limit: maxRows } }, full, true)).toEqual(['jobs: rows, at least 1001 (fail 1000)'])
  })
  test('the oldest date may be just as old as the limit, however a driver gives it', () => {
    const age = { warn: hour, limit: 2 * hour }
    const same: readonly Cell[] = [
      new Date(now - hour),
      '2026-08-02 11:00:00',
      '2026-08-02 11:00:00.000000+00',
      '2026-08-02 13:00:00+02',
      '2026-08-02T11:00:00Z',
      (now - hour) / 1_000,
      String(now - hour),
    ]
    for (const cell of same) {
      const [result] = judged({ age }, [cell])
      expect([cell, result?.status, result?.measurement?.value]).toEqual([cell, 'ok', hour])
    }
    expect(levels({ age }, [new Date(now - hour - 1)])).toEqual(['warning'])
    expect(levels({ age }, [new Date(now), new Date(now - 2 * hour)])).toEqual(['warning'])
    expect(levels({ age }, [new Date(now), new Date(now - 2 * hour - 1), null])).toEqual(['failed'])
    expect(messages({ age }, ['2026-08-02 09:00:00'])).toEqual(['jobs: oldest 3 h (warn 1 h, fail 2 h)'])
  })
  test('a date a minute ahead is a clock that is not ours, one beyond that is of another zone', () => {
    const age = { limit: hour }
    expect(levels({ age }, [new Date(now + 60_000)])).toEqual(['ok'])
    expect(levels({ age }, [new Date(now + 60_001)])).toEqual(['warning'])
    expect(messages({ age }, [new Date(now + 2 * hour)])).toEqual([
      'jobs: the oldest is 2 h in the future: a wrong clock, or a time zone other than UTC',
    ])
  })
  test('no value is nothing that waits for an age, and no answer for a figure, unless `none` says otherwise', () => {
    const age = { limit: hour }
    expect(messages({ age }, [null])).toEqual(['jobs: none (NULL)'])
    expect(messages({ age }, [])).toEqual(['jobs: none (no row)'])
    expect(levels({ age }, [null, null])).toEqual(['ok'])
    expect(levels({ age, none: 'fail' }, [null])).toEqual(['failed'])
    expect(levels({ age, none: 'warn' }, [])).toEqual(['warning'])
    expect(levels({ atMost: { limit: 3 } }, [null])).toEqual(['failed'])
    expect(levels({ atMost: { limit: 3 } }, [])).toEqual(['failed'])
    expect(levels({ atMost: { limit: 3 }, none: 'ok' }, [])).toEqual(['ok'])
    expect(levels({ expect: 'done' }, [])).toEqual(['failed'])
    // Amid others it is nothing, as min() and max() take it.
    expect(levels({ atMost: { limit: 3 } }, [null, 2])).toEqual(['ok'])
  })
  test('text in place of a number or of a date is a failure that shows it', () => {
    expect(messages({ atMost: { limit: 3 } }, ['many'])).toEqual(['jobs: "many" is not a number'])
    for (const cell of ['', ' ', 'NaN', 'Infinity', '0x10', '1,5', Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(messages({ atMost: { limit: 99 } }, [cell])[0]).toMatch(/ is not a number$/)
    }
    expect(messages({ age: { limit: 3 } }, ['yesterday'])).toEqual(['jobs: "yesterday" is not a date'])
    expect(
      ['2027-02-00', '2027-00-00 10:00:00', '0000-00-00'].flatMap((date) => messages({ age: { limit: 3 } }, [date])),
    ).toEqual([
      'jobs: "2027-02-00" is a date without a day',
      'jobs: "2027-00-00 10:00:00" is a date without a month and a day',
      'jobs: "0000-00-00" is a date without a year and a month and a day',
    ])
    for (const cell of ['-infinity', '0000-00-00 00:00:00', '', 7, new Date(Number.NaN)]) {
      expect([cell, ...levels({ age: { limit: 3 } }, [cell])]).toEqual([cell, 'failed'])
    }
  })
  test('every value meets what is expected', () => {
    expect(levels({ expect: 'done' }, ['done', 'done'])).toEqual(['ok'])
    expect(messages({ expect: 'done' }, ['done', 'failed', 'lost'])).toEqual([
      'jobs: is "failed", expected "done" (2 of 3)',
    ])
    expect(levels({ expect: '/^v[23]$/' }, ['v2', 'v3'])).toEqual(['ok'])
    expect(levels({ expect: '/^v[23]$/' }, ['v2', 'v4'])).toEqual(['failed'])
    expect(levels({ expect: '>= 3' }, [3])).toEqual(['ok'])
    expect(levels({ expect: '>= 3' }, [2])).toEqual(['failed'])
    expect(messages({ expect: '/^(?=a)(a+)+$/' }, ['a'.repeat(40).concat('!'), 'a'])[0]).toContain(
      'cannot be evaluated',
    )
  })
  test('what was not read is not taken for well', () => {
    expect(levels({ atMost: { limit: 3 } }, [1, 2], true)).toEqual(['ok', 'warning'])
    expect(messages({ atMost: { limit: 3 } }, [1, 2], true)[1]).toBe(
      'jobs: only the first 2 rows were evaluated; there are more',
    )
    // NULL in what was read says nothing of what was not.
    expect(levels({ age: { limit: 3 } }, [null], true)).toEqual(['ok', 'warning'])
    const column: Column = { cells: ['a', 'a'], rows: 700, retained: 2, more: false, cut: false }
    const of = (settings: Partial<Query>, more: Partial<Column> = {}) =>
      evaluateAsked({ query: { ...base, ...settings }, at: now, column: { ...column, ...more } })
    expect(of({ expect: 'a' }).map(({ status, message }) => [status, message])).toEqual([
      ['ok', 'jobs: is as expected'],
      ['warning', 'jobs: only the first 2 rows were evaluated; there are more'],
    ])
    expect(of({ rows: { limit: 699 } }).map(({ message }) => message)).toEqual(['jobs: rows 700 (fail 699)'])
    const cut = of({ expect: '/^a/' }, { rows: 2, cut: true })
    expect(cut.map(({ status, message }) => [status, message])).toEqual([
      ['ok', 'jobs: is as expected'],
      ['warning', 'jobs: only the first 1024 characters of a value were evaluated; there are more'],
    ])
  })
  test('names, values and errors are shown without escapes, and the SQL beside the message only', () => {
    const query = {
      ...base,
      name: `n${escapeSequences}`,
      sql: `SELECT '${escapeSequences}${'x'.repeat(999)}'`,
      expect: 'a',
    }
    const failed = new ProbeError('data', 'the query failed: no such table')
    const result = [
      ...evaluateAsked({ query, at: now, column: whole([`v${escapeSequences}`]) }),
      ...evaluateAsked({ query, at: now, cause: failed, afterMs: 3 }),
    ]
    expect(result).toHaveLength(2)
    for (const one of result) {
      expect(one.status).toBe('failed')
      expect(JSON.stringify(one)).not.toMatch(/\\u001b|\\u0007|\\u009b|\\u202e/)
      expect(one.message).not.toContain('SELECT')
      expect(one.details?.at(-1)).toMatch(/^query: SELECT .*…$/)
      expect(one.details?.at(-1)?.length).toBeLessThan(260)
    }
    expect(result[1]?.message).toMatch(/^n.*: the query failed: no such table$/)
  })
})

describe('the clock of a server', () => {
  test('the boundaries of the clock belong to what is well, in both directions', () => {
    for (const tripMs of [1, 4]) {
      const off = (aheadMs: number) => evaluateClock({ aheadMs, tripMs }, clockSetting.default).status
      expect([0, 2_000, -2_000].map(off)).toEqual(['ok', 'ok', 'ok'])
      expect([2_001, -2_001, 30_000, -30_000].map(off)).toEqual(['warning', 'warning', 'warning', 'warning'])
      expect([30_001, -30_001].map(off)).toEqual(['failed', 'failed'])
    }
  })
})

describe('what is taken of an answer', () => {
  test('1,000 rows, and 1,024 characters of a value', () => {
    const reader = new ColumnReader()
    for (let row = 0; row < maxRows; row += 1) expect(reader.take(row)).toBe(true)
    expect(reader.column()).toMatchObject({ rows: 1_000, more: false })
    expect(reader.take(1)).toBe(false)
    expect(reader.column()).toMatchObject({ rows: 1_000, more: true })
    const wide = new ColumnReader()
    wide.take('x'.repeat(5_000_000))
    expect(wide.column()).toMatchObject({ cells: ['x'.repeat(1_024)], cut: true })
    const narrow = new ColumnReader()
    narrow.take('x'.repeat(1_024))
    narrow.take(Buffer.alloc(1_024))
    expect(narrow.column().cut).toBe(false)
    narrow.take(Buffer.alloc(1_025))
    expect(narrow.column().cut).toBe(true)
  })
  test('no more than half a mebibyte, as JSON', () => {
    const reader = new ColumnReader()
    const wide = '\x01'.repeat(1_024)
    for (let row = 0; row < 900; row += 1) expect(reader.take(wide)).toBe(true)
    expect(reader.column()).toMatchObject({ rows: 900, retained: 85, more: false, cut: false })
    expect(reader.column().cells).toHaveLength(85)
    // Not even what would fit again: the values are the first ones.
    expect(reader.take(1)).toBe(true)
    expect(reader.column()).toMatchObject({ rows: 901, retained: 85 })
    for (let row = 901; row < maxRows; row += 1) expect(reader.take(wide)).toBe(true)
    expect(reader.take(wide)).toBe(false)
    expect(reader.column()).toMatchObject({ rows: maxRows, retained: 85, more: true })
  })
  test('whatever a driver gives is a cell', () => {
    const reader = new ColumnReader()
    for (const value of [null, undefined, 1, 12n, true, new Date(now), Buffer.from('ab'), { a: 1 }]) reader.take(value)
    expect(reader.column().cells).toEqual([null, null, 1, '12', 'true', new Date(now), 'ab', '{"a":1}'])
  })
  test('a query is ended before the deadline, and not begun where it could not end', () => {
    expect(queryMs(5_000)).toBe(3_000)
    expect(queryMs(30_000)).toBe(15_000)
    expect(queryMs(1_000)).toBe(700)
    expect(queryMs(350)).toBe(50)
    expect(() => queryMs(349)).toThrow('not run')
  })
})

describe('what svc.yaml may ask', () => {
  test('something is to be judged, of no more rows than are read, and not without end', () => {
    const problem = (settings: Partial<Query>): string | undefined =>
      queriesProblem([{ ...base, ...settings }], 'postgres')
    expect(problem({ atMost: {} })).toBeUndefined()
    expect(problem({})).toBe('query "jobs": has no condition: add one of atMost, atLeast, age, rows, leastRows, expect')
    expect(problem({ rows: { limit: 1_000 } })).toBeUndefined()
    expect(problem({ rows: { limit: 1_001 } })).toContain('svc reads at most 1000 rows')
    expect(problem({ leastRows: { warn: 1_001 } })).toContain('svc reads at most 1000 rows')
    const many = (n: number) =>
      queriesProblem(
        Array.from({ length: n }, () => ({ ...base, atMost: {} })),
        'mysql',
      )
    expect([many(50), many(51)]).toEqual([undefined, 'queries has more than 50 entries: list fewer'])
    expect(queriesProblem(undefined, 'sqlite')).toBeUndefined()
  })
  test.each(['postgres', 'mysql', 'sqlserver', 'sqlite'] satisfies Dialect[])('%s: only what reads', (dialect) => {
    for (const sql of [
      'SELECT 1',
      '  select count(*) from jobs;',
      '-- how many\nSELECT 1',
      '/* a */ (SELECT 1) UNION (SELECT 2)',
      'WITH a AS (SELECT 1 AS b) SELECT b FROM a',
    ])
      expect([sql, sqlProblem(sql, dialect)]).toEqual([sql, undefined])
    for (const sql of [
      '',
      ' -- nothing',
      'DELETE FROM jobs',
      'insert into jobs values (1)',
      '/**/DROP TABLE jobs',
      'CALL p()',
    ])
      expect([sql, typeof sqlProblem(sql, dialect)]).toEqual([sql, 'string'])
    expect(sqlProblem('DELETE FROM jobs', dialect)).toBe(
      'sql begins with "DELETE": only SELECT (or WITH … SELECT) is allowed',
    )
  })
  test('sqlserver: no second statement, and no word that could begin one', () => {
    for (const sql of [
      'SELECT 1; SELECT 2',
      'SELECT 1; DELETE FROM jobs',
      'SELECT 1 DELETE FROM jobs',
      'SELECT 1 COMMIT',
      "SELECT 'a' -- it's\n DELETE FROM jobs",
      'SELECT 1 /* /* */ DELETE FROM jobs /* */',
      "SELECT 1 /* /* */ ' */ DELETE FROM jobs --'",
      'SELECT 1 -- a\rDELETE FROM jobs',
      'SELECT 1COMMIT SELECT 1DELETE FROM dbo.jobs',
      'SELECT 1.5DELETE FROM jobs',
      'SELECT 1EXEC p',
      'SELECT 0xINSERT jobs DEFAULT VALUES',
      'SELECT 0x1FDROP TABLE jobs',
      'SELECT $COMMIT',
      "SELECT 'a'COMMIT",
      'SELECT [a]COMMIT',
      'SELECT @a=1COMMIT',
      'SELECT NEXT\u0001VALUE FOR dbo.ids',
      'SELECT NEXT/* */VALUE FOR dbo.ids',
      "SELECT '\u0000'",
      'SELECT 1\u000bCOMMIT',
      'SELECT 1 AS a\u0085COMMIT',
      'SELECT 1 AS a\u2028COMMIT',
      "SELECT 1 -- \u2029 ' \n COMMIT DELETE FROM t --'",
      "SELECT 1 -- \r ' \n COMMIT DELETE FROM t --'",
      'SELECT 1 AS a\u00a0COMMIT',
      'SELECT 1 AS aéDELETE FROM jobs',
      'SELECT 1 ＤＥＬＥＴＥ FROM jobs',
      "SELECT '\ud800'",
      "SELECT 1 RAISERROR('x',18,1) WITH LOG",
      "SELECT 1 SETUSER 'guest'",
      'SELECT 1 DISABLE TRIGGER a ON jobs',
      'SELECT 1 ENABLE TRIGGER a ON jobs',
      "SELECT 1 PRINT 'a'",
      'SELECT 1 READTEXT jobs.x @p 0 1',
      'SELECT 1 RETURN',
      'SELECT 1 THROW',
      'SELECT 1 DEALLOCATE c',
      'SELECT 1 END CONVERSATION @h',
      'SELECT {fn now()}',
      'SELECT 1 SELECT 2',
      'SELECT a FROM (SELECT 1 AS a) AS b SELECT 2',
      '(SELECT 1) SELECT 2',
      'WITH a AS (SELECT 1 AS b) SELECT b FROM (SELECT b FROM a) SELECT 3',
      'WITH a AS (SELECT 1 AS b) SELECT b FROM a SELECT 3',
      'TABLE jobs',
      'SELECT * INTO copy FROM jobs',
      'SELECT NEXT VALUE FOR ids',
      "SELECT * FROM OPENROWSET('x', 'y', 'DELETE FROM jobs')",
      "SELECT 'open",
      'WITH a AS (SELECT 1 AS b) UPDATE jobs SET state = 1',
    ])
      expect([sql, typeof sqlProblem(sql, 'sqlserver')]).toEqual([sql, 'string'])
    for (const sql of [
      "SELECT count(*) FROM jobs WHERE state = 'set; delete'",
      'SELECT max([update]) FROM [dbo].[insert] AS "into"',
      "SELECT 'it''s; drop' /* delete */ -- exec",
      'SELECT deleted_at, updates FROM jobs ORDER BY id OFFSET 1 ROWS FETCH NEXT 5 ROWS ONLY;',
      'SELECT 1.5, 1e5, .5, 2., -1.5E-3, 0x1F, $1.50, 1-1, 3/2 FROM jobs',
      'WITH a AS (SELECT 1 AS b), c (d) AS (SELECT b FROM a UNION ALL SELECT 2) SELECT d FROM c WHERE d IN (SELECT 1)',
      'SELECT 1 UNION SELECT 2 EXCEPT SELECT 3 INTERSECT (SELECT 1)',
      'SELECT TOP (5) WITH TIES x FROM dbo.jobs WITH (NOLOCK) ORDER BY x',
      'SELECT CASE WHEN EXISTS (SELECT 1 FROM jobs) THEN 1 ELSE 0 END AS [end], IIF(1 != 2, 1, 0)',
      "SELECT größe, @@ROWCOUNT, #a.b FROM #a WHERE x = N'– é \u00a0' AND y LIKE '%a%' COLLATE Latin1_General_CI_AS",
      'SELECT 1\r\n\t-- a\r\nFROM jobs',
    ])
      expect([sql, sqlProblem(sql, 'sqlserver')]).toEqual([sql, undefined])
  })
  test.each([
    ['SELECT\u00a01', 'sql contains U+00A0, which is not allowed outside quotes and brackets'],
    ['SELECT 😀', 'sql contains U+1F600, which is not allowed outside quotes and brackets'],
    ['SELECT {d}', 'sql contains "{", which is not allowed outside quotes and brackets'],
    ["SELECT '\u0001'", 'sql contains U+0001: of the control characters, only tabs and line ends are allowed'],
    ['SELECT 1\rFROM a', 'sql contains U+000D: of the control characters, only tabs and line ends are allowed'],
    ["SELECT '\udc00'", 'sql contains half of a surrogate pair: write the whole character'],
    ['SELECT 1FROM a', 'sql needs a blank between "1" and "FROM"'],
    ["SELECT 'a", 'sql has an unclosed quote, bracket or comment'],
    ['SELECT 1 SELECT 2', 'sql contains more than one statement: write each as a query of its own'],
    [
      'SELECT open FROM a',
      'sql contains OPEN: only one read-only statement is allowed (if it is a name, write [OPEN])',
    ],
  ])('sqlserver: it says what is wrong: %j', (sql, message) => expect(sqlProblem(sql, 'sqlserver')).toBe(message))
  test('mysql: no file is written, which no transaction takes back', () => {
    expect(sqlProblem("SELECT 1 INTO/**/OUTFILE '/tmp/x'", 'mysql')).toBe(
      'sql contains OUTFILE: only one read-only statement is allowed',
    )
    expect(sqlProblem("SELECT 1 INTO dumpfile '/tmp/x'", 'mysql')).toContain('DUMPFILE')
    for (const sql of ['/*!50000 CREATE TABLE x AS */ SELECT 1', '/*M! CREATE TABLE x AS */ SELECT 1'])
      expect(sqlProblem(sql, 'mysql')).toContain('an executable comment')
  })
})
