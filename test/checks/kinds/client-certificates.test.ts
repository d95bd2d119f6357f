import { X509Certificate } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readSettings, type SettingsSpec } from '../../../src/core/base/settings/index.ts'
import type { AnyKind, Kind } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import { checked, runKind } from '../../support/engine/run-kind.ts'
import { peer } from '../../support/faults/faults.ts'
import {
  type Certificates,
  makeCertificates,
  opensslMissing,
  type ServerCertificate,
} from '../../support/servers/certs.ts'
import { tdsPeer } from '../../support/simulated/tds.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

type Trust = Readonly<Record<string, unknown>>
/** How a client of the kind gets to TLS: at once, or after words of its protocol in clear text. */
type Begin = 'tls' | 'postgres' | 'mysql' | 'tds'
type Row = {
  readonly begin?: Begin
  readonly mode?: 'Advanced'
  readonly settings: (port: number, trust: Trust) => object
}

const at = '127.0.0.1'
const account = { username: 'monitor', password: { env: 'WORD' } }
const database = (scheme: string, begin: Begin): Row => ({
  begin,
  settings: (port, trust) => ({
    url: `${scheme}://monitor@${at}:${port}/db`,
    password: account.password,
    tls: { mode: 'verify', servername: 'svc.test', ...trust },
  }),
})

/** A monitor of each kind that takes a `caFile`, for a server on a port of this machine. */
const rows: Partial<Record<KindName, Row>> = {
  ftp: { settings: (port, trust) => ({ host: at, port, tls: 'implicit', ...account, ...trust }) },
  grpc: { settings: (port, trust) => ({ host: at, port, tls: true, ...trust }) },
  http: { settings: (port, trust) => ({ url: `https://${at}:${port}/`, ...trust }) },
  'http-steps': {
    mode: 'Advanced',
    settings: (port, trust) => ({ url: `https://${at}:${port}`, steps: [{ name: 'home', path: '/' }], ...trust }),
  },
  ldap: { settings: (port, trust) => ({ url: `ldaps://${at}:${port}`, ...account, ...trust }) },
  mongo: database('mongodb', 'tls'),
  mysql: database('mysql', 'mysql'),
  oidc: { settings: (port, trust) => ({ issuer: `https://${at}:${port}`, ...trust }) },
  pgbouncer: {
    begin: 'postgres',
    settings: (port, trust) => ({
      url: `postgres://monitor@${at}:${port}/pgbouncer`,
      password: account.password,
      tls: { mode: 'verify', servername: 'svc.test', ...trust },
    }),
  },
  postgres: database('postgres', 'postgres'),
  rabbitmq: { settings: (port, trust) => ({ url: `https://${at}:${port}`, ...account, ...trust }) },
  redis: { settings: (port, trust) => ({ url: `rediss://${at}:${port}`, password: account.password, ...trust }) },
  smtp: { settings: (port, trust) => ({ host: at, port, tls: 'implicit', ...account, ...trust }) },
  sqlserver: database('sqlserver', 'tds'),
  svc: { settings: (port, trust) => ({ url: `https://${at}:${port}`, type: 'App', ...trust }) },
  tcp: { settings: (port, trust) => ({ host: at, port, tls: true, ...trust }) },
  tls: { settings: (port, trust) => ({ host: at, port, send: 'hello', ...trust }) },
}

const holds = (key: string, settings: SettingsSpec): boolean =>
  Object.entries(settings).some(
    ([name, setting]) => name === key || ('fields' in setting && holds(key, setting.fields)),
  )

/** The packet with which MySQL greets: protocol 10, with an account that signs in by native password, over TLS if wanted. */
const mysqlGreeting = Buffer.concat([
  Buffer.from([0x4a, 0, 0, 0, 10]),
  Buffer.from('8.0.36\0', 'latin1'),
  Buffer.from([1, 0, 0, 0]),
  Buffer.from('12345678\0', 'latin1'),
  Buffer.from([0xff, 0xff, 33, 2, 0, 0xff, 0xc1, 21]),
  Buffer.alloc(10),
  Buffer.from('123456789012\0', 'latin1'),
  Buffer.from('mysql_native_password\0', 'latin1'),
])

