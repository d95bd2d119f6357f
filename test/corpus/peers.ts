import { execFile } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { MountNamespace } from '../support/faults/mount-namespace.ts'
import { findProgram, freePort, remove, run, serverFolder } from '../support/servers/server.ts'

/** Another monitoring program, and how it is asked. */
export type PeerProgram =
  | {
      /** A plug-in of monitoring-plugins or check_postgres, e.g. `check_http`. */
      readonly program: string
      readonly args: readonly string[]
      readonly env?: Readonly<Record<string, string>>
    }
  | {
      readonly program: 'blackbox_exporter'
      /** One module of its configuration, in JSON. */
      readonly module: object
      readonly target: string
    }

/** `missing`: the program is not installed here. */
export type PeerVerdict = {
  readonly program: string
  readonly state: 'OK' | 'WARNING' | 'CRITICAL' | 'UNKNOWN' | 'missing'
  readonly line: string
}

const pluginFolder = '/usr/lib/nagios/plugins'
const states = ['OK', 'WARNING', 'CRITICAL', 'UNKNOWN'] as const
const maxMs = 30_000

/** Asks it, in the given mounts or in those of this machine. */
export const askPeer = (peer: PeerProgram, mounts?: MountNamespace): Promise<PeerVerdict> =>
  'module' in peer ? askBlackbox(peer.module, peer.target) : askPlugin(peer, mounts)

async function askPlugin(
  { program, args: written, env }: Extract<PeerProgram, { readonly args: unknown }>,
  mounts: MountNamespace | undefined,
): Promise<PeerVerdict> {
  const plugin = findProgram(program) ?? join(pluginFolder, program)
  if (!existsSync(plugin)) return { program, state: 'missing', line: '' }
  const [path, args] = mounts ? mounts.command(plugin, written) : ([plugin, written] as const)
  const { code, text } = await new Promise<{ readonly code: number | string; readonly text: string }>((resolve) => {
    execFile(path, [...args], { timeout: maxMs, env: { ...process.env, ...env } }, (error, stdout, stderr) =>
      resolve({ code: error ? (error.code ?? 3) : 0, text: stdout || stderr }),
    )
  })
  const [line = ''] = text.split('\n')
  return {
    program,
    state: typeof code === 'number' ? (states[code] ?? 'UNKNOWN') : 'UNKNOWN',
    line: line.slice(0, 300),
  }
}

async function askBlackbox(module: object, target: string): Promise<PeerVerdict> {
  const program = 'blackbox_exporter'
  const path = findProgram('prometheus-blackbox-exporter')
  if (path === undefined) return { program, state: 'missing', line: '' }
  const folder = serverFolder('blackbox')
  const file = join(folder, 'blackbox.yml')
  // The exporter runs as another account, which may not read the folder of a CA. JSON is YAML.
  const readable = (name: string, value: unknown): unknown => {
    if (name !== 'ca_file' || typeof value !== 'string') return value
    const copy = join(folder, 'ca.pem')
    copyFileSync(value, copy)
    chmodSync(copy, 0o644)
    return copy
  }
  await writeFile(file, JSON.stringify({ modules: { asked: { timeout: '5s', ...module } } }, readable))
  const port = await freePort()
  const exporter = await run(path, [`--config.file=${file}`, `--web.listen-address=127.0.0.1:${port}`], /Listening on/)
  try {
    const url = `http://127.0.0.1:${port}/probe?module=asked&debug=true&target=${encodeURIComponent(target)}`
    const text = await (await fetch(url, { signal: AbortSignal.timeout(maxMs) })).text()
    const ok = /^probe_success 1$/m.test(text)
    const [, why = ''] = /level=error .*?msg="([^"]*)"/.exec(text) ?? []
    return { program, state: ok ? 'OK' : 'CRITICAL', line: ok ? 'probe_success 1' : `probe_success 0 ${why}`.trim() }
  } finally {
    await exporter.stop('SIGTERM')
    remove(folder)
  }
}
