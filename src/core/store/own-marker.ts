import { randomUUID } from 'node:crypto'
import { lstatSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { Fault } from '../base/errors.ts'
import { isRunning, startTicks } from '../base/running-process.ts'
import { markerPath, readMarker } from '../base/system/serve-marker.ts'
import { changeOf, reason, type StoreFiles, storeFiles } from './path.ts'
import { lockIdentity } from './serve-lock.ts'
import type { KeeperLog } from './upkeep/keeper.ts'

/** How often a server looks whether its store still has a marker. Milliseconds. */
const lookEveryMs = 5_000

/**
 * Keeps a marker beside the store of a running server, with which `svc health` of this store finds the server and other
 * svc processes notice that the store was replaced. The server that has locked the store has the marker. Where the file
 * system takes no locks, several servers may use it: the first one has the marker, and when it has ended, or somebody has
 * removed the marker, another one writes its own. There is none while a server does not use the store. The server works without a marker: one that cannot be written is logged once, and tried again. Resolves
 * with a function that ends this and removes the own marker; it throws file system errors.
 */
export async function keepMarker(
  storePath: string,
  server: {
    readonly url: string
    /** The files that the server has opened. Undefined while it does not use the store. */
    readonly files: () => Promise<Partial<StoreFiles> | undefined>
    readonly log: KeeperLog
  },
): Promise<() => void> {
  const path = markerPath(storePath)
  const { pid } = process
  const since = new Date().toISOString()
  let hasEnded = false
  let hasFailed = false
  const look = async (): Promise<void> => {
    const files = await server.files().catch(() => undefined)
    const marker = readMarker(storePath)
    const lock = lockIdentity(storePath)
    const isOthers = marker !== undefined && marker.pid !== pid && lock === undefined && isRunning(marker)
    const isCurrent = marker?.pid === pid && marker.files?.lock === lock
    if (hasEnded || !files || isOthers || isCurrent) return
    try {
      replace(
        path,
        JSON.stringify({ pid, url: server.url, started: startTicks(pid), since, files: { ...files, lock } }),
      )
    } catch (error) {
      const effect = 'other commands do not find this server by its store'
      if (!hasFailed) server.log({ level: 'warn', msg: `${path} cannot be written: ${reason(error)}: ${effect}` })
      hasFailed = true
    }
  }
  await look()
  const timer = setInterval(() => void look(), lookEveryMs)
  timer.unref()
  return () => {
    hasEnded = true
    clearInterval(timer)
    if (readMarker(storePath)?.pid === pid) rmSync(path, { force: true })
  }
}

/** Writes the whole file or nothing of it. */
function replace(path: string, content: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === false) return
  const made = `${path}.${randomUUID()}`
  try {
    writeFileSync(made, content, { flag: 'wx', mode: 0o600 })
    renameSync(made, path)
  } catch (error) {
    rmSync(made, { force: true })
    throw error
  }
}

/**
 * Throws Fault `Local` for files that are not those which a running `svc serve` has opened at this path: the store was moved or replaced,
 * and the server still has the other one. Writes to both would be lost with one of them.
 */
export function refuseStray(path: string): void {
  const marker = readMarker(path)
  if (!marker?.files || marker.pid === process.pid || !isRunning(marker)) return
  const { database, log, index } = marker.files
  const change = changeOf({ database, log, index }, storeFiles(path))
  if (change === undefined) return
  const server = `the svc serve with the process id ${marker.pid}`
  throw new Fault('Local', `The store ${path} is not the file that ${server} uses: it ${change}`, {
    hints: [
      `Stop that server: kill ${marker.pid}. It then saves what only it still holds.`,
      'If it should go on, move its file back instead.',
    ],
  })
}