/** The words of a server before TLS. */
const begins: Readonly<Record<Exclude<Begin, 'tls' | 'tds'>, (socket: Socket, shake: () => void) => void>> = {
  postgres: (socket, shake) => {
    socket.once('data', () => {
      shake()
      socket.write('S')
    })
  },
  mysql: (socket, shake) => {
    mysqlGreeting.writeUIntLE(mysqlGreeting.length - 4, 0, 3)
    socket.write(mysqlGreeting)
    socket.once('readable', () => {
      socket.read(36)
      shake()
    })
  },
}

/** A server on loopback that demands a client certificate of our CA. `subjects` has the names in those that it got. */
async function demanding(begin: Begin, { good, ca }: Certificates) {
  const subjects: string[] = []
  const tls = { ...good, ca, requestCert: true, rejectUnauthorized: true, ALPNProtocols: ['h2', 'http/1.1'] }
  const note = (socket: TLSSocket): void => {
    subjects.push(String(socket.getPeerCertificate().subject?.CN))
    // The certificate was all that counts here.
    socket.destroy()
  }
  const server =
    begin === 'tds'
      ? await tdsPeer({ answer: () => ({ rows: [] }), tls: tls as ServerCertificate, secured: note })
      : begin === 'tls'
        ? await peer((socket) => note(socket as TLSSocket), { tls })
        : await peer((socket) =>
            begins[begin](socket, () => {
              const secure = new TLSSocket(socket, { isServer: true, ...tls })
              secure.on('error', () => {})
              secure.once('secure', () => note(secure))
            }),
          )
  return { ...server, subjects, [Symbol.asyncDispose]: server.close }
}

test('H79 every kind that takes a caFile takes a client certificate beside it, and has a row here', async () => {
  const all = await Promise.all(
    Object.entries(monitors).map(async ([name, { load }]) => [name, (await load()).default] as const),
  )
  const takesCa = all.filter(([, { settings }]) => holds('caFile', settings))
  expect(takesCa.filter(([, { settings }]) => !holds('clientKey', settings)).map(([name]) => name)).toEqual([])
  expect(takesCa.map(([name]) => name).toSorted()).toEqual(Object.keys(rows).toSorted())
})

