import { figure, text } from '../../database/index.ts'
import { ProbeError } from '../../probe-error.ts'
import type { Doc } from './driver.ts'

/** What a node says it is. `other`: in a replica set, and serving nobody. */
export type Role = 'primary' | 'secondary' | 'arbiter' | 'standalone' | 'mongos' | 'other'
export type Node = {
  readonly see: 'node'
  readonly role: Role
  /** Empty outside a replica set. */
  readonly set: string
  /** The primary that it knows; empty for none. */
  readonly primary: string
  readonly self: string
}

export function nodeOf(hello: Doc): Node {
  if (figure(hello, 'ok') !== 1) throw new ProbeError('protocol', '`hello` was answered with something else')
  const set = text(hello, 'setName')
  return {
    see: 'node',
    role: roleOf(hello, set),
    set,
    primary: text(hello, 'primary', 128),
    self: text(hello, 'me', 128),
  }
}
function roleOf(hello: Doc, set: string): Role {
  if (hello.msg === 'isdbgrid') return 'mongos'
  // Started for a replica set that was never initiated.
  if (set === '') return hello.isreplicaset === true ? 'other' : 'standalone'
  if (hello.isWritablePrimary === true) return 'primary'
  if (hello.secondary === true) return 'secondary'
  return hello.arbiterOnly === true ? 'arbiter' : 'other'
}
export const inSet = ({ role }: Node): boolean => role === 'primary' || role === 'secondary'
