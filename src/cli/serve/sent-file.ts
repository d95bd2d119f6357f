import { posix, win32 } from 'node:path'
import type { OpenOptions } from '../../core/service/open.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { machine } from '../io/process.ts'
import {
  appendPrivate,
  awaitShare,
  ownFolder,
  readPrivate,
  removePrivate,
  settingsFolder,
} from '../settings/private-file.ts'

/** The private file of what a node sends without its store: `told-NODE.jsonl` in the state folder. */
export function sentFile(env: ProcessEnvironment): NonNullable<OpenOptions['sentFile']> {
  const paths = machine.platform === 'win32' ? win32 : posix
  const folder = paths.join(settingsFolder(env), 'state')
  return (node) => {
    const path = paths.join(folder, `told-${node.replaceAll(/[^\w.-]/g, '_')}.jsonl`)
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
