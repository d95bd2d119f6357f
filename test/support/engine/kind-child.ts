/**
 * Writes the results of a kind, as this process sees its machine: `kind-child.ts KIND SETTINGS MODE`. With a fourth
 * argument, `exhausted`, no file descriptors are left during the second of two runs, whose results it writes.
 */
import { closeSync, openSync } from 'node:fs'
import type { SettingsSpec } from '../../../src/core/base/settings/index.ts'
import type { Kind } from '../../../src/core/checks/engine/index.ts'
import { monitors } from '../../../src/core/checks/kinds/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { runKind } from './run-kind.ts'

const [, , name = '', settings = '{}', mode = 'Standard', state] = process.argv
const loaded = await monitors[name as keyof typeof monitors].load()
const kind = loaded.default as unknown as Kind<SettingsSpec>
const run = () => runKind(kind, JSON.parse(settings), mode as ExecutionMode)
const descriptors: number[] = []
if (state === 'exhausted') {
  // What the first run loads needs descriptors.
  await run()
  try {
    for (;;) descriptors.push(openSync('/dev/null', 'r'))
  } catch {
    // None is left.
  }
}
const results = await run()
for (const descriptor of descriptors) closeSync(descriptor)
process.stdout.write(JSON.stringify(results))
