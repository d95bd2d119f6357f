import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bind, decodeAnswer, encodeQuery, formats, parsePairs, type Values } from '../../src/core/wire/index.ts'
import { dtos, valuesOf } from './arbitrary.ts'

const json = await formats.json()
const csv = await formats.csv()
const runs = { numRuns: 100 }

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
        const nonEmpty = Object.fromEntries(Object.entries(value as Values).filter(([, field]) => field !== ''))
        expect(bind(dto, parsePairs(encodeQuery(dto, value)))).toEqual(nonEmpty)
      }),
      runs,
    )
  })
})
