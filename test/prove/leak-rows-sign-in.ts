import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { http } from '../support/faults/faults.ts'
import { opensslMissing } from '../support/servers/certs.ts'
import { scriptedFtp } from '../support/servers/ftp-server.ts'
import { startSftpServer } from '../support/servers/sftp-server.ts'
import { dedicated, probe, slapdMissing, startSlapd, suffix } from '../support/servers/slapd.ts'
import { smtpAccount, startSmtp } from '../support/servers/smtp.ts'
import { sshdMissing, startSshd } from '../support/servers/sshd.ts'
import { startVsftpd, vsftpdMissing, vsftpdPassword } from '../support/servers/vsftpd.ts'
import { client, identityProvider, resource } from './leak-provider.ts'
import { broken, certificates, open, type Row, run, well } from './leak-row.ts'

const host = '127.0.0.1'
const signingIn = { modes: ['Standard', 'Advanced'] } as const
const sessions = (name: string, there: { readonly sessions: () => number }): readonly string[] =>
  there.sessions() === 0 ? [] : [`${name}: ${there.sessions()} sessions`]

/** Kinds that sign in to a server of files, of mail or of people. */
export const signInRows = {
  ftp: {
    missing: vsftpdMissing ?? opensslMissing(),
    cost: 'dear',
    start: async () => {
      const made = certificates()
      const server = await startVsftpd({ certificate: made.good })
      // The data connection is cut in mid listing.
      const cutting = await scriptedFtp({
        data: (data, control) => data.end('-rw-r--r-- 1 o g 5 Nov', () => control.resetAndDestroy()),
      })
      const account = { host, username: 'ftp', password: { env: 'WORD' } }
      const settings = { ...account, port: server.port, caFile: made.caFile }
      const breaks = await broken((port) => ({ host, port }), '220 He', { sendsFirst: true })
      return {
        env: { WORD: vsftpdPassword, WRONG: 'wrong@svc.test' },
        breaks,
        cases: [
          well({ ...settings, folder: '/incoming', allowWrites: true, probeFolder: 'incoming' }, { atOnce: 4 }),
          run('wrong password', ['auth'], { ...settings, password: { env: 'WRONG' } }, signingIn),
          run('cut data', 'fails', { ...account, port: cutting.port, tls: 'off' }, signingIn),
        ],
        left: () => [...sessions('vsftpd', server), ...open('cut data', cutting)],
        stop: async () => {
          await server.remove()
          await cutting.close()
        },
      }
    },
  },
  sftp: {
    missing: sshdMissing,
    cost: 'dear',
    start: async () => {
      const server = await startSshd(['MaxStartups 200', 'LoginGraceTime 20'])
      const cutting = await startSftpServer({ hangUp: true })
      const [folder, probeFolder] = [join(server.files, 'drop'), join(server.files, 'probe')]
      for (const path of [folder, probeFolder]) mkdirSync(path)
      const account = { host, port: server.port, hostKey: [server.hostKey], username: server.user }
      const settings = { ...account, privateKey: { env: 'KEY' }, folder, allowWrites: true, probeFolder }
      const breaks = await broken((port) => ({ host, port }), 'SSH-2', { sendsFirst: true })
      const monitor = { host, port: cutting.port, hostKey: [cutting.hostKey], username: 'monitor' }
      return {
        env: { KEY: server.privateKey, STRANGER: server.strangerKey, WORD: 'correct horse', WRONG: 'wrong horse' },
        breaks,
        cases: [
          well(settings, { atOnce: 4 }),
          run('wrong key', ['auth'], { ...account, privateKey: { env: 'STRANGER' } }, { ...signingIn, atOnce: 4 }),
          run('wrong password', ['auth'], { ...monitor, password: { env: 'WRONG' } }, signingIn),
          run('another server', ['tls'], { ...settings, hostKey: [cutting.hostKey] }, signingIn),
          run('hang-up in SFTP', 'fails', { ...monitor, password: { env: 'WORD' } }, signingIn),
        ],
        left: () => [...sessions('sshd', server), ...open('hang-up in SFTP', cutting)],
        stop: async () => {
          await server.remove()
          await cutting.close()
        },
      }
    },
  },
  ldap: {
    missing: slapdMissing ?? opensslMissing(),
    cost: 'cheap',
    start: async () => {
      const made = certificates()
      const server = await startSlapd({ tls: made.good })
      const account = { username: probe.user, password: { env: 'WORD' }, base: suffix }
      const sure = { ...account, servername: 'svc.test', caFile: made.caFile }
      const entry = { filter: '(uid=probe)', base: `ou=people,${suffix}` }
      const refusesWrongPassword = { username: dedicated.user, password: { env: 'DEDICATED' } }
      const breaks = await broken((port) => ({ url: `ldap://${host}:${port}` }), Buffer.from([0x30, 40, 2, 1, 1]))
      return {
        env: { WORD: probe.password, DEDICATED: dedicated.password, WRONG: 'wrong horse' },
        breaks,
        cases: [
          well({ url: server.url, ...account, entry, refusesWrongPassword }),
          well({ url: server.ldaps, ...sure, entry }),
          well({ url: server.url, ...sure, startTls: true }),
          run('not trusted', ['tls'], { url: server.ldaps, ...sure, servername: 'elsewhere.test' }, signingIn),
          run('wrong password', ['auth'], { url: server.url, ...account, password: { env: 'WRONG' } }, signingIn),
        ],
        left: () => open('slapd', server),
        stop: async () => await server.remove(),
      }
    },
  },
  oidc: {
    missing: undefined,
    cost: 'cheap',
    start: async () => {
      const provider = await identityProvider()
      const account = { clientId: client.id, insecureHttp: true, audience: resource, resource }
      const settings = { issuer: provider.issuer, ...account, clientSecret: { env: 'WORD' } }
      const cut = http(200, JSON.stringify({ issuer: provider.issuer })).slice(0, -12)
      const breaks = await broken((port) => ({ issuer: `http://${host}:${port}`, insecureHttp: true }), cut)
      return {
        env: { WORD: client.secret, WRONG: 'wrong horse' },
        breaks,
        cases: [
          well({ ...settings, refusesWrongSecret: true }),
          run('wrong password', ['auth'], { ...settings, clientSecret: { env: 'WRONG' } }, { modes: ['Advanced'] }),
        ],
        left: () => open('provider', provider),
        stop: async () => await provider.close(),
      }
    },
  },
  smtp: {
    missing: opensslMissing(),
    cost: 'cheap',
    start: async () => {
      const made = certificates()
      const server = await startSmtp(made.good)
      const account = { username: smtpAccount.username, password: { env: 'WORD' } }
      const settings = { host, port: server.port, servername: 'svc.test', caFile: made.caFile, ...account }
      const breaks = await broken((port) => ({ host, port }), '220-mail', { sendsFirst: true })
      return {
        env: { WORD: smtpAccount.password, WRONG: 'wrong horse' },
        breaks,
        cases: [
          well({ ...settings, recipient: 'accepted@svc.test' }),
          run('wrong password', ['auth'], { ...settings, password: { env: 'WRONG' } }, signingIn),
          run('not trusted', ['tls'], { ...settings, servername: 'elsewhere.test' }, signingIn),
        ],
        left: () => open('smtp', server),
        stop: async () => await server[Symbol.asyncDispose](),
      }
    },
  },
} as const satisfies Record<string, Row>
