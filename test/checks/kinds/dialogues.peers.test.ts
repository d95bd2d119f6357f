import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import tcp from '../../../src/core/checks/kinds/tcp.ts'
import tls from '../../../src/core/checks/kinds/tls.ts'
import { checked, problemsOf, runKind, secret } from '../../support/engine/run-kind.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { dovecotMissing, dovecotPassword, startDovecot } from '../../support/servers/dovecot.ts'
import { eximMissing, startExim } from '../../support/servers/exim.ts'
import { mariadbMissing, startMariadb } from '../../support/servers/mariadb.ts'
import { mosquittoMissing, startMosquitto } from '../../support/servers/mosquitto.ts'
import { startDaemon } from '../../support/servers/own-daemon.ts'
import { postgresMissing, startPostgres, tlsSettings } from '../../support/servers/postgres.ts'
import { findProgram, freePort, remove, serverFolder } from '../../support/servers/server.ts'
import { slapdMissing, startSlapd } from '../../support/servers/slapd.ts'
import { startVsftpd, vsftpdMissing } from '../../support/servers/vsftpd.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const host = '127.0.0.1'
const soon = { timeoutMs: 6_000 }
type Server = {
  readonly port: number
  readonly freeze: () => void
  readonly thaw: () => void
  readonly stop: () => Promise<void>
}

const missingOf = (...programs: readonly string[]): string | undefined => {
  const name = programs.find((one) => findProgram(one) === undefined)
  return name === undefined ? undefined : `${name} is not installed`
}

async function started(program: string, args: (port: number, folder: string) => readonly string[]): Promise<Server> {
  const folder = serverFolder(program)
  const port = await freePort()
  const { stop, ...daemon } = await startDaemon(findProgram(program) ?? '', args(port, folder), port)
  return {
    ...daemon,
    port,
    stop: async () => {
      await stop()
      remove(folder)
    },
  }
}

/** Real servers of the protocols with a ready dialogue. */
const served: Readonly<Record<string, (made: Certificates) => Promise<Server>>> = {
  imap: async ({ good }) => {
    const { imap: port, remove: stop, ...server } = await startDovecot(good)
    return { ...server, port, stop }
  },
  pop3: async ({ good }) => {
    const { pop3: port, remove: stop, ...server } = await startDovecot(good)
    return { ...server, port, stop }
  },
  mqtt: async () => {
    const { port, remove: stop, freeze, thaw } = await startMosquitto()
    return { port, stop, freeze, thaw }
  },
  nats: () => started('nats-server', (port) => ['-a', host, '-p', String(port)]),
  memcached: () => started('memcached', (port) => ['-l', host, '-p', String(port), '-U', '0', '-u', 'nobody']),
  beanstalkd: () => started('beanstalkd', (port) => ['-l', host, '-p', String(port)]),
}

/** Real servers that get to TLS by a command of their own. */
const secured: Readonly<Record<string, (made: Certificates) => Promise<Pick<Server, 'port' | 'stop'>>>> = {
  smtp: async ({ good }) => {
    const { port, remove: stop } = await startExim([], good)
    return { port, stop }
  },
  imap: async (made) => await (served['imap'] as (made: Certificates) => Promise<Server>)(made),
  pop3: async (made) => await (served['pop3'] as (made: Certificates) => Promise<Server>)(made),
  ftp: async ({ good }) => {
    const { port, remove: stop } = await startVsftpd({ certificate: good })
    return { port, stop }
  },
  ldap: async ({ good }) => {
    const { port, remove: stop } = await startSlapd({ tls: good })
    return { port, stop }
  },
  postgres: async ({ good }) => {
    const { port, remove: stop } = await startPostgres(tlsSettings(good, serverFolder('postgres-tls')))
    return { port, stop }
  },
  mysql: async ({ good }) => {
    const folder = serverFolder('mariadb-tls')
    for (const name of ['key', 'cert'] as const) writeFileSync(join(folder, name), good[name], { mode: 0o644 })
    const { port, remove: stop } = await startMariadb([`--ssl-key=${folder}/key`, `--ssl-cert=${folder}/cert`])
    return { port, stop }
  },
  xmpp: ({ good }) =>
    started('prosody', (port, folder) => {
      for (const name of ['key', 'cert'] as const) writeFileSync(join(folder, name), good[name], { mode: 0o644 })
      const config = join(folder, 'prosody.cfg.lua')
      writeFileSync(
        config,
        `run_as_root = true\npidfile = "${folder}/pid"\ndata_path = "${folder}"\nlog = { error = "*console" }
modules_enabled = { "tls", "saslauth", "dialback" }\ninterfaces = { "${host}" }\nc2s_ports = { ${port} }\ns2s_ports = { }
ssl = { key = "${folder}/key", certificate = "${folder}/cert" }\nVirtualHost "svc.test"\n`,
      )
      return ['--config', config, '-F']
    }),
}

