import { dirname, join } from 'node:path'
import { Fault } from '../../core/base/errors.ts'
import { type KeptSecret, secretName } from '../../core/base/settings/index.ts'
import { optionalArgument, required } from '../command/flags.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { awaitShare, readPrivate, settingsFolder, writePrivate } from '../settings/private-file.ts'
import { keychainEntry } from './index.ts'

/** A secret in lists: everything but its value. */
export type SecretFacts = { readonly name: string; readonly host: string; readonly port: number }

const entry = (name: string, env: ProcessEnvironment) => keychainEntry('secrets', name, env, 'secret')

/** Reads a secret from the keychain. Its allowed place is in the same entry, so that no file can widen it. */
export async function readSecret(name: string, env: ProcessEnvironment): Promise<KeptSecret | undefined> {
  const text = await entry(name, env).read()
  if (text === undefined) return undefined
  const damaged = new Fault('Local', `the keychain's entry "${name}" has content that svc did not write`, {
    hints: [`Set it again: svc secrets set ${name} --for HOST:PORT`],
  })
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw damaged
  }
  const { secret, host, port } = (json ?? {}) as { readonly [K in keyof KeptSecret]?: unknown }
  if (typeof secret !== 'string' || typeof host !== 'string' || typeof port !== 'number') throw damaged
  return { secret, host, port }
}

/** Stores a secret and replaces one of the same name. Rejects with `Fault` NoKeychain when it cannot be stored. */
export async function keepSecret(
  name: string,
  secret: KeptSecret,
  env: ProcessEnvironment,
  signal: AbortSignal,
): Promise<void> {
  await entry(name, env).write(JSON.stringify(secret))
  const { host, port } = secret
  await changeIndex(env, (all) => [...all.filter((one) => one.name !== name), { name, host, port }], signal)
}

/** Removes a secret. Returns whether there was one. */
export async function removeSecret(name: string, env: ProcessEnvironment, signal: AbortSignal): Promise<boolean> {
  const removed = await entry(name, env).remove()
  await changeIndex(env, (all) => all.filter((one) => one.name !== name), signal)
  return removed
}

/** Writes and removes a test entry to prove that the keychain works, before svc prompts for a secret. */
export const proveKeychain = (env: ProcessEnvironment): Promise<void> => entry('probe', env).prove()

const indexPath = (env: ProcessEnvironment): string => join(settingsFolder(env), 'secrets.json')

/** The secrets set here, sorted by name. Not every platform's keychain can list its entries. */
export async function secretsKnown(env: ProcessEnvironment): Promise<readonly SecretFacts[]> {
  const path = indexPath(env)
  await awaitShare(path)
  const text = readPrivate(path, 'unwritable')
  if (text === undefined) return []
  try {
    const json: unknown = JSON.parse(text)
    if (Array.isArray(json) && json.every(isFacts)) return json.map(({ name, host, port }) => ({ name, host, port }))
  } catch {
    // The fault below reports it.
  }
  throw new Fault('Local', `${path} has content that svc did not write`, {
    hints: ['Move the file away: the secrets themselves remain in the OS keychain.'],
  })
}

const isFacts = (value: unknown): value is SecretFacts => {
  const { name, host, port } = (value ?? {}) as { readonly [K in keyof SecretFacts]?: unknown }
  return typeof name === 'string' && typeof host === 'string' && typeof port === 'number'
}

async function changeIndex(
  env: ProcessEnvironment,
  change: (all: readonly SecretFacts[]) => readonly SecretFacts[],
  signal: AbortSignal,
): Promise<void> {
  const path = indexPath(env)
  const { acquire } = await import('../settings/private-file.ts')
  using _lock = await acquire(join(dirname(path), 'locks', 'secrets.lock'), signal)
  const sorted = change(await secretsKnown(env)).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  writePrivate(path, `${JSON.stringify(sorted, null, 2)}\n`)
}

/** `HOST:PORT` of `--for`. Throws `Fault` Usage naming the flag. */
export function placeOf(text: string): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, digits] = /^(?:\[([0-9a-f:.]+)\]|([^\s:/@[\]]+)):(\d{1,5})$/i.exec(text.trim()) ?? []
  const host = (bracketed ?? plain)?.toLowerCase().replace(/\.$/, '')
  const port = Number(digits)
  if (host && port >= 1 && port <= 65_535) return { host, port }
  throw new Fault('Usage', `--for "${text}" is not a host and port`, {
    hints: ['Write the host and port as in svc.yaml: --for db1.internal:5432, or --for [::1]:5432'],
  })
}

export const nameArg = {
  name: optionalArgument('NAME', 'Name of the secret, as in {keychain: NAME} in svc.yaml'),
}

/** Throws `Fault` Usage for an invalid secret name. */
export function checkedSecretName(input: string | undefined): string {
  const name = required(input, 'NAME')
  if (secretName.test(name)) return name
  throw new Fault('Usage', 'invalid secret name', {
    hints: [
      'Use letters, digits and _ . @ - , at most 100. The secret itself is never an argument; svc prompts for it.',
    ],
  })
}
