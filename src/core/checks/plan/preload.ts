import { preloadAnchors } from '../../base/net/certificates.ts'
import { ProbeError } from '../../base/probe-error.ts'
import {
  type AnyKind,
  loadHoldDuration,
  loadNextSteps,
  loadSeries,
  loadSignIns,
  type PlannedMonitor,
} from '../engine/index.ts'
import { loadKind, type OwnParts, ownKinds } from './assemble.ts'

/**
 * Loads everything that a run may need: the kinds that svc plans by itself, their drivers and those of the configured
 * monitors, the lazily loaded parts of the engine, and the certificates that this machine trusts. Rejects when one of
 * them cannot be loaded, except for a driver that is not installed: its monitors report that.
 *
 * The child processes of probes load their own modules each time.
 */
export async function preloadHealth(configured: readonly PlannedMonitor[], parts: OwnParts | undefined): Promise<void> {
  const own = await Promise.all(ownKinds(parts).map(loadKind))
  const kinds = new Set<AnyKind>([...own, ...configured.map(({ kind }) => kind)])
  await Promise.all([
    loadHoldDuration(),
    loadNextSteps(),
    loadSeries(),
    loadSignIns(),
    ...Array.from(kinds, preloadKind),
  ])
  if (configured.some(({ kind }) => kind.target !== undefined)) preloadAnchors()
}

async function preloadKind({ preload }: AnyKind): Promise<void> {
  try {
    await preload?.()
  } catch (error) {
    // `loadDriver` throws ProbeError for a driver that is missing. Any other error is a loading failure.
    if (!(error instanceof ProbeError)) throw error
  }
}
