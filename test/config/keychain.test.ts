import { join } from 'node:path'
import { expect, test } from 'vitest'
import { hostAndPort, type Secret } from '../../src/core/base/settings/index.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import { files } from '../support/engine/files.ts'
import { file, folder, here } from './given.ts'

const keychainEntry = { secret: 'violet-harbour-42', host: 'mail.internal', port: 25 }

/** The secret that a monitor gets from a svc.yaml that points at the keychain, or why it gets none. */
async function revealed(lines: readonly string[]): Promise<string> {
  const home = await folder()
  const yaml = ['types:', '  App:', ...['- name: it', ...lines.map((line) => `  ${line}`)].map((line) => `    ${line}`)]
  const path = await file(join(home, 'svc.yaml'), yaml.join('\n'))
  const { types } = await loadConfig({ ...here({}, home), path, keychain: async () => keychainEntry })
  const [monitor] = types.App?.monitors ?? []
  if (!monitor) throw new Error('the file has no monitor')
  const { password } = monitor.settings as { readonly password: Secret }
  return await password.reveal(files).catch(({ message }: Error) => message)
}

const account = ['username: u', 'password: {keychain: mail}']
const kinds = [
  ['smtp', (host: string) => ['kind: smtp', `host: ${JSON.stringify(host)}`, ...account]],
  ['ftp', (host: string) => ['kind: ftp', `host: ${JSON.stringify(host)}`, 'port: 25', ...account]],
  [
    'sftp',
    (host: string) => [
      'kind: sftp',
      `host: ${JSON.stringify(host)}`,
      'port: 25',
      `hostKey: SHA256:${'A'.repeat(43)}`,
      ...account,
    ],
  ],
] as const

/** The host at which a URL parser stops, while the resolver gets the whole name: one in a foreign zone. */
const foreign = [
  'mail.internal/.attacker.example',
  'mail.internal\\.attacker.example',
  'mail.internal?.attacker.example',
  'mail.internal#.attacker.example',
  'x@mail.internal',
  '%6dail.internal',
  'mail.inter\tnal',
]

test.each(kinds)('K8 %s: a host that only resembles that of a keychain secret gets nothing', async (_, monitor) => {
  for (const host of ['mail.internal', 'MAIL.internal.'])
    expect(await revealed(monitor(host))).toBe(keychainEntry.secret)
  for (const host of ['mail.internal.attacker.example', 'mail.internal。attacker.example', 'mail.interna1']) {
    const revealedText = await revealed(monitor(host))
    expect(revealedText).toContain('nothing was sent')
    expect(revealedText).not.toContain(keychainEntry.secret)
  }
  for (const host of foreign) await expect(revealed(monitor(host))).rejects.toThrow('types.App[0].host is not a host')
})

test('K8 a host and port have one form for each notation of the same host, and for no other', () => {
  expect(hostAndPort('DB1.Internal.', 5432)).toBe('db1.internal:5432')
  expect(hostAndPort('bücher.example', 80)).toBe('xn--bcher-kva.example:80')
  for (const host of ['::1', '[::1]', '0:0:0:0:0:0:0:1']) expect(hostAndPort(host, 80)).toBe('[::1]:80')
  const places = new Set(['mail.internal', ...foreign].map((host) => hostAndPort(host, 25)))
  expect(places.size).toBe(foreign.length + 1)
})
