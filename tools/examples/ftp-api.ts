import { makeCertificates, opensslMissing } from '../../test/support/servers/certs.ts'
import { startFtpServer } from '../../test/support/servers/ftp-server.ts'
import { ftpApiPassword, type Reply, startFtpApi } from '../../test/support/simulated/ftp-api.ts'
import { httpPeer } from '../../test/support/simulated/http-peer.ts'
import { during, type Example } from './example.ts'

const minute = 60_000

export const ftpApi: Example = {
  type: 'FtpApi',
  title: 'API in front of FTP accounts',
  meaning:
    'A web API that hands out and administers FTP accounts. That is an inference from the name. Every such API is another one, so it is made of `http` and `http-steps` monitors whose paths you name; the FTP server behind it is of type Ftp.',
  peers:
    '**Two simulated APIs** of our own making, over real HTTPS; the FTP server behind them is ftp-srv, which is real.',
  missing: opensslMissing(),
  show: (stage) =>
    during(async (onEnd) => {
      const certificates = makeCertificates()
      onEnd(certificates.remove)
      let token = 'ftp-api-token-1'
      let oldest = 2 * minute
      const server = await httpPeer((request, response) => {
        const answer = (status: number, body: unknown) =>
          void response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
        if (request.url === '/health') return answer(200, { state: 'ready', version: '3.2.0' })
        if (request.headers.authorization !== `Bearer ${token}`) return answer(401, { error: 'token expired' })
        if (request.url === '/v1/accounts') return answer(200, { accounts: [{ name: 'acme' }, { name: 'beta' }] })
        if (request.url !== '/v1/pending') return answer(404, {})
        answer(200, { pending: [{ account: 'gamma', since: new Date(Date.now() - oldest).toISOString() }] })
      }, certificates.good)
      onEnd(() => server[Symbol.asyncDispose]())
      stage.port(server.port, 18_443)
      // What it says in place of its ordinary answer.
      let instead: { readonly to: RegExp; readonly reply: Reply } | undefined
      const api = await startFtpApi(
        (command) => (instead?.to.test(command) ? instead.reply : undefined),
        certificates.good,
      )
      onEnd(() => api[Symbol.asyncDispose]())
      let synchronised = true
      const ftp = await startFtpServer('', (name, settings) => synchronised && api.accounts.get(name) === settings)
      onEnd(ftp.remove)
      stage.port(api.port, 18_444)
      stage.port(ftp.port, 12_121)
      stage.replace(/svc-probe-[0-9a-f]{12}/, 'svc-probe-5f1c0a9be274')
      stage.replace(/(?<=PASV said 127\.0\.0\.1:|EPSV said port )\d{4,5}/, '50017')
      stage.file('ftp-api-password', ftpApiPassword)
      stage.file('ftp-api-token', token)
      const caFile = stage.file('ca.pem', certificates.ca)
      await stage.yaml(`types:
  FtpApi:
    host: false
    monitors:
      - kind: http
        name: api
        url: ${server.origin}/health
        caFile: ${caFile}
        json: {$.state: ready}
        version: {expected: '/^3\\./'}
      - kind: http
        name: accounts
        depth: Standard
        dependsOn: api
        url: ${server.origin}/v1/accounts
        caFile: ${caFile}
        token: {file: ftp-api-token}
        status: [200]
        measure:
          - {name: accounts, path: '$.accounts[*]', least: {limit: 1}}
      - kind: http
        name: pending
        depth: Advanced
        dependsOn: accounts
        url: ${server.origin}/v1/pending
        caFile: ${caFile}
        token: {file: ftp-api-token}
        measure:
          - {name: waiting accounts, path: '$.pending[*]', time: since, age: {warn: 10m, limit: 1h}}
      - kind: http-steps               # a probe account is made, used and removed
        name: credential
        url: ${api.origin}/v1
        caFile: ${caFile}
        username: monitor
        password: {file: ftp-api-password}
        authorization: Bearer \${session}
        allowWrites: true
        show: [id]                     # no secret: what was left behind is told by it
        steps:
          - name: sign in
            method: POST
            path: /sign-in
            signIn: true
            body: '{"user": "\${username}", "password": "\${password}"}'
            capture: {session: $.token}
          - name: make
            method: POST
            path: /accounts
            body: '{"name": "\${probe}", "password": "\${probePassword}"}'
            status: [201]
            capture: {id: $.id}
          - name: use
            ftp: {host: 127.0.0.1, port: ${ftp.port}, tls: 'off', username: '\${probe}', password: '\${probePassword}'}
        cleanup:
          - {name: remove, method: DELETE, path: '/accounts/\${id}', undoes: make}
          - {name: sign out, method: POST, path: /sign-out, undoes: sign in}
`)
      await stage.list()
      await stage.green()

      token = 'ftp-api-token-2'
      await stage.red('The token was refused', {
        happened:
          'The API had taken away the token of the monitor. Its health page asks for none and is well; so it is the account. The other monitor with this token is not checked, because svc does not repeat a refused sign-in.',
        says: [/answered 401/],
      })
      // A changed credential ends the pause after the refused sign-in.
      stage.file('ftp-api-token', token)

      oldest = 95 * minute
      await stage.red('An account that is never made', {
        happened:
          'An order for an account had been waiting for 95 minutes. Everything answers; only Advanced asks how long.',
        says: [/oldest 1\.6 h \(warn 10 min, fail 1 h\)/],
      })
      oldest = 2 * minute

      synchronised = false
      await stage.red('An account that the FTP server does not know', {
        happened:
          'The API made the probe account and said so, but the FTP server had not heard of it. Each part by itself is well; only who does what a client does sees it. The account was removed all the same.',
        says: [/use: .* refused the sign-in of "svc-probe-/, /refused the sign-in of/],
      })
      synchronised = true

      instead = { to: /^DELETE/, reply: { status: 503 } }
      await stage.red('A probe account that stays', {
        happened:
          'The API made the account, and answered 503 when it should have removed it. What was left behind is named, so that somebody can.',
        says: [/answered 503/, /may be left behind: remove it with DELETE \/v1\/accounts\/a-\d+/],
      })
    }),
}
