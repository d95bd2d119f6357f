import { makeCertificates, opensslMissing } from '../../test/support/certs.ts'
import { httpPeer } from '../../test/support/http-peer.ts'
import { during, type Example } from './example.ts'

const minute = 60_000

export const ftpApi: Example = {
  type: 'FtpApi',
  title: 'API in front of FTP accounts',
  standsFor:
    'A web API that hands out and administers FTP accounts. That is an inference from the name. Every such API is another one, so it is made of `http` monitors whose paths you name; the FTP server behind it is of type Ftp.',
  peers: '**A simulated API** of our own making, over real HTTPS.',
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
`)
      await stage.list()
      await stage.green()

      token = 'ftp-api-token-2'
      await stage.red('The token was refused', {
        happened:
          'The API had taken away the token of the monitor. Its health page asks for none and is well; so it is the account, and what depends on it is not run.',
        says: [/answered 401/, /not run/],
      })
      token = 'ftp-api-token-1'

      oldest = 95 * minute
      await stage.red('An account that is never made', {
        happened:
          'An order for an account had been waiting for 95 minutes. Everything answers; only Advanced asks how long.',
        says: [/oldest 1\.6 h \(limit 1 h\)/],
      })
    }),
}