suiteWith(opensslMissing(), 'client certificates at a simulated peer', () => {
  let made: Certificates
  let folder = ''
  const write = (name: string, text: string, mode = 0o600): string => {
    const path = join(folder, name)
    writeFileSync(path, text)
    chmodSync(path, mode)
    return path
  }
  const filesOf = (name: string, { cert, key }: ServerCertificate): Trust => ({
    clientCert: write(`${name}.pem`, cert, 0o644),
    clientKey: write(`${name}.key`, key),
  })
  beforeAll(() => {
    made = makeCertificates()
    folder = mkdtempSync(join(tmpdir(), 'svc-client-'))
  })
  afterAll(() => {
    made.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  async function results(name: string, port: number, trust: Trust, mode?: 'Standard' | 'Advanced') {
    const row = rows[name as KindName]
    const kind = (await monitors[name as KindName].load()).default as AnyKind as Kind<SettingsSpec>
    const raw = JSON.parse(JSON.stringify(row?.settings(port, { caFile: made.caFile, ...trust }))) as object
    const { values, problems } = readSettings(kind.settings, raw, { env: { WORD: 'correct horse' }, folder: '/' })
    expect(problems).toEqual([])
    expect(kind.validate?.(values)).toBe(undefined)
    return await runKind(kind, values, row?.mode ?? mode ?? 'Standard')
  }

  describe.each(Object.entries(rows))('%s', (name, { begin = 'tls' }) => {
    test(`H79 ${name} (simulated) shows its certificate to a server that demands one`, async () => {
      await using server = await demanding(begin, made)
      const run = await results(name, server.port, filesOf('client', made.forClients))
      await until(() => server.subjects.length > 0)
      expect(new Set(server.subjects)).toEqual(new Set(['svc.test']))
      expect(checked(run, 'client certificate')).toMatchObject({
        status: 'ok',
        message: expect.stringMatching(/^certificate "svc.test" of svc expires on .*, in 89\.9 d/),
      })
    })

    test(`H80 ${name} (simulated): another key than that of the certificate reaches no server`, async () => {
      await using server = await demanding(begin, made)
      const trust = { ...filesOf('client', made.forClients), clientKey: write('other.key', made.selfSigned.key) }
      const [first] = (await results(name, server.port, trust)).filter(({ status }) => status === 'failed')
      expect(first).toMatchObject({
        fault: 'data',
        message: expect.stringMatching(/^clientKey .* is not the key of clientCert /),
      })
      expect(server.subjects).toEqual([])
    })
  })

  const tlsOf = async (trust: Trust, mode?: 'Standard') => {
    await using server = await demanding('tls', made)
    return await results('tls', server.port, trust, mode)
  }

  test('H79 a server that demands a certificate, and a monitor without one: the message names the settings', async () => {
    const [failed] = (await tlsOf({})).filter(({ status }) => status === 'failed')
    expect(failed).toMatchObject({ fault: 'tls', message: expect.stringContaining('set clientCert and clientKey') })
  })

  test.each([
    ['readable by everyone', 0o604],
    ['readable by a group that is not that of root', 0o644],
  ])('H80 a key %s is refused', async (_, mode) => {
    const files = filesOf('client', made.forClients)
    const [failed] = await tlsOf({ ...files, clientKey: write('open.key', made.forClients.key, mode) })
    const words = `is readable by other accounts (mode 0${mode.toString(8)}): chmod 600`
    expect(failed).toMatchObject({ status: 'failed', fault: 'data', message: expect.stringContaining(words) })
  })

  test.each([
    ['clientKey', 'contains no PEM key', () => write('text.key', 'nothing')],
    [
      'clientKey',
      'has a passphrase',
      () => write('locked.key', '-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n'),
    ],
    ['clientCert', 'contains no PEM certificate', () => write('text.pem', 'nothing')],
    ['clientCert', 'does not exist', () => join(folder, 'missing.pem')],
  ] as const)('H80 a %s that %s is a fault of the monitor', async (setting, words, path) => {
    const [failed] = await tlsOf({ ...filesOf('client', made.forClients), [setting]: path() })
    expect(failed).toMatchObject({ fault: 'data', message: expect.stringContaining(words) })
    expect(failed?.message).toContain(setting)
  })

  test.each([
    ['expired', 'failed', /expired on .*, 2 d ago: renew it/],
    ['notYetValid', 'failed', /is not valid before/],
    ['twoDays', 'failed', /expires on .*, in 2\.4 d/],
    ['fiveDays', 'warning', /expires on .*, in 5\.4 d/],
    ['shortLived', 'ok', /expires on .*, in 2\.9 d/],
  ] as const)('H79 a client certificate that is %s: %s', async (name, status, message) => {
    const run = await tlsOf(filesOf(name, made[name]), 'Standard')
    expect(checked(run, 'client certificate')).toMatchObject({ status, message: expect.stringMatching(message) })
    expect(new X509Certificate(made[name].cert).subject).toBe('CN=svc.test')
  })

  test('H79 clientExpiry replaces the limits, and one setting without the other is a mistake', async () => {
    const run = await tlsOf({ ...filesOf('client', made.forClients), clientExpiry: '100d' }, 'Standard')
    expect(checked(run, 'client certificate')).toMatchObject({ status: 'failed', fault: 'threshold' })
    const { default: kind } = await monitors.tls.load()
    const { problems } = readSettings(kind.settings, { host: at, clientCert: '/a' }, { env: {}, folder: '/' })
    expect(problems).toEqual([{ path: ['clientCert'], message: 'needs `clientKey:` beside it' }])
  })
})
