import { execFileSync } from 'node:child_process'
import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { asServer, findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

const program = findProgram('mosquitto')
const passwords = findProgram('mosquitto_passwd')
export const mosquittoMissing =
  program === undefined || passwords === undefined
    ? 'Mosquitto (mosquitto, mosquitto_passwd) is not installed'
    : undefined

export type Mosquitto = Running & { readonly port: number; readonly remove: () => Promise<void> }

/** A real Mosquitto on a free port of 127.0.0.1, for everyone or for an account alone. */
export async function startMosquitto({ guarded = false } = {}): Promise<Mosquitto> {
  const folder = serverFolder('mosquitto')
  const port = await freePort()
  const accounts = join(folder, 'accounts')
  if (guarded) {
    execFileSync(passwords ?? '', ['-b', '-c', accounts, 'monitor', 'a word'])
    if (asServer.uid !== undefined) chownSync(accounts, asServer.uid, asServer.gid)
  }
  const access = guarded ? `allow_anonymous false\npassword_file ${accounts}` : 'allow_anonymous true'
  const file = join(folder, 'mosquitto.conf')
  writeFileSync(file, `listener ${port} 127.0.0.1\npersistence false\n${access}\n`)
  const running = await run(program ?? '', ['-c', file], /mosquitto version .* running/)
  return {
    ...running,
    port,
    remove: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}
