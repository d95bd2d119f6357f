import { constants, fstatSync, openSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isatty } from 'node:tty'

/**
 * Opens the pipe or terminal behind a descriptor once more, so that a write to it fails with EAGAIN
 * where it would wait for the reader. A description of its own, because processes that share one share
 * its mode, and any of them may change that.
 *
 * Undefined for anything else, and where the system does not let it be opened again.
 */
export function openNonBlocking(descriptor: number): number | undefined {
  // Windows has no such mode.
  if (constants.O_NONBLOCK === undefined) return undefined
  try {
    const open = fstatSync(descriptor)
    if (!open.isFIFO() && !isatty(descriptor)) return undefined
    const path = pathsOf(descriptor).find((each) => {
      const { dev, ino } = statSync(each)
      return dev === open.dev && ino === open.ino
    })
    // A terminal that is opened must not become this process's own, whose ctrl-C it would get.
    const mode = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY
    return path === undefined ? undefined : openSync(path, mode)
  } catch {
    return undefined
  }
}

/** Linux has a path for whatever is open; elsewhere a terminal is found among the devices, as ttyname(3) does. */
const pathsOf = (descriptor: number): readonly string[] =>
  process.platform === 'linux'
    ? [`/proc/self/fd/${descriptor}`]
    : readdirSync('/dev')
        .filter((name) => name.startsWith('tty'))
        .map((name) => join('/dev', name))
