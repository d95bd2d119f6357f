import { describe, expect, test } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import { tooDeepUnder } from '../../../src/core/base/json.ts'
import { AssignRoles, HealthCheckResponse } from '../../../src/core/protocol/index.ts'
import {
  bind,
  csvTables,
  decodeAnswer,
  formats,
  negotiate,
  parsePairs,
  readBatch,
  readBody,
} from '../../../src/core/protocol/wire/index.ts'
import { parseByToken } from '../../../src/core/protocol/wire/json-read.ts'
import { describeHostile, excessiveGrowth, type Hostile, ofSize, sizesUpTo } from '../../support/hostile/growth.ts'
import { hostileUnits } from '../../support/hostile/texts.ts'

const json = await formats.json()
const csv = await formats.csv()
const jsv = await formats.jsv()
const { readCsvTable } = await csvTables()

const boundary = 'multipart/form-data; boundary=b'
const part = '--b\r\nContent-Disposition: form-data; name="UserName"\r\n\r\n'

type Reader = {
  readonly read: (text: string) => unknown
  /** Characters of the longest text that gets there, or that is worth the time. */
  readonly upTo: number
  readonly texts: readonly Hostile[]
}

const bare: readonly Hostile[] = hostileUnits.map((unit) => ({ lead: '', unit, end: '' }))

const inJson: readonly Hostile[] = [
  ...bare,
  ...hostileUnits.map((unit) => ({ lead: '{"StatusMessage":"', unit, end: '"' })),
  ...hostileUnits.map((unit) => ({ lead: '{"\\u0041":[', unit, end: '' })),
  { lead: '{', unit: '"UserName":"a",', end: '"UserName":"b"}' },
  { lead: '{"Meta":{', unit: '"a":"b",', end: '"c":"d"}}' },
  { lead: '{"MonitorSummaries":[', unit: '{"Status":0},', end: '{}]}' },
  { lead: '{"Status":"Success","StatusMessage":NaN,"X":[', unit: 'NaN,-Infinity,', end: 'NaN]}' },
  { lead: '{"Status":"', unit: '\\"', end: '' },
  { lead: '{"Status":"', unit: '\\u0041', end: '"}' },
]

const inCsv: readonly Hostile[] = [
  ...bare,
  { lead: 'UserName,', unit: 'Roles,', end: '\n1,2' },
  { lead: 'Roles\n"', unit: 'a""', end: '"' },
  { lead: 'Roles\n"[', unit: '""a"",', end: ']"' },
  { lead: 'Roles\n', unit: '"a",\n', end: '' },
]

const inJsv: readonly Hostile[] = [
  ...bare,
  { lead: '[', unit: '{Status:', end: '' },
  { lead: '[', unit: '""""', end: ',' },
  { lead: '[', unit: '"a" ,', end: '"' },
  { lead: '{a:', unit: '{b:"c",', end: '' },
  { lead: '{', unit: 'a:b,', end: 'UserName:c}' },
  { lead: '{a:[', unit: '{},', end: '{}]}' },
  { lead: '{UserName:', unit: ' ', end: '}' },
  { lead: '{Roles:[', unit: 'a,', end: 'a]}' },
]

const inForms: readonly Hostile[] = [
  ...bare,
  { lead: '', unit: 'UserName=a&', end: '' },
  { lead: '', unit: '%C3%A4', end: '' },
  { lead: '', unit: `${part}\r\n`, end: '--b--' },
  { lead: part, unit: '\r\n--', end: '' },
  { lead: part, unit: '\r\n--c', end: '\r\n--b--' },
]

const inHeaders: readonly Hostile[] = [
  ...bare,
  { lead: 'a/b', unit: ';a="\\"', end: '"' },
  { lead: 'a/b', unit: '; q=1,', end: '' },
]

/** Each reader of text that an anonymous caller chose. */
const readers: Readonly<Record<string, Reader>> = {
  'the answer of a server': { read: (text) => decodeAnswer(HealthCheckResponse, text), upTo: 1e6, texts: inJson },
  JSON: { read: (text) => json.decode(AssignRoles, text), upTo: 1e6, texts: inJson },
  // As it is called: nothing that nests deeply gets there.
  'JSON with escaped keys': {
    read: (text) => (tooDeepUnder(text, 32) === undefined ? parseByToken(text) : undefined),
    upTo: 1e6,
    texts: inJson,
  },
  'a batch': {
    read: (text) => readBatch(AssignRoles, 'application/json', Buffer.from(text)),
    upTo: 1e5,
    texts: inJson,
  },
  CSV: { read: (text) => csv.decode(HealthCheckResponse, text), upTo: 1e5, texts: inCsv },
  'a table in CSV': { read: (text) => readCsvTable(text), upTo: 1e5, texts: inCsv },
  JSV: { read: (text) => jsv.decode(AssignRoles, text), upTo: 1e6, texts: inJsv },
  'a batch in JSV': { read: (text) => readBatch(AssignRoles, 'text/jsv', Buffer.from(text)), upTo: 1e5, texts: inJsv },
  'JSV in CSV': {
    read: (text) => csv.decode(HealthCheckResponse, `MonitorSummaries\n"${text.replaceAll('"', '""')}"`),
    upTo: 1e5,
    texts: inJsv,
  },
  'JSV in a query': {
    read: (text) =>
      bind(
        AssignRoles,
        ['Roles', 'Meta', 'UserName'].map((name) => [name, text] as const),
      ),
    upTo: 1e6,
    texts: inJsv,
  },
  'a form': { read: (text) => bind(AssignRoles, parsePairs(text)), upTo: 1e6, texts: inForms },
  'a form of parts': { read: (text) => readBody(AssignRoles, boundary, Buffer.from(text)), upTo: 1e6, texts: inForms },
  'a media type': { read: (text) => readBody(AssignRoles, text, Buffer.from('x')), upTo: 1e4, texts: inHeaders },
  'an Accept header': { read: (text) => negotiate({ method: 'GET', accept: text }), upTo: 1e4, texts: inHeaders },
}

/** Reads a text that may be refused: a fault counts as read. */
const ignoringFaults =
  (read: (text: string) => unknown) =>
  async (text: string): Promise<void> => {
    try {
      await read(text)
    } catch (error) {
      if (!(error instanceof Fault || error instanceof SyntaxError)) throw error
    }
  }

describe('S4 the CPU time of reading grows in proportion to the text', () => {
  test.each(Object.entries(readers))(
    '%s',
    async (_, { read, upTo, texts }) => {
      const problems: string[] = []
      for (const hostile of texts) {
        const textOf = (size: number): string => ofSize(hostile, size)
        const problem = await excessiveGrowth(ignoringFaults(read), textOf, sizesUpTo(upTo), { allocates: true })
        if (problem !== undefined) problems.push(`${problem} of ${describeHostile(hostile)}`)
      }
      expect(problems).toEqual([])
    },
    300_000,
  )
})
