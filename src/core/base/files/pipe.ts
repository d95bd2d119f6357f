import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'

/** Milliseconds between two looks at a pipe. */
const againMs = 20

/**
 * Reads a pipe or a device until its end. Never blocks a thread. Throws an Error that completes "the file …" if it does
 * not end within `ms`, or is larger than `maxBytes`.
 */
export async function readPipe(path: string, maxBytes: number, ms: number): Promise<string> {
  const until = performance.now() + ms
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  try {
    const isPipe = (await file.stat()).isFIFO()
    const buffer = Buffer.alloc(65_536)
    let bytes = Buffer.alloc(0)
    for (;;) {
      const read = await file.read(buffer, 0, buffer.length, null).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'EAGAIN') return undefined
        throw error
      })
      // A named pipe that nobody has opened for writing yet looks like one at its end.
      if (read?.bytesRead === 0 && (bytes.length > 0 || !isPipe)) return bytes.toString('utf8')
      if (read) bytes = Buffer.concat([bytes, buffer.subarray(0, read.bytesRead)])
      if (bytes.length > maxBytes) throw new Error(`is larger than ${maxBytes} bytes`)
      if (performance.now() > until) throw new Error(`is a pipe that did not end within ${ms / 1_000} s`)
      if (!read || read.bytesRead === 0) await pause(againMs)
    }
  } finally {
    await file.close()
  }
}
