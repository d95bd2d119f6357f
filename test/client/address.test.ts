import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { clientOf, faultOf, faultText, healthAt } from './asking.ts'

const folder = temporaryFolder()

test.each([
  ['', /empty/],
  ['  ', /empty/],
  ['svc.example.com', /Did you mean --server https:\/\/svc\.example\.com/],
  ['localhost:8790', /Did you mean --server http:\/\/localhost:8790/],
  ['[::1]:8790/ops', /Did you mean --server http:\/\/\[::1\]:8790\/ops/],
  ['ftp://example.com', /not an http or https URL/],
  ['file:///etc/passwd', /not an http or https URL/],
  ['http://', /not an http or https URL/],
  ['https://exa mple.com', /not an http or https URL/],
  ['https://example.com/?x=1', /Use the base URL alone: https:\/\/example\.com\//],
  ['https://example.com/ops#top', /Use the base URL alone: https:\/\/example\.com\/ops/],
])('an invalid base URL is exit 2 with an example of a valid one: %j', async (baseUrl, words) => {
  const fault = await faultOf(() => clientOf(baseUrl))
  expect([fault.fault, fault.exitCode]).toEqual(['Usage', 2])
  expect(faultText(fault)).toMatch(words)
})

test.each([
  'https://bob:hunter2@example.com',
  'https://hunter2@example.com/x',
  'bob:hunter2@example.com',
  'https://bob:hunter2 @h',
])('a password in the base URL is refused and not repeated: %s', async (baseUrl) => {
  const fault = await faultOf(() => clientOf(baseUrl))
  expect(fault.fault).toBe('Usage')
  expect(faultText(fault)).not.toContain('hunter2')
})

test.each([
  'http://example.com',
  'http://10.0.0.1:8790/x',
  'http://127.evil.com',
  'http://localhost.evil.com',
  'http://[::2]',
  'http://169.254.1.1',
  'http://[fe80::1]',
  'http://[::ffff:169.254.1.1]',
  'http://0.0.0.0:8790',
  'http://[::]:8790',
  'http://localhost.localdomain',
])('K5 plain http to another machine is refused unless --insecure-http: %s', async (baseUrl) => {
  const fault = await faultOf(() => clientOf(baseUrl))
  expect([fault.fault, fault.exitCode]).toEqual(['Usage', 2])
  expect(fault.details.hints?.at(-1)).toContain('--insecure-http')
  clientOf(baseUrl, { insecureHttp: true }).close()
})

test.each([
  'http://localhost',
  'http://127.0.0.1:1',
  'http://127.9.8.7',
  'http://[::1]:5',
  'http://[::ffff:127.0.0.1]',
  'http://[0:0:0:0:0:0:0:1]',
  'http://[::ffff:7f00:2]',
  'http://app.localhost:8790',
  'http://0x7f.1',
  'https://example.com',
  'HTTPS://EXAMPLE.com/',
])('K5 plain http to this machine, and https to any, is accepted: %s', (baseUrl) => {
  clientOf(baseUrl).close()
})

test('--ca-file with an unusable file is exit 12 and names the file', async () => {
  const write = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const damaged = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'
  for (const [caFile, words] of [
    [join(folder, 'absent.pem'), 'does not exist'],
    [folder, 'is a folder'],
    [write('empty.pem', ''), 'contains no certificate'],
    [write('key.pem', '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n'), 'contains no certificate'],
    [write('damaged.pem', damaged), 'contains a damaged certificate'],
  ] as const) {
    const fault = await faultOf(healthAt('https://127.0.0.1:1', {}, { caFile }))
    expect([fault.fault, fault.exitCode, fault.message]).toEqual(['Local', 12, `--ca-file ${caFile} ${words}`])
  }
})
