import { test } from 'vitest'
import { runScript } from '../runner.ts'

test('the real binary, as its manual describes: usage', { timeout: 120_000 }, () => runScript(import.meta.url))
