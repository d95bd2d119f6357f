import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { type MountNamespace, mountNamespaceMissing, startMountNamespace } from '../support/faults/mount-namespace.ts'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { findProgram, freePort, type Running, remove, run, serverFolder } from '../support/servers/server.ts'
import { nginx } from '../support/servers/web-servers.ts'
import { corpus } from './corpus.ts'
import { fails, type Row, warns } from './row.ts'

const certificates = opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => certificates?.remove())

/** nginx at many addresses of loopback, and a hosts file of its own that names them. */
type Web = {
  readonly mounts: MountNamespace
  readonly folder: string
  readonly port: number
  readonly tlsPort: number
  readonly running: Running
}
const count = 40
const addresses = Array.from({ length: count }, (_, at) => `127.0.0.${at + 1}`)
const http =
  (name: string, more: object = {}) =>
  ({ port }: Web) => ({ kind: 'http', url: `http://${name}.svc.test:${port}/`, ...more })
const says = /more addresses|of 40|40 addresses/

const rows: readonly Row<Web>[] = [
  { fault: 'healthy at one address', monitor: http('one'), expected: { state: 'healthy' } },
  {
    fault: 'one of two addresses still runs the old version',
    blind: 'held',
    monitor: http('two', { version: { expected: '/^2\\./' } }),
    expected: fails('same version', 'data', /2\.0.*2\.1|2\.1.*2\.0/),
  },
  { fault: 'a name with 40 addresses: http', monitor: http('many'), expected: warns('addresses', says) },
  {
    fault: 'a name with 40 addresses: tcp',
    monitor: ({ port }) => ({ kind: 'tcp', host: 'many.svc.test', port }),
    expected: warns('addresses', says),
  },
  {
    fault: 'a name with 40 addresses: tls',
    monitor: ({ tlsPort }) => ({
      kind: 'tls',
      host: 'many.svc.test',
      port: tlsPort,
      servername: 'svc.test',
      caFile: certificates?.caFile,
    }),
    expected: warns('addresses', says),
  },
]

corpus<Web>({
  server: 'nginx under names with many addresses',
  missing: nginx.missing ?? mountNamespaceMissing ?? opensslMissing(),
  start: async () => {
    if (!certificates) throw new Error('no certificates')
    const folder = serverFolder('nginx')
    const [port, tlsPort] = [await freePort(), await freePort()]
    const path = (name: string): string => join(folder, name)
    writeFileSync(path('cert.pem'), certificates.good.cert)
    writeFileSync(path('key.pem'), certificates.good.key)
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${path(name)};`,
    )
    const version = (text: string): string =>
      `location / { default_type application/json; return 200 '{"version": "${text}"}'; }`
    const sites = addresses.map(
      (ip, at) => `server { listen ${ip}:${port}; ${version(at === 1 ? '2.0' : '2.1')} }
        server { listen ${ip}:${tlsPort} ssl; ssl_certificate ${path('cert.pem')}; ssl_certificate_key ${path('key.pem')}; }`,
    )
    writeFileSync(
      path('nginx.conf'),
      `daemon off; pid ${path('pid')}; error_log stderr notice; events {}
       http { access_log off; ${temporary.join(' ')} ${sites.join('\n')} }`,
    )
    const running = await run(
      findProgram('nginx') ?? '',
      ['-p', folder, '-c', path('nginx.conf')],
      /start worker process/,
    )
    const mounts = await startMountNamespace()
    const names = (at: number): string =>
      [...(at === 0 ? ['localhost', 'one.svc.test'] : []), ...(at < 2 ? ['two.svc.test'] : []), 'many.svc.test'].join(
        ' ',
      )
    writeFileSync(path('hosts'), addresses.map((ip, at) => `${ip} ${names(at)}\n`).join(''))
    await mounts.shell(`mount --bind ${path('hosts')} /etc/hosts`)
    return { mounts, folder, port, tlsPort, running }
  },
  stop: async ({ mounts, folder, running }) => {
    await mounts.remove()
    await running.stop('SIGTERM')
    remove(folder)
  },
  mounts: ({ mounts }) => mounts,
  rows,
})
