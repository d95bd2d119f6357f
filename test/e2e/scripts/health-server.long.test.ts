import { test } from 'vitest'
import { runScript } from '../runner.ts'

test('the real binary, as its manual describes: health server', () => runScript(import.meta.url))
