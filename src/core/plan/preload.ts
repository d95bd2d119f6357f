import { type AnyKind, loadHoldDuration, type PlannedMonitor } from '../engine/index.ts'
import { preloadAnchors } from '../net/certificates.ts'
import { ProbeError } from '../probe-error.ts'
import { loadKind, type OwnParts, ownKinds } from './assemble.ts'

/**
 * Loads what a run may load: the kinds that svc plans by itself, the drivers of these and of the configured
 * monitors, what the engine loads when it is due, and the certificates that this machine trusts. Rejects
 * when one of them cannot be loaded; a driver that is not installed is left to its monitors, which say so.
 *
 * The child processes of probes load their own, each time.
 */
export async function preloadHealth(configured: readonly PlannedMonitor[], parts: OwnParts): Promise<void> {
  const own = await Promise.all(ownKinds(parts).map(loadKind))
  const kinds = new Set<AnyKind>([...own, ...configured.map(({ kind }) => kind)])
  await Promise.all([loadHoldDuration(), ...Array.from(kinds, preloadKind)])
  if (configured.some(({ kind }) => kind.target !== undefined)) preloadAnchors()
}

async function preloadKind({ preload }: AnyKind): Promise<void> {
  try {
    await preload?.()
  } catch (error) {
    // What `optionalDriver` throws for a driver that is not installed; any other error is the loader's own.
    if (!(error instanceof ProbeError)) throw error
  }
}
