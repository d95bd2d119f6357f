import { chmodSync, copyFileSync, existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { freePort, type Running, remove, run, serverFolder } from './server.ts'

const built =
  process.env.SVC_FERRETDB ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'svc-ferretdb', 'ferretdb')

/** The one MongoDB server that can be had is built from source, so that no run requires it. */
export const ferretdbMissing = existsSync(built)
  ? undefined
  : 'no FerretDB 1.24 (a Go module, SVC_FERRETDB names its program)'

export type FerretdbServer = Running & { readonly port: number; readonly remove: () => Promise<void> }

/** A real server of MongoDB's protocol over SQLite, on a free port of 127.0.0.1, with one user. */
export async function startFerretdb(user: string, password: string): Promise<FerretdbServer> {
  const folder = serverFolder('ferretdb')
  // The account that runs it may not enter the folder in which it was built.
  const program = join(folder, 'ferretdb')
  copyFileSync(built, program)
  chmodSync(program, 0o755)
  const port = await freePort()
  const options = [
    '--handler=sqlite',
    `--sqlite-url=file:${folder}/`,
    `--state-dir=${folder}`,
    `--listen-addr=127.0.0.1:${port}`,
    '--debug-addr=-',
    '--telemetry=disable',
    '--test-enable-new-auth',
    '--setup-database=admin',
    `--setup-username=${user}`,
    `--setup-password=${password}`,
  ]
  const running = await run(program, options, /Listening on TCP/i)
  return {
    ...running,
    port,
    remove: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}
