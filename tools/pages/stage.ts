import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')

/** The surroundings that the pages call by example names: a home, a working directory that looks like a clone,
 * svc on PATH, and a web shop that is well. */
export type Stage = {
  readonly home: string
  readonly work: string
  readonly env: Readonly<Record<string, string>>
  /** Where the shop of the pages answers; its /health is `{"state": "ready"}`. */
  readonly shopUrl: string
  /** A port on which nothing listens. */
  readonly closedPort: number
  /** The port of `svc serve` where a page names none. */
  readonly servePort: number
  /** Writes a file; `~/` is the home. Only the account can read it, unless `mode` says otherwise. */
  readonly write: (path: string, content: string, mode?: number) => void
  readonly remove: () => void
}

export async function openStage(): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-pages-'))
  const [home, work, bin] = ['home', 'work', 'bin'].map((name) => {
    mkdirSync(join(folder, name), { mode: 0o700 })
    return join(folder, name)
  }) as [string, string, string]
  const shop = createServer((_, response) => {
    response.setHeader('Content-Type', 'application/json').end('{"state": "ready", "queue": 3}')
  })
  await once(shop.listen(0, '127.0.0.1'), 'listening')
  shop.unref()
  const servePort = await freePort()
  const write = (path: string, content: string, mode = 0o600): void => {
    const file = path.startsWith('~/') ? join(home, path.slice(2)) : join(work, path)
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(file, content, { mode })
  }
  for (const name of readdirSync(root)) {
    if (!name.startsWith('.')) symlinkSync(join(root, name), join(work, name))
  }
  const program = (name: string, lines: string): void => {
    writeFileSync(join(bin, name), `#!/bin/bash\n${lines}`)
    chmodSync(join(bin, name), 0o755)
  }
  program('svc', installed(servePort))
  program('npm', simulatedNpm)
  return {
    home,
    work,
    env: { HOME: home, PATH: `${bin}:${dirname(process.execPath)}:/usr/bin:/bin`, NO_COLOR: '1', SVC_PAGER: 'cat' },
    shopUrl: `http://127.0.0.1:${(shop.address() as AddressInfo).port}`,
    closedPort: await freePort(),
    servePort,
    write,
    remove: () => {
      shop.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** svc as installed, apart from what a test machine may lack: the default port may be in use, and there is no keychain. */
const installed = (servePort: number): string => `
set -- "$@"
if [ "$1" = serve ] && [[ " $* " != *" --port"* ]]; then set -- "$@" --port ${servePort}; fi
if [ "$1" = login ] && [[ " $* " != *" -- "* ]]; then set -- "$@" --insecure-storage; fi
exec "${process.execPath}" "${root}/bin/run.js" "$@"
`

/** npm without a registry: what it would install is here already. Other tests run the real one. */
const simulatedNpm = `
real() { PATH=\${PATH#*:} npm "$@"; }
case $1 in
  ci) test -f package-lock.json ;;
  test) grep -q '"test": ' package.json ;;
  run) grep -q "\\"$2\\": " package.json ;;
  pack) (cd ${root} && real pack --ignore-scripts --silent --pack-destination "$OLDPWD") ;;
  install) for last; do :; done; test -f "$last" ;;
  uninstall) true ;;
  *) echo "npm $1 is not simulated"; exit 1 ;;
esac
`

async function freePort(): Promise<number> {
  const server = createTcpServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
