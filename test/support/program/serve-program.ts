import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serveDefaults } from '../../../src/core/protocol/service/service.ts'
import { openCore } from '../../../src/core/service/open.ts'
import type { Order, Report } from '../faults/shortage.ts'
import { adminOver } from '../store/admin.ts'
import { type Serving, serving } from './serving.ts'
import { unwatched } from './unwatched.ts'

const shortage = new URL('../faults/shortage.ts', import.meta.url).href

export const userName = 'Ann'
export const password = 'violet-harbour-42'

/** A real `svc serve` of the built program, in a process and a folder of its own, with the Admin Ann in its store. */
export type ServeProcess = Serving & {
  /** Has calls in it fail: see `Order`. */
  readonly order: (order: Order) => Promise<Report>
  /** Its svc.yaml. */
  readonly config: string
}
export type ServeOptions = {
  /**
   * The text of svc.yaml, for a process that has this folder to itself. It runs nothing by itself unless the text says how
   * often: calls that fail must fail for the test's own caller.
   */
  readonly yaml?: (folder: string) => string
  /** The most descriptors that it may have open. */
  readonly descriptors?: number
  /** Has the call to the file system fail that comes after so many others, counted from its very start. */
  readonly failAt?: number
}

/** A folder with an existing store, so that the process itself has not handled a sign-in. */
async function storeFolder(yaml: ServeOptions['yaml'] = () => '{}\n'): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-shortage-'))
  mkdirSync(join(folder, 'store'), { mode: 0o700 })
  writeFileSync(join(folder, 'svc.yaml'), unwatched(yaml(folder)), { mode: 0o600 })
  writeFileSync(join(folder, 'version'), '1\n')
  const { service, runtime } = await openCore({
    version: '0',
    config: { origin: undefined, types: {}, serve: serveDefaults, warnings: [] },
    store: join(folder, 'store', 'svc.db'),
    shared: false,
    details: 'anyone',
  })
  await adminOver(service).users.add(
    { userName, password, roles: ['Admin'] },
    { who: 'local:test', correlationId: 'test' },
  )
  await runtime.close()
  return folder
}

/** Starts it and waits until it listens. Throws what it has written when it ends instead. */
export async function startServeProcess({ yaml, descriptors, failAt }: ServeOptions = {}): Promise<ServeProcess> {
  const folder = await storeFolder(yaml)
  const config = join(folder, 'svc.yaml')
  const limited = ['sh', '-c', `ulimit -n ${descriptors}; exec "$@"`, 'sh']
  const serve = await serving(['--store', join(folder, 'store', 'svc.db'), '--config', config], {
    folder,
    node: ['--disable-warning=ExperimentalWarning', '--import', shortage],
    within: (svc) => (descriptors === undefined ? svc : [...limited, ...svc]),
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      SVC_HOME: folder,
      NODE_DISABLE_COMPILE_CACHE: '1',
      ...(failAt === undefined ? {} : { FAIL_FILE_CALL: String(failAt) }),
    },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    remove: () => rmSync(folder, { recursive: true, force: true }),
  })
  return { ...serve, config, order: (order) => serve.ask<Report>(order) }
}
