import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Notice, Receiver, ReceiverContext } from '../../../src/core/watch/notify/index.ts'
import { openReceiver } from '../../../src/core/watch/notify/index.ts'
import { folder, load } from '../../config/given.ts'
import { files } from '../engine/files.ts'
import { farMs } from '../suite/until.ts'

/** A failure of `Sql/postgres orders`, with changes. */
export const notice = (changes: Partial<Notice> = {}, subject: Partial<Notice['subject']> = {}): Notice => ({
  subject: { server: 'prod', type: 'Sql', monitor: 'postgres orders', check: 'connect', ...subject },
  id: 'n1',
  what: 'begin',
  level: 'failed',
  incident: 'i1',
  beganAt: Date.UTC(2026, 10, 24, 11, 42, 54),
  observedAt: Date.UTC(2026, 10, 24, 11, 43, 14),
  fault: 'refused',
  text: '10.0.0.7:5432 refused the connection',
  victims: { count: 0, names: [] },
  tags: [],
  ...changes,
})

export const signal = (): AbortSignal => AbortSignal.timeout(farMs)

export type Opened = { readonly receiver: Receiver; readonly warnings: readonly string[] }

/** Opens the first receiver of a `notify:` section, in YAML. */
export async function opened(
  receiver: string,
  { env = {}, ...context }: Partial<ReceiverContext> & { readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Opened> {
  const { notify = [] } = await load(`notify:\n  - ${receiver}`, env)
  const [config] = notify
  if (config === undefined) throw new Error('there is no receiver')
  const warnings: string[] = []
  const warn = (message: string): void => void warnings.push(message)
  const whole = { server: 'prod', version: '1.2.3', files, now: () => Date.now(), warn, ...context }
  return { receiver: await openReceiver(config, whole), warnings }
}

/** A receiver that starts a program of this shell script, in a folder whose programs may run. `args`: YAML. */
export async function openedProgram(
  script: string,
  args = '[]',
): Promise<Opened & { readonly allowed: string; readonly path: string }> {
  const allowed = await folder()
  const path = join(allowed, 'sms')
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
  const yaml = `{name: sms, exec: {program: "${path}", args: ${args}}}`
  return { allowed, path, ...(await opened(yaml, { programs: { allow: [allowed] } })) }
}

/** For parts whose watchdog does not matter. */
export const neverWatching = { isSteady: (): boolean => false, followBacklog: (): void => {} }
