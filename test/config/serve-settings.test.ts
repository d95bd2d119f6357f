import { expect, test } from 'vitest'
import { defaultsOf, readSettings, type SettingsSpec } from '../../src/core/base/settings/index.ts'
import { describeSettings } from '../../src/core/checks/plan/index.ts'
import { settingsSchema } from '../../src/core/config/schema.ts'
import { serveDefaults, serveSettings } from '../../src/core/protocol/service/serve-settings.ts'

const context = { env: {}, folder: '.' }

/** The table of serve settings with one more row, in its group too. */
const more = {
  ...serveSettings,
  maxHead: { type: 'bytes', default: 16 * 1024, min: 1024, max: 1024 ** 2, doc: 'Maximum size of a request head' },
  metrics: {
    ...serveSettings.metrics,
    fields: {
      ...serveSettings.metrics.fields,
      maxAge: { type: 'integer', default: 60, min: 1, max: 3_600, doc: 'Maximum age of a figure in seconds' },
    },
  },
} as const satisfies SettingsSpec

test('a row added to the table of serve settings brings its default, its range and its documentation', () => {
  expect(defaultsOf(more)).toEqual({
    ...defaultsOf(serveSettings),
    maxHead: 16_384,
    metrics: { ...serveDefaults.metrics, maxAge: 60 },
  })
  expect(readSettings(more, {}, context).values).toEqual(defaultsOf(more))
  expect(readSettings(more, { maxHead: '2KiB', metrics: {} }, context)).toMatchObject({
    values: { maxHead: 2_048, metrics: { maxSeries: 50_000, maxAge: 60 } },
    problems: [],
  })
  const { problems } = readSettings(more, { maxHead: '2MiB', metrics: { maxAge: 0 } }, context)
  expect(problems.map(({ path, message }) => `${path.join('.')} ${message}`)).toEqual([
    'metrics.maxAge is 0: give 1 to 3600',
    'maxHead is 2MiB: give 1KiB to 1MiB',
  ])
  expect(describeSettings(more)).toEqual(
    expect.arrayContaining([
      {
        name: 'maxHead',
        type: 'bytes, 1KiB to 1MiB',
        default: '16KiB',
        required: false,
        doc: 'Maximum size of a request head',
      },
      {
        name: 'metrics.maxAge',
        type: 'whole number, 1 to 3600',
        default: '60',
        required: false,
        doc: 'Maximum age of a figure in seconds',
      },
    ]),
  )
  expect(settingsSchema(more)).toMatchObject({
    properties: {
      maxHead: { description: 'Maximum size of a request head (1KiB to 1MiB, default: 16KiB)' },
      metrics: { properties: { maxAge: { minimum: 1, maximum: 3_600, default: 60 } } },
    },
  })
})

test('without svc.yaml, svc serve has the defaults of the table', () => {
  const { debug, ...values } = serveDefaults
  expect(debug).toBe(false)
  expect(readSettings(serveSettings, {}, context).values).toEqual(values)
  expect(readSettings(serveSettings, { metrics: { maxSeries: 200 } }, context).values.metrics).toEqual({
    maxSeries: 200,
  })
})
