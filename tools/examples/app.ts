import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { makeCertificates, opensslMissing } from '../../test/support/servers/certs.ts'
import { nginxMissing, startNginx } from '../../test/support/servers/nginx.ts'
import { httpPeer } from '../../test/support/simulated/http-peer.ts'
import { during, type Example, until } from './example.ts'
import { stage as newStage, type Stage } from './stage.ts'

const monitorPassword = 'orchard-and-lantern-7'
const entry = new URL('../../bin/run.js', import.meta.url).pathname

export const app: Example = {
  type: 'App',
  title: 'Application server',
  meaning:
    'An application that is asked over HTTP or HTTPS, and what stands before it. An application that is a svc itself, or has a `/healthcheck` like it, is asked for its own crossCheck.',
  peers: 'nginx with TLS, and a second `svc serve`, both real.',
  missing: nginxMissing ?? opensslMissing(),
  show: (stage) =>
    during(async (onEnd) => {
      const certificates = makeCertificates()
      onEnd(certificates.remove)
      const nginx = await startNginx(certificates.good)
      onEnd(nginx.remove)
      const soon = await startNginx(certificates.twoDays)
      onEnd(soon.remove)
      const other = newStage('App')
      onEnd(other.end)
      other.file(
        'svc.yaml',
        `types: {App: {host: false, monitors: [{kind: http, name: shop, url: 'http://127.0.0.1:${nginx.port}/'}]}}`,
      )
      const { port, process: serving } = await serve(other)
      stage.file('monitor-password', monitorPassword)
      onEnd(() => ended(serving))
      stage.port(nginx.port, 18_080)
      stage.port(nginx.tlsPort, 18_443)
      stage.port(soon.tlsPort, 18_444)
      stage.port(port, 18_790)
      // The other svc tells of its own durations.
      stage.replace(/\b7\d\d B\b/, '746 B')
      const caFile = stage.file('ca.pem', certificates.ca)
      stage.file('expected.json', '{"build": {"version": "2.4.1"}}')
      stage.file('release/version', '2.4.1')
      const text = (tlsPort: number): string => `types:
  App:
    host: false
    monitors:
      - kind: http
        name: shop
        url: https://localhost:${tlsPort}/
        addresses: any                 # localhost has two; in Advanced each would be asked by itself
        caFile: ${caFile}
        status: [200]
        contains: It works
        warn: 1s
      - kind: tls
        name: shop
        host: 127.0.0.1
        port: ${tlsPort}
        servername: localhost
        caFile: ${caFile}
      - kind: svc                      # another svc, or a server with the same /healthcheck
        name: backend
        url: http://127.0.0.1:${port}
        mode: Basic                    # how deep it is asked at most
      - kind: http-steps               # in, read, out, with a service account
        name: sign-in
        url: http://127.0.0.1:${port}
        username: monitor
        password: {file: monitor-password}
        steps:
          - name: in
            method: POST
            path: /auth/credentials
            signIn: true
            form: {UserName: '\${username}', Password: '\${password}'}
          - {name: read, path: /auth, json: {$.UserName: '\${username}'}}
          - {name: out, method: POST, path: /auth/logout, signIn: true}
          - {name: is out, path: /auth, status: [401]}
      - kind: deployment
        name: release
        expectedFile: ${stage.folder}/expected.json
        expectedKey: build.version
        versionFile: ${stage.folder}/release/version
        marker: ${stage.folder}/release/in-progress
`
      await stage.yaml(text(nginx.tlsPort))
      await stage.list()
      await stage.green()

      await stage.red('A certificate with two days left', {
        happened: 'nginx was started with a certificate that is good for two more days, and still is.',
        yaml: text(soon.tlsPort),
        says: [/in 2\.\d d \(warn below 20 d, fail below 3 d\)/],
      })

      stage.file('release/version', '2.4.0')
      const down = await httpPeer((_, response) => void response.writeHead(503).end('maintenance'))
      onEnd(() => down[Symbol.asyncDispose]())
      stage.port(down.port, 18_081)
      await stage.red('An old release, and a page that says 503', {
        happened:
          'The deployed version file said 2.4.0 where 2.4.1 is expected; `--suppress-deployment-errors` would let that pass. A small HTTP server stood in for the shop, and answered 503 with a page of maintenance.',
        yaml: text(nginx.tlsPort).replace(/url: https:.*\n.*\n.*\n/, `url: http://127.0.0.1:${down.port}/\n`),
        says: [/answered 503 \(expected 200\)/, /reports 2\.4\.0, expected 2\.4\.1/],
      })
      stage.file('release/version', '2.4.1')

      stage.file('monitor-password', 'not-the-password')
      await stage.red('The service account is not let in', {
        happened:
          'The file `monitor-password` held another password than the application knows. It was tried once; what the other steps would do was not tried.',
        says: [/POST \/auth\/credentials was answered 401: the sign-in was refused/, /3 checks skipped/],
      })
      stage.file('monitor-password', monitorPassword)

      await nginx.stop('SIGTERM')
      // The other svc gives its last answer in Basic for two seconds.
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      await stage.red('nginx is gone', {
        happened:
          'nginx was ended. Both monitors of it say so, and so does the other svc, which watches the same nginx by its plain port: its own failure is told by the name of its monitor.',
        says: [/refused/, /failed there: http shop/],
      })
    }),
}

/** A second svc with a home of its own, on a free port. */
async function serve(home: Stage): Promise<{ readonly port: number; readonly process: ChildProcess }> {
  const portFile = `${home.folder}/port`
  const passwordFile = home.file('password', monitorPassword)
  const bootstrap = ['--bootstrap-admin', 'monitor', '--bootstrap-password-file', passwordFile]
  const child = spawn(process.execPath, [entry, 'serve', '--port', '0', '--port-file', portFile, ...bootstrap], {
    env: home.env,
    stdio: 'ignore',
  })
  await until('svc serve listens', () => existsSync(portFile) && readFileSync(portFile, 'utf8').trim() !== '')
  return { port: Number(readFileSync(portFile, 'utf8')), process: child }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  await gone
}
