import { expect, onTestFinished, test } from 'vitest'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import steps from '../../../src/core/checks/kinds/http-steps/index.ts'
import { runKind } from '../../support/engine/run-kind.ts'
import { makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { startVsftpd, vsftpdMissing, vsftpdPassword } from '../../support/servers/vsftpd.ts'
import { startFtpApi } from '../../support/simulated/ftp-api.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const env = { FTP_PASSWORD: vsftpdPassword, WRONG: 'not-the-password-at-all' }

peerSuite(vsftpdMissing ?? opensslMissing(), 'http-steps at vsftpd', () => {
  test('configured credentials sign in over TLS and list a folder; wrong ones are refused once', async () => {
    const certificates = makeCertificates()
    onTestFinished(() => certificates.remove())
    const server = await startVsftpd({ certificate: certificates.good })
    onTestFinished(server.remove)
    await using api = await startFtpApi()
    const { caFile } = certificates
    const { port } = server
    const run = (variable: string) => {
      const raw = {
        url: `${api.origin}/v1`,
        token: { env: variable },
        steps: [{ name: 'use', ftp: { host: 'localhost', port, caFile, username: 'ftp', password: `\${token}` } }],
      }
      const { values, problems } = readSettings(steps.settings, raw, { env, folder: '/' })
      expect(problems).toEqual([])
      return runKind(steps, values, 'Advanced', { timeoutMs: 20_000 })
    }
    const well = await run('FTP_PASSWORD')
    expect(well.map(({ status }) => status)).toEqual(['ok', 'ok'])
    expect(well[1]?.message).toMatch(/^use: signed in to 127\.0\.0\.1:\d+ as "ftp" in .*listed in/)
    const [, refused] = await run('WRONG')
    expect(refused).toMatchObject({ check: 'step', status: 'failed', fault: 'auth' })
    await expect.poll(() => server.sessions()).toBe(0)
  })
})
