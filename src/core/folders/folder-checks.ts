import type { DeclaredResult } from '../engine/index.ts'

/** What is looked at in the folders of any file server, in the order of `folderSettings`. */
export const folderChecks: readonly DeclaredResult[] = [
  {
    name: 'oldest file',
    depth: 'Advanced',
    doc: 'With `folder`: its oldest file does not wait too long',
    when: ['folder'],
  },
  {
    name: 'backlog',
    depth: 'Advanced',
    doc: 'With `folder` and `files`: no more files wait than should',
    when: ['files'],
  },
  {
    name: 'round trip',
    depth: 'Advanced',
    doc: 'With `allowWrites`: a file of our own comes back with the same SHA-256',
    when: ['allowWrites'],
  },
  {
    name: 'throughput',
    depth: 'Advanced',
    doc: 'With `allowWrites` and `throughput`: it is moved fast enough',
    when: ['throughput'],
  },
  { name: 'rename', depth: 'Advanced', doc: 'With `allowWrites`: it can be renamed', when: ['allowWrites'] },
  { name: 'delete', depth: 'Advanced', doc: 'With `allowWrites`: it can be deleted', when: ['allowWrites'] },
  {
    name: 'sweep',
    depth: 'Advanced',
    doc: 'With `allowWrites`: what earlier round trips left behind is deleted',
    when: ['allowWrites'],
  },
]
