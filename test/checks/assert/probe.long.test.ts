import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createRedactor, noRedaction, safeUrl, sanitize } from '../../../src/core/base/net/text.ts'
import { parseJsonPath, readJsonPath } from '../../../src/core/checks/assert/document.ts'
import {
  describeMismatch,
  PatternBudget,
  patternMismatch,
  statusAllowed,
  unmetEach,
  withPatternBudget,
} from '../../../src/core/checks/assert/expectation.ts'
import { merged, reachable } from '../../../src/core/checks/engine/index.ts'
import { givenUp } from '../../support/hostile/given-up.ts'
import { codePoints } from '../../support/suite/code-points.ts'
import { processorMs } from '../../support/suite/processor-time.ts'

describe('text from a peer', () => {
  const hidden = /[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f]/

  test('is one printable line of bounded length, whatever it was', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: codePoints, maxLength: 40 }), fc.uint8Array({ maxLength: 40 })),
        fc.integer({ min: 1, max: 20 }),
        (input, times) => {
          const line = sanitize(typeof input === 'string' ? input.repeat(times) : input)
          return !hidden.test(line) && [...line].length <= 256 && line.isWellFormed()
        },
      ),
      { numRuns: 300 },
    )
  })

  test('loses complete escape sequences, not just their first character', () => {
    expect(sanitize('a\x1b[31;1mb\x1b]0;title\x07c\x1b]8;;http://x\x1b\\d\x1bPq\x1b\\e\x1bcf\x9b2Jg')).toBe('abcdefg')
  })

  test('is truncated at the requested length', () => {
    expect(sanitize('x'.repeat(300), 10)).toBe('xxxxxxxxx…')
    expect(sanitize('🙂'.repeat(20), 10)).toBe(`${'🙂'.repeat(9)}…`)
  })

  test('costs no more when it is long', () => {
    const start = processorMs()
    expect(sanitize('\x1b]'.repeat(5_000_000))).toBe(`${']'.repeat(255)}…`)
    expect(processorMs() - start).toBeLessThan(2_000)
  })

  test('shows no secret, even one that control characters split', () => {
    const hide = createRedactor(['tok-12345', 'no'])
    expect(hide('a tok-12345 b')).toBe('a [secret] b')
    expect(hide('tok\x1b[0m-12345')).toBe('[secret]')
    expect(hide('no, nothing')).toBe('no, nothing')
  })

  test('a URL is shown without user, query values and fragment', () => {
    expect(safeUrl(new URL('https://u:p@a.test:8443/x?key=abc&b=2#frag'))).toBe('https://a.test:8443/x?key=…&b=…')
  })
})

