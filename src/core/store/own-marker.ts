import { randomUUID } from 'node:crypto'
import { lstatSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { Fault } from '../base/errors.ts'
import { isRunning, startTicks } from '../base/running-process.ts'
import { markerPath, readMarker } from '../base/system/serve-marker.ts'
import { changeOf, storeFiles } from './path.ts'

/** How often a server looks whether its store still has a marker. Milliseconds. */
const lookEveryMs = 5_000

/**
 * Keeps a marker beside the store of a running server, with which `svc health` of this store finds the server and other
 * svc processes notice that the store was replaced. Several servers may use a store: the first one has the marker, and
 * when it has ended, or somebody has removed the marker, another one writes its own. Throws file system errors if there is
 * no marker and it cannot be written. Returns a function that ends this and removes the own marker; it throws the same.
 */
export function keepMarker(
  storePath: string,
  server: { readonly url: string; readonly files: Readonly<Record<string, string | undefined>> | undefined },
): () => void {
  const path = markerPath(storePath)
  const { pid } = process
  const content = JSON.stringify({ pid, url: server.url, started: startTicks(pid), files: server.files })
  const look = (): void => {
    const marker = readMarker(storePath)
    if (marker && (marker.pid === pid || isRunning(marker))) return
    replace(path, content)
  }
  look()
  const timer = setInterval(() => {
    try {
      look()
    } catch {
      // The server works without a marker, and the next attempt follows soon.
    }
  }, lookEveryMs)
  timer.unref()
  return () => {
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
