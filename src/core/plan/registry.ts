import { type AnyKind, includes } from '../engine/index.ts'
import { type KindName, monitors } from '../kinds/index.ts'
import type { ExecutionMode } from '../protocol/index.ts'

/** Every kind's name, in the registry's order. */
const kindNames = Object.keys(monitors) as readonly KindName[]

export const isKindName = (name: string): name is KindName => Object.hasOwn(monitors, name)

/** Loads a kind; its driver is loaded only when it first observes. */
export const loadKind = async (name: KindName): Promise<AnyKind> => (await monitors[name]()).default

/**
 * The kind whose monitor is the host block. It runs for every type by itself, so it is set under
 * `host:` and is never an entry in a list of monitors.
 */
export const hostKind = 'host' satisfies KindName

/** The kinds that an entry in svc.yaml may name. */
export async function configurableKinds(): Promise<readonly AnyKind[]> {
  const kinds = await Promise.all(kindNames.map(loadKind))
  return kinds.filter((kind) => !kind.internal && kind.name !== hostKind)
}

/** MonitorName: kind and name, or the kind alone when that is the name. */
export const monitorName = (kind: string, name: string): string => (name === kind ? kind : `${kind} ${name}`)

/** The deeper of two modes. */
export const deeper = (a: ExecutionMode, b: ExecutionMode): ExecutionMode => (includes(a, b) ? a : b)

/** The shallowest mode in which a kind looks at anything, and no shallower than `wanted`. */
export function depthOf(kind: AnyKind, wanted: ExecutionMode): ExecutionMode {
  const [first, ...rest] = kind.checks.map((check) => check.depth)
  if (first === undefined) return wanted
  return deeper(
    wanted,
    rest.reduce((shallowest, depth) => (includes(shallowest, depth) ? depth : shallowest), first),
  )
}
