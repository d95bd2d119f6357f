import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import type { Config } from '../core/config/index.ts'
import { Fault } from '../core/errors.ts'
import { openCore } from '../core/open.ts'
import { startServer } from '../core/server/index.ts'
import { serveLog } from './serve-log.ts'

export type ServeRequest = {
  readonly version: string
  readonly config: Config
  /** Undefined: without a store. */
  readonly store: string | undefined
  readonly host: string
  readonly port: number
  readonly portFile: string | undefined
  /** Files. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  readonly allowedHosts: readonly string[]
  readonly debug: boolean
}

/** Serves until the signal aborts, then answers what is in flight and closes. */
export async function serve(request: ServeRequest, signal: AbortSignal): Promise<void> {
  const log = await serveLog(process.stderr)
  const tls = request.tls && {
    cert: await pem(request.tls.cert, 'tls-cert'),
    key: await pem(request.tls.key, 'tls-key'),
  }
  const options = {
    ...request.config.serve,
    allowedHosts: [...request.config.serve.allowedHosts, ...request.allowedHosts],
    debug: request.debug,
  }
  const { service, runtime } = await openCore({
    version: request.version,
    config: request.config,
    store: request.store,
    shared: true,
    details: options.details,
  })
  const marker = request.store === undefined ? undefined : `${request.store}.serve.json`
  try {
    const server = await startServer({ service, runtime, options, host: request.host, port: request.port, tls, log })
    try {
      if (request.portFile !== undefined) await write(request.portFile, `${server.port}\n`, 'port-file')
      // Lets `svc health` of this store find the server that runs here.
      if (marker !== undefined)
        await writeFile(marker, JSON.stringify({ pid: process.pid, url: server.url }), { mode: 0o600 })
      const { facts } = runtime
      log({
        level: 'info',
        msg: `svc ${request.version} listens on ${server.url}`,
        url: server.url,
        store: facts.store ?? 'none',
        configuration: facts.configuration ?? 'none',
        types: facts.types.length > 0 ? facts.types.join(' ') : 'none configured',
      })
      if (!signal.aborted) await once(signal, 'abort')
      log({ level: 'info', msg: 'stopping: answering what is in flight' })
    } finally {
      await server.stop()
      // Only here: a serve that did not get to listen must not take away another one's.
      for (const file of [marker, request.portFile]) if (file !== undefined) await rm(file, { force: true })
    }
  } finally {
    await runtime.close()
  }
  log({ level: 'info', msg: 'stopped' })
}

async function pem(file: string, flag: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw unusable(file, flag, error)
  }
}

async function write(file: string, content: string, flag: string): Promise<void> {
  try {
    await writeFile(file, content)
  } catch (error) {
    throw unusable(file, flag, error)
  }
}

const unusable = (file: string, flag: string, error: unknown): Fault =>
  new Fault('Local', `--${flag}: ${file} cannot be used: ${error instanceof Error ? error.message : String(error)}`)
