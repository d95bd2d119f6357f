import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server as TcpServer } from 'node:net'
import { join } from 'node:path'
import { findProgram, freePort, type Running, remove, run, serverFolder } from '../support/servers/server.ts'
import { nginx } from '../support/servers/web-servers.ts'
import { corpus } from './corpus.ts'
import { fails, type Row } from './row.ts'

type Web = {
  readonly port: number
  readonly folder: string
  readonly running: Running
  /** The application behind nginx: it begins an answer and crashes. */
  readonly crashing: TcpServer
}

const get =
  (path: string, more: object = {}) =>
  ({ port }: Web) => ({ kind: 'http', url: `http://127.0.0.1:${port}${path}`, ...more })

const upload =
  (path: string) =>
  ({ port }: Web) => ({
    kind: 'http-steps',
    url: `http://127.0.0.1:${port}`,
    allowWrites: true,
    steps: [
      {
        name: 'upload',
        method: 'PUT',
        path: `${path}/probe.txt`,
        body: 'x',
        headers: { 'content-type': 'text/plain' },
      },
    ],
    cleanup: [{ name: 'remove', method: 'DELETE', path: `${path}/probe.txt`, undoes: 'upload' }],
  })

const rows: readonly Row<Web>[] = [
  { fault: 'healthy', monitor: get('/maintenance', { contains: 'Back soon' }), expected: { state: 'healthy' } },
  {
    fault: 'the server closes the connection without an answer (return 444)',
    blind: 'held',
    monitor: get('/silent'),
    expected: fails('status', 'protocol', /closed the connection/),
  },
  {
    fault: 'the application behind the proxy is down',
    blind: 'held',
    monitor: get('/down/'),
    expected: fails('status', 'any', /\b502\b/),
  },
  {
    fault: 'the application behind the proxy crashes while it answers',
    blind: 'held',
    monitor: get('/crashing/'),
    expected: fails('body', 'protocol', /cut short|incomplete|of 1000|before/),
  },
  {
    fault: 'the redirect leads to a port where nothing listens',
    blind: 'wrong cause',
    monitor: get('/moved', { redirects: 1 }),
    expected: fails('connect', 'refused', /127\.0\.0\.1:1\b.*refused/),
  },
  {
    fault: 'a page of maintenance is sent with 200 instead of the application',
    blind: 'held',
    monitor: get('/maintenance', { json: { '$.status': 'up' } }),
    expected: fails('json', 'any', /not JSON/),
  },
  {
    fault: 'healthy: an upload that is removed again',
    blind: 'held',
    monitor: upload('/files'),
    expected: { state: 'healthy' },
  },
  {
    fault: 'what a sequence has created cannot be removed',
    blind: 'held',
    monitor: upload('/kept'),
    plant: async ({ folder }) =>
      Promise.resolve(() => rmSync(join(folder, 'www', 'kept', 'probe.txt'), { force: true })),
    expected: fails('cleanup', 'any', /\b403\b|left behind/),
  },
]

corpus<Web>({
  server: 'nginx, blind rows',
  missing: nginx.missing,
  start: async () => {
    const folder = serverFolder('nginx')
    const [port, behind] = [await freePort(), await freePort()]
    for (const name of ['files', 'kept']) {
      mkdirSync(join(folder, 'www', name), { recursive: true })
      chmodSync(join(folder, 'www', name), 0o777)
    }
    writeFileSync(join(folder, 'www', 'index.html'), 'x')
    const crashing = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf'))
    }).listen(behind, '127.0.0.1')
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${join(folder, name)};`,
    )
    const file = join(folder, 'nginx.conf')
    writeFileSync(
      file,
      `daemon off; pid ${join(folder, 'pid')}; error_log stderr notice; events {}
http {
  access_log off; ${temporary.join(' ')}
  root ${join(folder, 'www')};
  server {
    listen 127.0.0.1:${port};
    location /silent { return 444; }
    location /down/ { proxy_pass http://127.0.0.1:1/; }
    location /crashing/ { proxy_pass http://127.0.0.1:${behind}/; }
    location /moved { return 301 http://127.0.0.1:1/; }
    location /maintenance { default_type text/html; return 200 '<h1>Back soon</h1>'; }
    location /files/ { dav_methods PUT DELETE; }
    location /kept/ { dav_methods PUT; limit_except GET PUT { deny all; } }
  }
}
`,
    )
    const running = await run(findProgram('nginx') ?? '', ['-p', folder, '-c', file], /start worker process/)
    return { port, folder, running, crashing }
  },
  stop: async ({ folder, running, crashing }) => {
    crashing.close()
    await running.stop('SIGTERM')
    remove(folder)
  },
  rows,
})
