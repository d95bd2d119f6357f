import type { SettingsSpec } from '../../../src/core/base/settings/index.ts'
import type { AnyKind, Kind } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import { runKind } from '../engine/run-kind.ts'
import { tcpKinds } from '../engine/tcp-kinds.ts'

/** Runs each kind where nothing but loopback has a route, and prints for each how its results read. */
const results: Record<string, unknown> = {}
for (const [name, row] of [
  ...Object.entries(tcpKinds),
  ['ping', { settings: () => ({ host: 'two.test' }) }] as const,
]) {
  const kind = (await monitors[name as KindName].load()).default as AnyKind as Kind<SettingsSpec>
  const settings = { ...row.settings(9, 'two.test'), family: 'ipv6' }
  const resolve = () => Promise.resolve(['127.0.0.1', '2001:db8::7'])
  const ofKind = await runKind(kind, settings as never, 'mode' in row ? row.mode : 'Basic', { resolve })
  results[name] = ofKind.map(({ notChecked, message }) => [notChecked, message])
}
process.stdout.write(JSON.stringify(results))
