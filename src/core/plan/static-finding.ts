import type { PlannedMonitor } from '../engine/index.ts'
import type { KindName } from '../kinds/index.ts'
import { loadKind } from './registry.ts'

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
