import type { PlannedMonitor } from './engine.ts'

/** A monitor that says one line: what the configuration lacks, or why a part could not be looked at. */
export async function notice(name: string, level: 'warn' | 'fail', message: string): Promise<PlannedMonitor> {
  const { default: kind } = await import('./monitors/configuration.ts')
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
