import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Accounts, by, password, startAccounts } from '../server/accounts.ts'
import { peerSuite } from '../support/suite/peer.ts'

const run = promisify(execFile)
const python = process.env['SVC_PYTHON'] ?? 'python3'

const works = (command: string, ...words: readonly string[]): boolean => {
  try {
    execFileSync(command, words, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
const hasCurl = works('curl', '--version')
const hasRequests = works(python, '-c', 'import requests')

const missing = hasCurl && hasRequests ? undefined : 'curl, and requests for Python, are not installed'
peerSuite(missing, 'clients that sign in by HTTP Digest', () => {
  const sites: Record<'SHA-256' | 'MD5', Accounts> = {} as never
  beforeAll(async () => {
    for (const [name, digestMd5] of [
      ['SHA-256', false],
      ['MD5', true],
    ] as const) {
      const site = await startAccounts({ basic: true }, '127.0.0.1', { digest: true, digestMd5 })
      await site.admin.users.add({ userName: 'Jäsøn', password, digest: true }, by)
      await site.admin.users.add({ userName: 'Dora', password, digest: true }, by)
      sites[name] = site
    }
  })
  afterAll(() => Promise.all(Object.values(sites).map((site) => site.close())))

  test('A12 curl signs in with SHA-256, and asks who it is', async () => {
    const url = `http://127.0.0.1:${sites.MD5.port}`
    const curl = async (...words: readonly string[]) =>
      (await run('curl', ['-sv', '--digest', '-u', `Jäsøn:${password}`, ...words])) as {
        stdout: string
        stderr: string
      }
    const signedIn = await curl(
      '-X',
      'POST',
      '-H',
      'Content-Length: 0',
      '-H',
      'Accept: application/json',
      `${url}/auth/digest`,
    )
    expect(JSON.parse(signedIn.stdout)).toMatchObject({ UserName: 'Jäsøn' })
    expect(signedIn.stderr).toMatch(/> Authorization: Digest .*algorithm=SHA-256/)
    const who = await curl('-H', 'Accept: application/json', `${url}/auth?x=1`)
    expect(JSON.parse(who.stdout)).toMatchObject({ UserName: 'Jäsøn' })
    const invalid = await run('curl', [
      '-s',
      '-w',
      '%{http_code}',
      '-o',
      '-',
      '--digest',
      '-u',
      'Jäsøn:wrong',
      `${url}/auth`,
    ])
    expect(invalid.stdout).toMatch(/401$/)
  })

  // requests hashes a name as UTF-8 and sends it as Latin-1, so that one outside ASCII signs in nowhere.
  const program = `
import json, sys, requests
from requests.auth import HTTPDigestAuth
url, name, password = sys.argv[1:]
session = requests.Session()
session.auth = HTTPDigestAuth(name, password)
accept = {'Accept': 'application/json'}
answers = [session.post(url + '/auth/digest', headers=accept)] + [session.get(url + '/auth', headers=accept, cookies={}) for _ in range(3)]
print(json.dumps([[a.status_code, a.json().get('UserName'), a.request.headers['Authorization'], len(a.history)] for a in answers]))
`
  test.each(['SHA-256', 'MD5'] as const)(
    'A12 requests of Python signs in, and goes on with the same nonce (%s)',
    async (algorithm) => {
      const { stdout } = await run(python, [
        '-c',
        program,
        `http://127.0.0.1:${sites[algorithm].port}`,
        'Dora',
        password,
      ])
      const answers = JSON.parse(stdout) as [number, string, string, number][]
      expect(answers.map(([status, name]) => [status, name])).toEqual(Array.from({ length: 4 }, () => [200, 'Dora']))
      const headers = answers.map(([, , header]) => header)
      expect(headers.every((header) => header.includes(`algorithm="${algorithm}"`))).toBe(true)
      expect(headers.map((header) => /nc=(\w+)/.exec(header)?.[1])).toEqual([
        '00000001',
        '00000002',
        '00000003',
        '00000004',
      ])
    },
  )
})
