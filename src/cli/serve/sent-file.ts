import type { OpenOptions } from '../../core/service/open.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import {
  appendPrivate,
  awaitShare,
  ownFolder,
  readPrivate,
  removePrivate,
  stateFolder,
} from '../settings/private-file.ts'

/** The private file of what a node sends without its store: `told-NODE.jsonl` in the state folder. */
export function sentFile(env: ProcessEnvironment): NonNullable<OpenOptions['sentFile']> {
  const folder = stateFolder(env)
  return (node) => {
    const path = `${folder}/told-${node.replaceAll(/[^\w.-]/g, '_')}.jsonl`
    return {
      path,
      read: async () => {
        await awaitShare(path)
        return readPrivate(path, 'unreadable')
      },
      append: async (text) => {
        await awaitShare(path)
        ownFolder(folder)
        appendPrivate(path, text)
      },
      remove: async () => void removePrivate(path),
    }
  }
}
