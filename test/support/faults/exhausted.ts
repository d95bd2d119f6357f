import { spawnSync } from 'node:child_process'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'

const child = new URL('../engine/kind-child.ts', import.meta.url).pathname

/** The results of a kind in a process that has no file descriptors left. */
export function resultsWithoutDescriptors(kind: string, settings: object, mode: ExecutionMode): readonly Result[] {
  const line = 'ulimit -n 256; exec "$0" "$@"'
  const args = [child, kind, JSON.stringify(settings), mode, 'exhausted']
  const { stdout, stderr, status } = spawnSync('sh', ['-c', line, process.execPath, ...args], { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as readonly Result[]
}
