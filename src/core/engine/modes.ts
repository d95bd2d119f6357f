import type { ExecutionMode } from '../protocol/index.ts'

const order: Record<ExecutionMode, number> = { Basic: 0, Standard: 1, Advanced: 2 }

/** True when a run at `mode` includes what belongs to `depth`: each mode includes the shallower. */
export const includes = (mode: ExecutionMode, depth: ExecutionMode): boolean => order[mode] >= order[depth]
