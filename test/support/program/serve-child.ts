import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Ending } from '../suite/daemon.ts'
import { compiledCode } from './compiled-code.ts'
import { type Serving, serving } from './serving.ts'

export type ServeProcess = Pick<Serving, 'child' | 'url'> & {
  /** Sends SIGTERM to svc and waits for its end. */
  readonly stop: () => Promise<Ending>
  /** Kills what still runs, and removes the folder. */
  readonly remove: () => Promise<void>
}

type Options = {
  /** Standard error of the child: a descriptor, or a pipe that is unread until the test reads it. */
  readonly stderr: number | 'pipe'
  /** A command that runs svc, with its arguments: it prints the process id of svc as its first line. */
  readonly command?: readonly string[]
  /** A program that runs in the process of svc before svc itself. */
  readonly preload?: string
  readonly args?: readonly string[]
}

/** Starts `svc serve` on a free port without a store, and waits until it listens. */
export async function startServe({ stderr, command = [], preload, args = [] }: Options): Promise<ServeProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-serve-'))
  const imports = preload === undefined ? [] : ['--import', `data:text/javascript,${encodeURIComponent(preload)}`]
  const { child, url, pid, ended } = await serving(['--only', 'health', ...args], {
    folder,
    node: imports,
    within: (svc) => [...command, ...svc],
    env: { PATH: process.env.PATH ?? '', HOME: folder, SVC_HOME: folder, ...compiledCode },
    stdio: ['pipe', 'pipe', stderr],
    unread: true,
    end: 'exit',
  })
  const first = command.length === 0 ? pid : await once(child.stdout as NodeJS.ReadableStream, 'data')
  return {
    child,
    url,
    stop: () => {
      process.kill(Number.parseInt(String(first), 10), 'SIGTERM')
      return ended
    },
    remove: async () => {
      // A command in between ends svc when its input ends.
      child.stdin?.end()
      if (command.length === 0) child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
