import { test } from 'vitest'
import { runScript } from '../runner.ts'

test(
  'P6 nobody is there by default, a container makes the first Admin once, and without one or TLS nobody else is answered',
  { timeout: 120_000 },
  () => runScript(import.meta.url),
)
