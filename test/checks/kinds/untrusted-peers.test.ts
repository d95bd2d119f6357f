import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readSettings, type SettingsSpec } from '../../../src/core/base/settings/index.ts'
import type { AnyKind, Kind } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import { runKind } from '../../support/engine/run-kind.ts'
import { blackHole, peer } from '../../support/faults/faults.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { suiteWith } from '../../support/suite/peer.ts'

const at = '127.0.0.1'
const account = { username: 'monitor', password: { env: 'WORD' } }

/** Monitors of each kind that begins with TLS, as svc.yaml declares them, for a server on a port of this machine. */
const rows: Partial<Record<KindName, (port: number, caFile: string | undefined) => object>> = {
  http: (port, caFile) => ({ url: `https://${at}:${port}/`, caFile }),
  ldap: (port, caFile) => ({ url: `ldaps://${at}:${port}`, ...account, caFile }),
  mongo: (port, caFile) => ({
    url: `mongodb://monitor@${at}:${port}/`,
    ...{ password: account.password, tls: { mode: 'verify', caFile } },
  }),
  oidc: (port, caFile) => ({ issuer: `https://${at}:${port}`, caFile }),
  rabbitmq: (port, caFile) => ({ url: `https://${at}:${port}`, ...account, caFile }),
  redis: (port, caFile) => ({ url: `rediss://${at}:${port}`, password: account.password, caFile }),
  smtp: (port, caFile) => ({ host: at, port, tls: 'implicit', ...account, caFile }),
  svc: (port, caFile) => ({ url: `https://${at}:${port}`, type: 'App', caFile }),
}

suiteWith(opensslMissing(), 'a peer whose certificate is not trusted', () => {
  let made: Certificates
  beforeAll(() => {
    made = makeCertificates()
  })
  afterAll(() => made.remove())

  describe.each(Object.entries(rows))('%s', (name, monitor) => {
    test.each([
      ['an expired certificate', 'expired', true, /expired/],
      ['a certificate for another name', 'otherHost', true, /is not (?:for 127\.0\.0\.1|in the cert's list)/],
      ['a certificate of an unknown CA', 'good', false, /unknown here|does not trust|unable to get|self.signed/i],
    ] as const)(`${name}: %s is a failure of TLS, and nothing is sent`, async (_, certificate, isKnown, words) => {
      const kind = (await monitors[name as KindName].load()).default as AnyKind as Kind<SettingsSpec>
      await using server = await peer(blackHole, { tls: made[certificate] })
      const raw = JSON.parse(JSON.stringify(monitor(server.port, isKnown ? made.caFile : undefined))) as object
      const { values, problems } = readSettings(kind.settings, raw, { env: { WORD: 'correct horse' }, folder: '/' })
      expect(problems).toEqual([])
      const failed = (await runKind(kind, values, 'Standard')).filter(({ status }) => status === 'failed')
      expect(failed[0]).toMatchObject({ fault: 'tls', message: expect.stringMatching(words) })
      expect(server.input()).toBe('')
    })
  })
})
