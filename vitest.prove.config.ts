import { defineConfig, mergeConfig } from 'vitest/config'
import usual from './vitest.config.ts'

/** The long loops and the ratios, with full counts. `npm test` runs a tenth of them, without timing. */
export default mergeConfig(
  usual,
  defineConfig({
    test: {
      env: { SVC_PROVE: '1' },
      testTimeout: 3_600_000,
      // One at a time: figures are compared.
      maxWorkers: 1,
    },
  }),
)
