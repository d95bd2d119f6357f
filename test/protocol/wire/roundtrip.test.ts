import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  bind,
  decodeAnswer,
  encodeQuery,
  formats,
  parsePairs,
  readBatch,
  type WireValues,
} from '../../../src/core/protocol/wire/index.ts'
import { runsOf } from '../../support/suite/runs.ts'
import { dtos, valuesOf } from './arbitrary.ts'

const json = await formats.json()
const csv = await formats.csv()
const jsv = await formats.jsv()
const runs = { numRuns: runsOf(100) }

test('the protocol exports the DTOs of the interface', () => {
  expect(dtos.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'Authenticate',
      'AssignRoles',
      'HealthCheckRequest',
      'HealthCheckResponse',
      'ErrorResponse',
    ]),
  )
})

describe.each(dtos.map((dto) => [dto.name, dto] as const))('%s', (_name, dto) => {
  test('N2 JSON that is written and read back is the same', () => {
    fc.assert(
      fc.property(valuesOf(dto), (value) => {
        expect(json.decode(dto, json.encode(dto, value))).toEqual(value)
      }),
      runs,
    )
  })

  test('F3 CSV that is written and read back is the same', () => {
    fc.assert(
      fc.property(valuesOf(dto), (value) => {
        expect(csv.decode(dto, csv.encode(dto, value))).toEqual(value)
      }),
      runs,
    )
  })

  test('F6 JSV that is written and read back is the same', () => {
    fc.assert(
      fc.property(valuesOf(dto), (value) => {
        expect(jsv.decode(dto, jsv.encode(dto, value))).toEqual(value)
      }),
      runs,
    )
  })

  test('F6 R3 a list of JSV and a table of CSV are read back as they were written', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(valuesOf(dto), { maxLength: 4 }), async (values) => {
        // A row without a cell is a blank line.
        const tables = Object.keys(dto.fields).length > 1 ? [csv] : []
        for (const { join, encode, contentType } of [jsv, ...tables]) {
          const batch = join(
            dto,
            values.map((value) => encode(dto, value)),
          )
          const read = await readBatch(dto, contentType, Buffer.from(batch))
          expect(read.map((one) => one())).toEqual(values)
        }
      }),
      { numRuns: runsOf(30) },
    )
  })

  test('C3 the client reads what the server writes', () => {
    fc.assert(
      fc.property(valuesOf(dto), (value) => {
        expect(decodeAnswer(dto, json.encode(dto, value))).toEqual(value)
      }),
      runs,
    )
  })

  test('N6 a query that is written and bound is the same, except for empty texts', () => {
    fc.assert(
      fc.property(valuesOf(dto), (value) => {
        const nonEmpty = Object.fromEntries(Object.entries(value as WireValues).filter(([, field]) => field !== ''))
        expect(bind(dto, parsePairs(encodeQuery(dto, value)))).toEqual(nonEmpty)
      }),
      runs,
    )
  })
})