const missing =
  dovecotMissing ??
  mosquittoMissing ??
  eximMissing ??
  vsftpdMissing ??
  slapdMissing ??
  postgresMissing ??
  mariadbMissing ??
  missingOf('nats-server', 'memcached', 'beanstalkd', 'prosody', 'ngircd') ??
  opensslMissing()

peerSuite(missing, 'dialogues with real servers', () => {
  let made: Certificates
  beforeAll(() => {
    made = makeCertificates()
  })
  afterAll(() => made?.remove())

  test.each(Object.entries(served))(
    'H81 protocol: %s shows that a real server serves, and a frozen one does not',
    async (name, start) => {
      const server = await start(made)
      onTestFinished(server.stop)
      const settings = { host, port: server.port, protocol: name as 'imap' }
      const results = await runKind(tcp, settings, 'Advanced', soon)
      expect(problemsOf(results)).toEqual([])
      expect(checked(results, 'dialogue').message).toMatch(/answered as expected in/)
      server.freeze()
      const frozen = await runKind(tcp, settings, 'Basic', { timeoutMs: 1_500 })
      server.thaw()
      expect(frozen.find(({ status }) => status === 'failed')).toMatchObject({ check: 'dialogue', fault: 'timeout' })
    },
  )

  test.each(Object.entries(secured))('H82 starttls: %s reads the certificate of a real server', async (name, start) => {
    const { port, stop } = await start(made)
    onTestFinished(stop)
    const settings = { host, port, starttls: name as 'smtp', servername: 'svc.test', caFile: made.caFile }
    const results = await runKind(tls, settings, 'Standard', soon)
    expect(problemsOf(results)).toEqual([])
    expect(checked(results, 'expiry').message).toMatch(/certificate "svc.test" expires on/)
    const distrusted = await runKind(tls, { ...settings, caFile: undefined }, 'Standard', soon)
    expect(checked(distrusted, 'trust')).toMatchObject({ status: 'failed', fault: 'tls' })
  })

  const imap = (password: string) => ({
    caFile: made.caFile,
    servername: 'svc.test',
    values: { password: secret(password) },
    dialogue: [
      { expect: 'OK', send: undefined },
      { send: 'a STARTTLS\r\n', expect: '/^a OK/', starttls: true },
      { send: `b LOGIN monitor \${password}\r\n`, expect: '/^b OK/' },
      { send: 'c NOOP\r\n', expect: '/^c OK/' },
    ],
  })

  test('H81 a dialogue signs in to Dovecot after STARTTLS, and a refused password ends it', async () => {
    const server = await startDovecot(made.good)
    onTestFinished(server.remove)
    const at = { host, port: server.imap }
    const results = await runKind(tcp, { ...at, ...imap(dovecotPassword) } as never, 'Standard', soon)
    expect(problemsOf(results)).toEqual([])
    expect(checked(results, 'certificate').message).toContain('certificate "svc.test" expires on')
    const refused = await runKind(tcp, { ...at, ...imap('battery_staple') } as never, 'Standard', { timeoutMs: 4_000 })
    const failed = checked(refused, 'dialogue')
    expect(failed.message).toMatch(/AUTHENTICATIONFAILED.*\(step 3 of 4\)$/)
    expect(failed.details).toEqual(['not reached: step 4'])
    expect(JSON.stringify(refused)).not.toContain('battery_staple')
  })

  test('H81 a dialogue answers the PING of a real IRC server with the value of it', async () => {
    const server = await started('ngircd', (port, folder) => {
      const file = join(folder, 'ngircd.conf')
      writeFileSync(
        file,
        `[Global]\nName = irc.svc.test\nInfo = test\nListen = ${host}\nPorts = ${port}\nServerUID = nobody\nServerGID = nogroup
[Options]\nDNS = no\nIdent = no\nPAM = no\nRequireAuthPing = yes\n`,
        { mode: 0o644 },
      )
      return ['-n', '-f', file]
    })
    onTestFinished(server.stop)
    const dialogue = [
      { send: 'NICK prober\r\nUSER prober 0 * :prober\r\n', expect: '/^PING :?(\\S+)/', capture: ['token'] },
      { send: `PONG :\${token}\r\n`, expect: '/^:\\S+ 001 /' },
    ]
    const results = await runKind(tcp, { host, port: server.port, dialogue } as never, 'Standard', soon)
    expect(problemsOf(results)).toEqual([])
  })
})
