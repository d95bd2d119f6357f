import { describe, expect, test } from 'vitest'
import { parseExactly } from '../../../src/core/base/json.ts'
import { isPublic } from '../../../src/core/base/net/addresses.ts'
import { noRedaction } from '../../../src/core/base/net/text.ts'
import { pathProblem, readDate, select, unmetValues } from '../../../src/core/checks/assert/document.ts'
import { evaluateMeasures, type Measure, measureProblem } from '../../../src/core/checks/assert/measure.ts'
import { readXml, xmlEnd } from '../../../src/core/checks/assert/xml.ts'
import { givenUp } from '../../support/hostile/given-up.ts'
import { measureWork } from '../../support/suite/processor-time.ts'

const read = (text: string, type?: string) => readXml(Buffer.from(text), type)
const problem = async (text: string): Promise<string> => {
  const result = await read(text)
  return 'problem' in result ? result.problem : 'no problem'
}
/** The values at a path, as texts. */
const texts = async (document: unknown, path: string): Promise<readonly string[] | string> => {
  const xml = typeof document === 'string' ? await read(document) : undefined
  const results = select({ json: () => ({ value: document }), xml }, path)
  return 'problem' in results ? results.problem : results.map(({ text }) => text)
}

describe('XML from a peer', () => {
  test('text, CDATA, attributes and the five entities are read, each once', async () => {
    const xml = '<a x="1 &lt; 2"><b>&amp;lt; &#65;&#x42;</b><b> <![CDATA[<c>&amp;]]> </b></a>'
    expect(await texts(xml, '/a/@x')).toEqual(['1 < 2'])
    expect(await texts(xml, '/a/b')).toEqual(['&lt; AB', '<c>&amp;'])
  })

  test.each([
    ['<a><b></a>', /^is not well-formed XML: line 1, column \d+$/],
    ['<a/><b/>', /well-formed/],
    ['<a>&foo;</a>', /uses an unknown "&" entity/],
    ['<a b="x&y"/>', /uses an unknown "&"/],
    ['<a>&#x110000;</a>', /uses an unknown "&"/],
    ['', /^is empty/],
    ['{"a":1}', /^is not XML: it does not begin with "<"/],
    ['<a>\x00'.repeat(3), /well-formed/],
    ['<a><![CDATA[x</a>', /well-formed/],
  ])('%j is reported as invalid XML', async (text, message) => {
    expect(await problem(text)).toMatch(message)
  })

  test('a billion laughs, an external entity and any other document type are refused unread', async () => {
    const laughs = Array.from({ length: 30 }, (_, n) => `<!ENTITY l${n + 1} "${`&l${n};`.repeat(10)}">`).join('')
    const spent = measureWork()
    for (const text of [
      `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY l0 "ha">${laughs}]><a>&l30;</a>`,
      '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
      '<!DOCTYPE a [<!ENTITY % p SYSTEM "http://127.0.0.1/p">%p;]><a/>',
      '<a><!DOCTYPE b []><b/></a>',
      '<!-- <a> --><!doctype html><a/>',
    ]) {
      expect(await problem(text)).toMatch(/^declares a document type/)
    }
    expect(spent()).toBeLessThan(1_000)
    expect(await texts('<a><![CDATA[<!DOCTYPE html>]]><!-- <!DOCTYPE --></a>', '/a')).toEqual(['<!DOCTYPE html>'])
  })

  test('input that is too deep or too large is refused, and hostile input takes little time', async () => {
    expect(await problem(`${'<a>'.repeat(500)}${'</a>'.repeat(500)}`)).toBe('nests elements more than 64 deep')
    expect(await problem(`<a>${' '.repeat(5 * 1024 * 1024)}</a>`)).toMatch(/\(limit for XML 4 MiB\)/)
    const bytes = 256 * 1024
    for (const piece of [
      '<a>',
      '<',
      '<!--',
      '<![CDATA[',
      '<?a',
      '&a',
      '&',
      '"',
      ' a="',
      '</a>',
      '>',
      'a = ',
      '<a a="x" ',
    ]) {
      const spent = measureWork()
      await read(`<r>${piece.repeat(bytes / piece.length)}`)
      await read(`<r ${piece.repeat(bytes / piece.length)}`)
      expect(spent(), piece).toBeLessThan(6_000)
    }
  })

  test('the byte order mark, the header or the declaration sets the encoding', async () => {
    const bytes = Buffer.concat([
      Buffer.from('<?xml version="1.0" encoding="ISO-8859-1"?><a>'),
      Buffer.from([0xe4]),
      Buffer.from('</a>'),
    ])
    expect(await readXml(bytes)).toMatchObject({ root: { text: 'ä' } })
    expect(await readXml(bytes, 'text/xml; charset=utf-8')).toEqual({
      problem: 'is not valid in its declared encoding',
    })
    expect(await readXml(Buffer.from('\ufeff<a>ä</a>', 'utf16le'))).toMatchObject({ root: { text: 'ä' } })
    expect(await readXml(Buffer.from('<a/>'), 'text/xml; charset=nonsense')).toHaveProperty('problem')
  })

  test('names of the prototype are ordinary names', async () => {
    await read('<__proto__ polluted="yes"><constructor><prototype polluted="yes"/></constructor></__proto__>')
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  test('the end of a document is detected, however it arrives in pieces', () => {
    const whole = 'Frame 9 <?xml version="1.0"?><!-- <x/> --><ns:Reply a=">"><b/>\n</ns:Reply >'
    const end = xmlEnd()
    const ends = Array.from(whole, (_, n) => end(Buffer.from(whole.slice(0, n + 1))))
    expect(ends.indexOf(true)).toBe(whole.length - 1)
    expect(xmlEnd()(Buffer.from('Frame 9 <Reply Success="TRUE" x="</Reply>"/>'))).toBe(true)
    expect(xmlEnd()(Buffer.from('Frame 9 <Reply Success="TRUE"><Reply/>'))).toBe(false)
    expect(xmlEnd()(Buffer.from('no XML'))).toBe(false)
  })
})

describe('paths', () => {
  const xml = '<v:VAST version="3.0"><Ad id="1"><W/></Ad><Ad id="2"/><Job_0/><Job_12 s="x"/></v:VAST>'

  test('a path into XML selects each element of that name, or one by its index', async () => {
    expect(await texts(xml, '/VAST/@version')).toEqual(['3.0'])
    expect(await texts(xml, '/v:VAST/Ad/@id')).toEqual(['1', '2'])
    expect(await texts(xml, '/VAST/Ad[1]/@id')).toEqual(['2'])
    expect(await texts(xml, '/VAST/Ad[2]')).toEqual([])
    expect(await texts(xml, '/VAST/Job_*/@s')).toEqual(['x'])
    expect(await texts(xml, '/VAST/*[3]/@s')).toEqual(['x'])
    expect(await texts(xml, 'count(/VAST/Ad)')).toEqual(['2'])
    expect(await texts(xml, 'count(/VAST/No)')).toEqual(['0'])
    expect(await texts(xml, '/Ad')).toEqual([])
  })

  test('H16 integers beyond 2^53 keep the digits of the document, alone, in objects and in comparisons', () => {
    const json = parseExactly(
      '{"id": 9007199254740993, "all": [{"n": -12345678901234567890}], "small": 3, "half": 1.5}',
    )
    const answer = { json: () => ({ value: json }), xml: undefined }
    const unmet = (expected: Readonly<Record<string, string>>) => unmetValues(answer, expected, noRedaction)
    expect(unmet({ '$.id': '9007199254740993', '$.all[0]': '{"n":-12345678901234567890}', '$.small': '3' })).toEqual([])
    expect(
      unmet({ '$.id': '>= 9007199254740993', '$.all[0].n': '< -12345678901234567889', '$.half': '< 9007199254740993' }),
    ).toEqual([])
    expect(unmet({ '$.id': '9007199254740992' })).toHaveLength(1)
    expect(unmet({ '$.id': '> 9007199254740993' })).toHaveLength(1)
    expect(unmet({ '$.id': '<= 9007199254740992' })).toHaveLength(1)
  })

  test('a path into JSON selects each element of a list', async () => {
    const json = { a: [{ b: 1 }, { b: [2, 3] }, {}], n: 5 }
    expect(await texts(json, '$.a[*].b')).toEqual(['1', '[2,3]'])
    expect(await texts(json, '$.a[1].b[*]')).toEqual(['2', '3'])
    expect(await texts(json, 'count($.a[*])')).toEqual(['3'])
    expect(await texts(json, '$.n[*]')).toEqual([])
  })

  test.each(['/', '/a/@b/c', '/a//b', '/a[x]', '/a[-1]', 'a', '$.a[*', 'count(a)', '/a b', '$..a'])(
    '%j is not a valid path',
    (path) => {
      expect(pathProblem(path)).toMatch(/neither a JSON path/)
    },
  )

  test('dates are read in the formats of servers', () => {
    const at = Date.parse('2030-01-02T03:04:05Z')
    for (const text of [
      '2030-01-02T03:04:05Z',
      '2030-01-02T04:04:05+01:00',
      '2030-01-02 03:04:05',
      `/Date(${at})/`,
      `/Date(${at}-0700)/`,
      String(at),
      String(at / 1_000),
    ]) {
      expect(readDate(text), text).toBe(at)
    }
    expect(readDate('2030-01-02')).toBe(Date.parse('2030-01-02T00:00:00Z'))
    for (const text of ['', 'soon', '2030-13-45', '12', '/Date(x)/']) expect(readDate(text), text).toBeUndefined()
  })
})

describe('measures', () => {
  const at = new Date('2030-01-01T12:00:00Z')
  const evaluate = (value: unknown, measure: Partial<Measure>) =>
    evaluateMeasures([{ name: 'm', path: '$.j[*]', value: '.', ...measure }], {
      answer: { json: () => ({ value }), xml: undefined },
      at,
      address: 'a:1',
      redact: noRedaction,
      code: () => '',
    }).map(({ status, message }) => `${status} ${message}`)
  const jobs = (...times: string[]) => ({ j: times.map((t) => ({ s: 'x', t: `2030-01-01T${t}:00Z` })) })

  test('a count, its window and its boundaries', () => {
    const measure = { where: { s: 'x' }, time: 't', last: 3_600_000, count: { warn: 1, limit: 2 } }
    expect(evaluate(jobs('11:00', '10:59'), measure)).toEqual(['ok a:1: m: 1 (warn 1, fail 2)'])
    expect(evaluate(jobs('11:01', '11:02'), measure)).toEqual(['warning a:1: m: 2 (warn 1, fail 2)'])
    expect(evaluate(jobs('11:01', '11:02', '11:03'), measure)).toEqual(['failed a:1: m: 3 (warn 1, fail 2)'])
    expect(evaluate({ j: [{ s: 'y' }] }, measure)).toEqual(['ok a:1: m: 0 (warn 1, fail 2)'])
  })

  test('a list that the answer does not have is not an empty list', () => {
    const measures = [{ count: { limit: 1 } }, { needs: ['s'] }, { time: 't', age: { limit: 1 } }]
    for (const measure of measures) {
      expect(evaluate({ jobs: [] }, measure)).toEqual(['warning not checked: a:1: m: the answer has no list $.j'])
      expect(evaluate({ j: {} }, measure)).toEqual(['warning not checked: a:1: m: the answer has no list $.j'])
      for (const empty of [[], null]) expect(evaluate({ j: empty }, measure)[0]).toMatch(/^ok /)
    }
    expect(evaluate({}, { least: { limit: 1 } })[0]).toMatch(/^failed a:1: m: 0 /)
  })

  test('the oldest, the earliest, the largest and the smallest value decide', () => {
    expect(evaluate(jobs('11:30', '11:50'), { time: 't', age: { limit: 1_800_000 } })).toEqual([
      'ok a:1: m: oldest 30 min (fail 30 min)',
    ])
    expect(evaluate(jobs('11:29'), { time: 't', age: { limit: 1_800_000 } })[0]).toMatch(/^failed .* 31 min/)
    expect(evaluate({ j: [] }, { time: 't', age: { limit: 1 } })).toEqual(['ok a:1: m: none'])
    const ends = { j: ['2030-01-08T12:00:00Z', '2030-02-01'] }
    expect(evaluate(ends, { time: '.', left: { warn: 30, limit: 7 } })).toEqual([
      'warning a:1: m: 7 d left (warn below 30 d, fail below 7 d)',
    ])
    expect(evaluate({ j: [1, 5, 3] }, { atMost: { limit: 4 }, atLeast: { warn: 2 } })).toEqual([
      'failed a:1: m: 5 (fail 4)',
      'warning a:1: m: 1 (warn below 2)',
    ])
    const stores = {
      j: [
        { free: 10, all: 100 },
        { free: 1, all: 20 },
      ],
    }
    expect(evaluate(stores, { value: 'free', of: 'all', atLeast: { limit: 5 } })).toEqual([
      'ok a:1: m: 5 % (fail below 5 %)',
    ])
  })

  test('a missing value, an invalid date and an invalid number are never ok', () => {
    expect(evaluate({}, { atMost: { limit: 4 } })).toEqual(['failed a:1: m: the answer has no $.j[*]'])
    expect(evaluate({ j: ['many'] }, { atMost: { limit: 4 } })).toEqual(['failed a:1: m: "many" is not a number'])
    expect(evaluate({ j: [null] }, { atMost: { limit: 4 } })[0]).toMatch(/^failed/)
    expect(evaluate({}, { time: '.', left: { limit: 7 } })).toEqual(['failed a:1: m: the answer has no $.j[*]'])
    expect(evaluate({ j: [{ t: 'soon' }] }, { time: 't', age: { limit: 7 } })).toEqual([
      'failed a:1: m: t is "soon", which is not a date',
    ])
    expect(evaluate({ j: [{}] }, { time: 't', age: { limit: 7 } })).toEqual(['failed a:1: m: t is missing'])
    expect(evaluate({ j: [{ f: 1, a: 0 }] }, { value: 'f', of: 'a', atMost: { limit: 1 } })[0]).toMatch(
      /^failed .*is not a number/,
    )
    expect(evaluate({ j: [{ a: 1 }, {}] }, { needs: ['a'] })).toEqual(['failed a:1: m: 1 of 2 have no a'])
    expect(evaluate({ j: [{ a: 1 }] }, { needs: ['a'] })).toEqual(['ok a:1: m: 1 with all required paths'])
  })

  test('a pattern that backtracks is abandoned for all of a list at once, and is never ok', () => {
    const hostile = { j: Array.from({ length: 500 }, () => ({ s: `${'a'.repeat(40)}!` })) }
    const spent = measureWork()
    expect(evaluate(hostile, { where: { s: '/^(?=a)(a+)+$/' }, count: { limit: 0 } })[0]).toMatch(
      new RegExp(`^failed .*cannot be evaluated: .* ${givenUp}$`),
    )
    expect(spent()).toBeLessThan(3_000)
    const [alone] = evaluate({ j: hostile.j.slice(0, 1) }, { where: { s: '/^(?=a)(a+)+$/' }, count: { limit: 0 } })
    expect(alone).toMatch(new RegExp(`^failed .*cannot be evaluated: .* ${givenUp}`))
    expect(evaluate({ j: [{ s: 'ab' }, { s: 'b' }] }, { where: { s: '/^a/' }, count: { limit: 0 } })).toEqual([
      'failed a:1: m: 1 (fail 0)',
    ])
  })

  test('an endless list of a peer is evaluated up to a limit, which is reported', () => {
    const many = { j: Array.from({ length: 5_000 }, () => 1) }
    expect(evaluate(many, { count: { limit: 9_000 } })).toEqual([
      'ok a:1: m (of the first 2000 of 5000): 2000 (fail 9000)',
    ])
  })

  test('a measure without evaluates expectation, its date or its path is reported before it is taken', () => {
    const measure = { name: 'm', path: '$.j[*]', value: '.' }
    expect(measureProblem(measure)).toMatch(/evaluates nothing: add one of needs, count/)
    expect(measureProblem({ ...measure, age: { limit: 1 } })).toMatch(/age needs time/)
    expect(measureProblem({ ...measure, path: 'j', count: {} })).toMatch(/neither a JSON path/)
    expect(measureProblem({ ...measure, where: { 'a b/': 'x' }, count: {} })).toMatch(/is not a path within an item/)
    expect(measureProblem({ ...measure, count: { limit: 1 } })).toBeUndefined()
  })
})

test('addresses outside the public Internet are recognized', () => {
  const closed =
    '10.1.2.3 127.0.0.1 169.254.169.254 172.16.0.1 192.168.1.1 100.64.0.1 0.0.0.0 192.0.2.1 198.18.0.1 224.0.0.1 255.255.255.255 ::1 :: fe80::1 fc00::1 fd00::1 ff02::1 2001:db8::1 2002:7f00:1::1 2001:0:1::1 64:ff9b::7f00:1 ::ffff:8.8.8.8 ::ffff:127.0.0.1 nonsense'
  expect(closed.split(' ').filter(isPublic)).toEqual([])
  expect(
    ['8.8.8.8', '93.184.216.34', '2606:4700::1111', '172.32.0.1', '192.0.1.1'].filter((ip) => !isPublic(ip)),
  ).toEqual([])
})
