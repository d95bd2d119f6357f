import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { exits } from '../../../src/core/base/errors.ts'

export type ServeEnd = {
  /** As the table in docs/serve.md has it. */
  readonly way: string
  /** The exit code, or a signal. */
  readonly exit: number | 'signal'
  /**
   * The arguments, variables and svc.yaml that bring a server with this home folder to it, and what the server says then.
   * Or the test that proves it elsewhere.
   */
  readonly by:
    | { readonly test: string }
    | ((folder: string) => {
        readonly args?: readonly string[]
        readonly env?: Readonly<Record<string, string>>
        readonly yaml?: string
        readonly says: RegExp
      })
}

const { usage, local, serverError, defect } = exits

/** A store at its usual place, as something else than `svc serve` has left it. */
const storeIn = (folder: string, mode: number, file: string, content: string): void => {
  mkdirSync(join(folder, 'store'), { mode })
  writeFileSync(join(folder, 'store', file), content, { mode: 0o600 })
}

/** A port that this process uses. */
const taken = createServer().listen(0, '127.0.0.1').unref()
await once(taken, 'listening')

/** This code runs in the server once it listens. */
const afterStart = (code: string, says: RegExp) => ({
  env: { NODE_OPTIONS: `--import=data:text/javascript,setTimeout(()=>{${code}},4000)` },
  says,
})

/** Every way in which `svc serve` ends although nobody has stopped it. */
export const serveEnds: readonly ServeEnd[] = [
  { way: 'a mistake on the command line', exit: usage.code, by: () => ({ args: ['--port', 'x'], says: /--port/ }) },
  {
    way: 'other machines could connect without TLS',
    exit: usage.code,
    by: () => ({ args: ['--host', '0.0.0.0'], says: /requires TLS/ }),
  },
  { way: 'svc.yaml cannot be used as a whole', exit: local.code, by: () => ({ yaml: 'types: [', says: /svc\.yaml/ }) },
  {
    way: '`SVC_STORE` or `SVC_HOME` names no place for a store',
    exit: local.code,
    by: () => ({ env: { SVC_STORE: 'svc.db' }, says: /must be the absolute path/ }),
  },
  {
    way: 'the store or its folder belongs to another account, or is open to others',
    exit: local.code,
    by: (folder) => {
      storeIn(folder, 0o755, 'other', '')
      return { says: /accessible to other accounts/ }
    },
  },
  {
    way: 'the file of the store is damaged, or not a store of svc',
    exit: local.code,
    by: (folder) => {
      storeIn(folder, 0o700, 'svc.db', 'x'.repeat(4096))
      return { says: /not a SQLite database/ }
    },
  },
  {
    way: 'another `svc serve` has the store open, and its file was replaced',
    exit: local.code,
    by: (folder) => {
      const marker = { pid: process.pid, url: 'http://127.0.0.1:1', files: { database: '1:1' } }
      storeIn(folder, 0o700, 'svc.db.serve.json', JSON.stringify(marker))
      return { says: /is not the file that the svc serve/ }
    },
  },
  {
    way: 'another `svc serve` uses the store in a file, and this one was started on a terminal',
    exit: local.code,
    by: { test: 'test/e2e/two-servers.long.test.ts' },
  },
  {
    way: 'PostgreSQL refuses account, password, database, permission or TLS',
    exit: local.code,
    by: { test: 'test/store/late-store.long.test.ts' },
  },
  {
    way: 'no host of `SVC_STORE` exists, or no permission to use its socket',
    exit: serverError.code,
    by: { test: 'test/store/late-store.long.test.ts' },
  },
  {
    way: 'there is no Admin, and other machines can connect',
    exit: local.code,
    by: () => ({ args: ['--host', '0.0.0.0', '--insecure-listen', '--port', '0'], says: /no Admin yet/ }),
  },
  {
    way: 'the address or the port is not free',
    exit: local.code,
    by: () => ({ args: ['--port', String((taken.address() as AddressInfo).port)], says: /in use/ }),
  },
  {
    way: 'a certificate, a key or a file of a password cannot be read',
    exit: local.code,
    by: (folder) => ({ args: ['--tls-cert', join(folder, 'none'), '--tls-key', join(folder, 'none')], says: /--tls-/ }),
  },
  {
    way: '`serve.socket`, `serve.audit.stream` or `--port-file` names no file that this account can write',
    exit: local.code,
    by: (folder) => ({ yaml: `serve: {audit: {stream: ${join(folder, 'none', 'audit')}}}\n`, says: /audit stream/ }),
  },
  {
    way: 'a limit of address space is too small, or Node too old',
    exit: local.code,
    by: { test: 'test/e2e/signals.long.test.ts' },
  },
  { way: 'a defect of svc', exit: defect.code, by: () => afterStart('throw(Error())', /failed unexpectedly and ends/) },
  {
    way: 'the system or Node ends it, as for lack of memory',
    exit: 'signal',
    by: () => afterStart('process.abort()', /listens on/),
  },
]
