import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { hostname, tmpdir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { root } from '../pages/stage.ts'
import { onTerminal } from '../pages/terminal.ts'

/** The folder that the captures show instead. Both are as long as the originals, so that no line breaks elsewhere. */
const shownHome = '/home/operators'
const shownPorts = ['18080', '19100'] as const

export type Fixture = {
  /** Captures a command of the program in a terminal of `columns`, with the exit code. */
  readonly capture: (
    program: string,
    command: string,
    columns: number,
    moving?: { readonly rows: number; readonly answer: (output: string) => string | undefined },
  ) => Promise<{ code: number | null; text: string }>
  readonly configure: (yaml: string) => void
  /** Jobs that wait in the shop, as its status says. */
  readonly setWaiting: (jobs: number) => void
  readonly shopPort: number
  /** A port where a server listens until `stopWorker`. */
  readonly workerPort: number
  readonly stopWorker: () => Promise<void>
  readonly startWorker: () => Promise<void>
  readonly remove: () => Promise<void>
}

/** A home with its own svc, a web shop and a worker on this machine. */
export async function openFixture(): Promise<Fixture> {
  // The name has 15 characters, like `shownHome`.
  const home = mkdtempSync('/tmp/svc-')
  const bin = join(home, 'bin')
  mkdirSync(bin)
  copyFileSync(process.execPath, join(bin, 'node'))
  const status = { state: 'ready', waiting: 3 }
  const shop = createServer((_, response) => {
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(status))
  })
  // It keeps connections open: svc warns of a server that closes them at once.
  const worker = createTcpServer(() => {})
  const [shopPort, workerPort] = await Promise.all([listening(shop), listening(worker)])
  const file = join(home, '.config/svc/svc.yaml')
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const published = (text: string): string =>
    text
      .replaceAll(home, shownHome)
      .replaceAll(String(shopPort), shownPorts[0])
      .replaceAll(String(workerPort), shownPorts[1])
  return {
    configure: (yaml) => writeFileSync(file, yaml, { mode: 0o600 }),
    setWaiting: (jobs) => {
      status.waiting = jobs
    },
    shopPort,
    workerPort,
    stopWorker: async () => {
      worker.close()
      await once(worker, 'close')
    },
    startWorker: async () => {
      await once(worker.listen(workerPort, '127.0.0.1'), 'listening')
    },
    capture: async (program, command, columns, moving) => {
      rmSync(join(bin, 'svc'), { force: true })
      symlinkSync(program, join(bin, 'svc'))
      const env = { HOME: home, PATH: `${bin}:/usr/bin:/bin`, LANG: 'C.UTF-8', COLORTERM: 'truecolor' }
      const { status: code, output } = await onTerminal(command, { cwd: home, env, columns, ...moving })
      const text = published(output)
      for (const secret of [root, tmpdir(), hostname(), userInfo().homedir]) {
        if (secret.length > 1 && text.includes(secret)) throw new Error(`the capture of ${command} contains ${secret}`)
      }
      return { code, text }
    },
    remove: async () => {
      shop.close()
      if (worker.listening) worker.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** A port with five digits, like those that the captures show. */
async function listening(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  if (port < 10_000) throw new Error(`port ${port} has fewer than five digits: try again`)
  return port
}