describe('expectations', () => {
  test('a text, a comparison or a pattern is evaluated', () => {
    const cases = [
      ['3', '3', true],
      ['3', '>= 3', true],
      ['3', '> 3', false],
      ['2.5', '<3', true],
      ['', '< 3', false],
      ['abc', '>= 0', false],
      ['x', '!= x', false],
      ['x', '!= y', true],
      ['=x', '= =x', true],
      ['v1.2', '/^V\\d/i', true],
      ['a/b', '/a/', true],
      ['a/b', '/etc/passwd', false],
    ] as const
    for (const [actual, expectation, fault] of cases) {
      expect([actual, expectation, describeMismatch(actual, expectation) === undefined]).toEqual([
        actual,
        expectation,
        fault,
      ])
    }
  })

  test('a pattern is applied to the first 64 KiB', () => {
    expect(patternMismatch(`${'x'.repeat(65_535)}y`, 'y')).toBeUndefined()
    expect(patternMismatch(`${'x'.repeat(65_536)}y`, 'y')).toBe('does not match y')
  })

  test('a harmless pattern that RE2 cannot run is evaluated even where this process gets no CPU time for a while', async (context) => {
    if (process.platform === 'win32') return context.skip('Windows stops no process')
    const expectation = new URL('../../../src/core/checks/assert/expectation.ts', import.meta.url).href
    // Each match takes some 20 ms, one after the other: a stop falls into one of them.
    const child = spawn(process.execPath, [
      '--input-type=module',
      '--eval',
      `const { patternMismatch } = await import(${JSON.stringify(expectation)})
      const text = 'a'.repeat(4_000)
      const seen = new Set()
      process.stdin.on('end', () => { console.log(JSON.stringify([...seen])); process.exit() }).resume()
      console.log('ready')
      const match = () => { seen.add(patternMismatch(text, '/(?=a)a*b/')); setImmediate(match) }
      match()`,
    ])
    let input = ''
    child.stdout.on('data', (chunk) => {
      input += String(chunk)
    })
    const gone = once(child, 'close')
    await once(child.stdout, 'data')
    for (let stops = 0; stops < 5; stops += 1) {
      await pause(100)
      child.kill('SIGSTOP')
      await pause(400)
      child.kill('SIGCONT')
    }
    child.stdin.end()
    await gone
    expect(input).toBe('ready\n["does not match /(?=a)a*b/"]\n')
  }, 60_000)

  test('a pattern that RE2 cannot run and that got no CPU time does not count as one that backtracks (the time is simulated)', () => {
    const spy = vi.spyOn(process, 'threadCpuUsage').mockReturnValue({ user: 0, system: 0 })
    onTestFinished(() => spy.mockRestore())

    expect(patternMismatch('a'.repeat(40), '/(?=a)(a+)+b/')).toBe(
      'cannot be evaluated: /(?=a)(a+)+b/ got less than 250 ms of processor time in 2000 ms: this machine is too busy',
    )
  }, 60_000)

  test('patterns of one answer that RE2 cannot run share a budget, and the next answer has its own', () => {
    const text = `${'a'.repeat(60)}!`
    const together = new PatternBudget()
    const start = processorMs()
    const mismatches = together.within(() => [
      patternMismatch(text, '/^(?=a)a+!$/'),
      patternMismatch(text, '/^(?=a)(a+)+$/'),
      patternMismatch(text, '/^(?=a)(a+)+b$/'),
      patternMismatch(text, '/^(?=a)a+!$/'),
    ])
    expect(processorMs() - start).toBeLessThan(1_000)
    const untried = 'was not tried, as another pattern for this answer timed out'
    expect(together.timedOut).toMatch(new RegExp(String.raw`^/\^\(\?=a\)\(a\+\)\+\$/ ${givenUp}$`))
    expect(mismatches).toEqual([
      undefined,
      `cannot be evaluated: ${together.timedOut}`,
      `cannot be evaluated: /^(?=a)(a+)+b$/ ${untried}`,
      `cannot be evaluated: /^(?=a)a+!$/ ${untried}`,
    ])
    expect(withPatternBudget(() => patternMismatch(text, '/^(?=a)a+!$/'))).toBeUndefined()
    expect(patternMismatch(text, '/^(?=a)a+!$/')).toBeUndefined()
  })

  test('patterns that RE2 cannot run and that each stay within their limit take no longer than a second together (the time is simulated)', () => {
    const attempt = (ms: number) => {
      let used = 0
      const spy = vi.spyOn(process, 'threadCpuUsage').mockImplementation(() => {
        const user = used * 1_000
        used += ms
        return { user, system: 0 }
      })
      const together = new PatternBudget()
      try {
        const all = together.within(() => Array.from({ length: 6 }, () => patternMismatch('a', '/(?=a)a/')))
        return { givenUp: together.timedOut, all }
      } finally {
        spy.mockRestore()
      }
    }
    const late = 'cannot be evaluated: /(?=a)a/ was not tried, as those before it took more than 1000 ms'
    const other = 'cannot be evaluated: /(?=a)a/ was not tried, as another pattern for this answer timed out'
    // Looked at three times for each pattern: 125 makes 250 ms.
    expect(attempt(125).all).toEqual([undefined, undefined, undefined, undefined, undefined, late])
    expect(attempt(126).all).toEqual([undefined, undefined, undefined, undefined, late, other])
    expect(attempt(126).givenUp).toBe('/(?=a)a/ was not tried, as those before it took more than 1000 ms')
    expect(attempt(100).givenUp).toBeUndefined()
  })

  test('a pattern on many values is given up after a second, however fast each is (the time is simulated)', () => {
    let used = 0
    const spy = vi.spyOn(process, 'threadCpuUsage').mockImplementation(() => {
      used += 201_000
      return { user: used, system: 0 }
    })
    const judge = (values: number) =>
      unmetEach(
        Array.from({ length: values }, () => 'a'),
        '/a/',
        noRedaction,
      )
    onTestFinished(() => spy.mockRestore())

    expect(judge(4)).toEqual([undefined, undefined, undefined, undefined])
    expect(() => judge(5)).toThrow(
      'cannot be evaluated: /a/ was not tried on every value, as the first ones took more than 1000 ms',
    )
  })

  test('statuses are compared, and invalid expectations are reported', () => {
    expect(statusAllowed(204, ['200 - 299'])).toBe(true)
    expect(statusAllowed(500, ['<500', '5xx'])).toBe(true)
    expect(() => statusAllowed(200, ['2x'])).toThrow(RangeError)
  })
})

