import { readFileSync } from 'node:fs'

/** The child processes of this one, zombies included; none where the system does not tell. */
export function ownChildren(): readonly string[] {
  if (process.platform !== 'linux') return []
  const text = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8')
  return text.split(' ').filter((pid) => pid !== '')
}
