import type { PlannedMonitor } from './engine.ts'
import { loadKind } from './kinds.ts'
import type { KindName } from './monitors/index.ts'

/** The kind of every notice. */
export const noticeKind = 'configuration' satisfies KindName

/** A monitor that says one line: what the configuration lacks, or why a part could not be looked at. */
export async function notice(name: string, level: 'warn' | 'fail', message: string): Promise<PlannedMonitor> {
  const kind = await loadKind(noticeKind)
  return {
    name,
    kind,
    settings: { message, level },
    depth: 'Basic',
    host: false,
    dependsOn: [],
    retries: 0,
    deployment: false,
  }
}