describe('JSON paths', () => {
  test('select by names, indexes and quoted names', () => {
    expect(parseJsonPath('$')).toEqual([])
    expect(parseJsonPath('$.a.b[0].c')).toEqual(['a', 'b', 0, 'c'])
    expect(parseJsonPath(`$['a.b']["c d"].größe`)).toEqual(['a.b', 'c d', 'größe'])
    expect(parseJsonPath('$.checks.database:ping[0].a-b.2xx.$id.build version')).toEqual([
      'checks',
      'database:ping',
      0,
      'a-b',
      '2xx',
      '$id',
      'build version',
    ])
    for (const invalid of [
      '',
      'a',
      '$a',
      '$.',
      '$..a',
      '$[*]',
      '$[-1]',
      '$.a[',
      "$['a]",
      '$.a ',
      '$. a',
      '$.0',
      '$.a.0.b',
      '$.a/b',
    ]) {
      expect([invalid, parseJsonPath(invalid)]).toEqual([invalid, undefined])
    }
  })

  test('survive a round trip through their text, and do not select inherited members', () => {
    const names = fc.array(fc.oneof(fc.string(), fc.nat(5)), { maxLength: 5 })
    fc.assert(
      fc.property(names, fc.jsonValue(), (steps, leaf) => {
        const document = steps.reduceRight<unknown>((inner, step) => {
          if (typeof step === 'number') return Object.assign(new Array(step + 1).fill(null), { [step]: inner })
          return Object.fromEntries([[step, inner]])
        }, leaf)
        expect(readJsonPath(document, steps)).toEqual({ value: leaf })
      }),
    )
    expect(readJsonPath({}, ['constructor'])).toBeUndefined()
    expect(readJsonPath(JSON.parse('{}'), ['__proto__'])).toBeUndefined()
    expect(readJsonPath([1], ['length'])).toBeUndefined()
  })
})

describe('addresses', () => {
  test('IPv6 is omitted on a machine without it, unless there is nothing else', () => {
    const both = ['192.0.2.1', '2001:db8::1']
    expect(reachable(both, () => ['127.0.0.1', '::1', 'fe80::1'])).toEqual(['192.0.2.1'])
    expect(reachable(both, () => ['10.0.0.1', '2001:db8::9'])).toEqual(both)
    expect(reachable(['2001:db8::1'], () => ['127.0.0.1'])).toEqual(['2001:db8::1'])
    expect(reachable(['127.0.0.1', '::1'], () => ['127.0.0.1', '::1'])).toEqual(['127.0.0.1', '::1'])
  })

  test('without an IPv6 address, those of this machine are not listed', () => {
    const listed = (): never => expect.unreachable()
    expect(reachable(['192.0.2.1', '127.0.0.1'], listed)).toEqual(['192.0.2.1', '127.0.0.1'])
  })

  test('merged generators yield values as they arrive, and all end when one fails', async () => {
    const ended: string[] = []
    const source = async function* (name: string, ms: number, fails = false) {
      try {
        await new Promise((resolve) => setTimeout(resolve, ms))
        if (fails) throw new Error(name)
        yield name
      } finally {
        ended.push(name)
      }
    }
    const names: string[] = []
    for await (const name of merged([source('slow', 40), source('fast', 5)])) names.push(name)
    expect(names).toEqual(['fast', 'slow'])
    const failing = merged([source('good', 30), source('bad', 5, true)])
    await expect(failing.next()).rejects.toThrow('bad')
    expect(ended.sort()).toEqual(['bad', 'fast', 'good', 'slow'])
  })
})
