import { createHash, randomBytes, randomUUID } from 'node:crypto'

/**
 * Names of the file that a round trip writes. They carry their date, so that a leftover is dated by
 * our own clock, whatever the server tells of it, and nothing but our own is ever deleted.
 */
const pattern = /^svc-probe-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-[0-9a-f-]{36}(?:-renamed)?\.tmp$/
/** Milliseconds: a younger one may belong to another svc that is at work. */
const leftoverAfter = 60 * 60_000

export type ProbeFile = { readonly name: string; readonly renamed: string; readonly bytes: Uint8Array }

export function probeFile(size: number, now: Date): ProbeFile {
  const stamp = now.toISOString().replace(/[-:]|\.\d+/g, '')
  const name = `svc-probe-${stamp}-${randomUUID()}`
  return { name: `${name}.tmp`, renamed: `${name}-renamed.tmp`, bytes: randomBytes(size) }
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Whether a name is that of a file which an earlier round trip could not delete. */
export function isLeftover(name: string, now: Date): boolean {
  const [, year, month, day, hour, minute, second] = pattern.exec(name) ?? []
  if (year === undefined) return false
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  return now.getTime() - at > leftoverAfter
}
