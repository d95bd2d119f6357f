/** Writes the results of a kind, as this process sees its machine: `kind-child.ts KIND SETTINGS MODE`. */
import type { Kind } from '../../src/core/engine/index.ts'
import { monitors } from '../../src/core/kinds/index.ts'
import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import type { SettingsSpec } from '../../src/core/settings/index.ts'
import { runKind } from './run-kind.ts'

const [, , name = '', settings = '{}', mode = 'Standard'] = process.argv
const loaded = await monitors[name as keyof typeof monitors]()
const kind = loaded.default as unknown as Kind<SettingsSpec>
process.stdout.write(JSON.stringify(await runKind(kind, JSON.parse(settings), mode as ExecutionMode)))
