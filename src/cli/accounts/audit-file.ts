import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { link, open, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { Fault } from '../../core/base/errors.ts'
import { fileProblem } from '../../core/base/file-errors.ts'
import { type ChainHead, type ChainVerdict, verifyLines } from '../../core/store/audit/index.ts'
import { loadAuditEvents } from '../../core/store/index.ts'

/** Verifies an export or a stream of the audit log. Throws Fault Local for a file that is neither intact nor broken. */
export async function verifyAuditFile(
  file: string,
  kind: 'export' | 'stream',
  head: ChainHead | undefined,
  signal: AbortSignal,
): Promise<ChainVerdict> {
  const { refusalsKeptMs } = await loadAuditEvents()
  const stream = createReadStream(file, { signal })
  try {
    return await verifyLines(stream, kind, { now: Date.now(), refusalsKeptMs, head })
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (error instanceof SyntaxError) {
      const [what, hint] = fileKinds[kind]
      throw new Fault('Local', `${file} is not ${what}: ${error.message}`, { hints: [hint] })
    }
    if (typeof (error as NodeJS.ErrnoException).code !== 'string') throw error
    throw new Fault('Local', `${file} ${fileProblem(error)}`, { cause: error })
  } finally {
    stream.destroy()
  }
}

const fileKinds = {
  export: ['an audit that svc exported', 'svc audit export FILE writes one.'],
  stream: ['a stream of the audit', 'serve.audit.stream in svc.yaml names the file of a stream.'],
} as const

/** Writes a file with mode 600, which appears once it is complete. `write` gets the function that appends text. */
export async function writeAuditFile<T>(
  file: string,
  overwrite: boolean,
  write: (append: (text: string) => Promise<void>) => Promise<T>,
): Promise<T> {
  const path = resolve(file)
  const made = join(dirname(path), `.svc-audit-${randomUUID()}`)
  try {
    const handle = await open(made, 'wx', 0o600)
    let result: T
    try {
      let buffered = ''
      result = await write(async (text) => {
        buffered += text
        if (buffered.length < charactersAtOnce) return
        const part = buffered
        buffered = ''
        await handle.appendFile(part)
      })
      await handle.appendFile(buffered)
      await handle.sync()
    } finally {
      await handle.close()
    }
    if (overwrite) await rename(made, path)
    else await link(made, path)
    return result
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (error instanceof Fault || typeof code !== 'string') throw error
    if (code === 'ENOENT')
      throw new Fault('Local', `${file} cannot be written: its folder does not exist`, { cause: error })
    const hints = code === 'EEXIST' ? ['Name another file, or replace this one with --overwrite.'] : []
    throw new Fault('Local', code === 'EEXIST' ? `${file} exists already` : `${file} ${fileProblem(error)}`, {
      hints,
      cause: error,
    })
  } finally {
    await rm(made, { force: true })
  }
}

const charactersAtOnce = 262_144
