import { writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { blackHole, http, peer } from '../support/faults/faults.ts'
import { opensslMissing } from '../support/servers/certs.ts'
import { checkServer, healthServer } from '../support/servers/grpc.ts'
import { nginxMissing, startNginx } from '../support/servers/nginx.ts'
import { administrator, rabbitmqMissing, startRabbitmq } from '../support/servers/rabbitmq.ts'
import { remove, serverFolder } from '../support/servers/server.ts'
import { httpPeer, pages } from '../support/simulated/http-peer.ts'
import { broken, certificates, open, type Row, run, well } from './leak-row.ts'
import { startServe } from './leak-serve.ts'

const host = '127.0.0.1'
/** An answer that says more than comes. */
const cutAnswer = http(200, '{"name":"x","size":12345}').slice(0, -12)
const at = (port: number, path = ''): string => `http://${host}:${port}${path}`

/** Signs in with the password, and then creates, shows and removes orders. */
const orders: RequestListener = (request, response) => {
  const say = (status: number, what: object = {}): void =>
    void response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(what))
  let body = ''
  request.on('data', (chunk) => {
    body += String(chunk)
  })
  request.on('end', () => {
    if (request.url === '/session') return body.includes('correct horse') ? say(200, { token: 'let-me-in' }) : say(401)
    if (request.headers.authorization !== 'Bearer let-me-in') return say(403)
    if (request.method === 'POST') return say(201, { id: 'order-1' })
    return request.method === 'DELETE' ? say(200) : say(200, { state: 'ready' })
  })
}

/** Kinds that speak to a port, or HTTP. */
export const webRows = {
  // First, for it starts the slowest.
  rabbitmq: {
    missing: rabbitmqMissing,
    cost: 'cheap',
    start: async () => {
      const server = await startRabbitmq()
      await server.api('PUT', 'queues/%2f/orders', { durable: true })
      const account = { username: administrator.username, password: { env: 'WORD' } }
      const breaks = await broken((port) => ({ url: at(port), ...account }), cutAnswer)
      return {
        env: { WORD: administrator.password, WRONG: 'wrong horse' },
        breaks,
        cases: [
          well({ url: server.url, ...account, queues: [{ name: 'orders', consumers: 0 }] }),
          run(
            'wrong password',
            ['auth'],
            { url: server.url, ...account, password: { env: 'WRONG' } },
            { modes: ['Standard'] },
          ),
        ],
        stop: async () => await server.remove(),
      }
    },
  },
  tls: {
    missing: opensslMissing(),
    cost: 'cheap',
    start: async () => {
      const made = certificates()
      const sound = await peer(blackHole, { tls: made.good })
      const stranger = await peer(blackHole, { tls: made.selfSigned })
      const settings = (port: number) => ({ host, port, servername: 'svc.test', caFile: made.caFile })
      const breaks = await broken(settings, Buffer.from([0x16, 3, 3, 0, 90, 2]))
      return {
        breaks,
        cases: [
          well(settings(sound.port)),
          run('not trusted', ['tls'], settings(stranger.port), { modes: ['Standard', 'Advanced'] }),
        ],
        left: () => [...open('sound', sound), ...open('stranger', stranger)],
        stop: async () => {
          await sound.close()
          await stranger.close()
        },
      }
    },
  },
  http: {
    missing: nginxMissing ?? opensslMissing(),
    cost: 'cheap',
    start: async () => {
      const made = certificates()
      const nginx = await startNginx(made.good)
      const document = { state: 'ready', links: ['/a', '/b'].map((path) => ({ url: path })) }
      const documents = await httpPeer(
        pages(() => ({ '/status': document, '/a': { state: 'ready' }, '/b': { state: 'ready' } })),
      )
      const refusing = await httpPeer((_, response) => void response.writeHead(401).end('no'))
      const untrusted = await peer(blackHole, { tls: made.selfSigned })
      const breaks = await broken((port) => ({ url: at(port, '/') }), cutAnswer)
      const secure = { caFile: made.caFile, contains: 'works' }
      return {
        env: { WORD: 'wrong horse' },
        breaks,
        cases: [
          well({ url: at(nginx.port, '/'), contains: 'works' }),
          well({ url: `https://localhost:${nginx.tlsPort}/`, ...secure }),
          well({ url: at(documents.port, '/status'), json: { '$.state': 'ready' } }),
          run('not trusted', ['tls'], { url: `https://${host}:${untrusted.port}/`, ...secure }),
          run(
            'wrong password',
            ['auth'],
            { url: at(refusing.port, '/'), token: { env: 'WORD' } },
            { modes: ['Standard'] },
          ),
        ],
        left: () => [...open('documents', documents), ...open('refusing', refusing), ...open('not trusted', untrusted)],
        stop: async () => {
          await nginx.remove()
          await documents[Symbol.asyncDispose]()
          await refusing[Symbol.asyncDispose]()
          await untrusted.close()
        },
      }
    },
  },
  grpc: {
    missing: opensslMissing(),
    cost: 'cheap',
    start: async () => {
      const made = certificates()
      const plain = await healthServer({ '': 'SERVING', orders: 'SERVING' })
      const secure = await healthServer({ '': 'SERVING' }, made.good)
      const refusing = await checkServer(() => ({ code: 16, details: 'no' }))
      const untrusted = await peer(blackHole, { tls: made.selfSigned })
      const standard = { modes: ['Standard', 'Advanced'] } as const
      const settings = (port: number) => ({ host, port })
      const trusted = { tls: true, servername: 'svc.test', caFile: made.caFile }
      // The settings of HTTP/2, and then nothing more.
      const breaks = await broken(settings, Buffer.from('000000040000000000', 'hex'), standard)
      return {
        env: { WORD: 'wrong horse' },
        breaks,
        cases: [
          well({ ...settings(plain.port), services: ['orders'] }),
          well({ ...settings(secure.port), ...trusted }),
          run('not trusted', ['tls'], { ...settings(untrusted.port), ...trusted }),
          run('unknown service', ['data'], { ...settings(plain.port), services: ['missing'] }, standard),
          run('wrong token', ['auth'], { ...settings(refusing.port), token: { env: 'WORD' } }, { modes: ['Standard'] }),
        ],
        left: () => [
          ...open('plain', plain),
          ...open('secure', secure),
          ...open('refusing', refusing),
          ...open('not trusted', untrusted),
        ],
        stop: async () => {
          await plain[Symbol.asyncDispose]()
          await secure[Symbol.asyncDispose]()
          await refusing[Symbol.asyncDispose]()
          await untrusted.close()
        },
      }
    },
  },
  'http-steps': {
    missing: undefined,
    cost: 'cheap',
    start: async () => {
      const server = await httpPeer(orders)
      const authorization = `Bearer \${pass}`
      const body = `{"user":"\${username}","password":"\${password}"}`
      const settings = (port: number) => ({
        url: at(port),
        username: 'monitor',
        password: { env: 'WORD' },
        allowWrites: true,
        show: ['id'],
        steps: [
          { name: 'sign in', method: 'POST', path: '/session', signIn: true, body, capture: { pass: '$.token' } },
          { name: 'make', method: 'POST', path: '/orders', authorization, body: '{}', capture: { id: '$.id' } },
          { name: 'use', path: `/orders/\${id}`, authorization, until: { expect: { '$.state': 'ready' } } },
        ],
        cleanup: [{ name: 'remove', undoes: 'make', method: 'DELETE', path: `/orders/\${id}`, authorization }],
      })
      const advanced = { modes: ['Advanced'] } as const
      const breaks = await broken(settings, cutAnswer, advanced)
      return {
        env: { WORD: 'correct horse', WRONG: 'wrong horse' },
        breaks,
        cases: [
          well(settings(server.port), advanced),
          run('wrong password', ['auth'], { ...settings(server.port), password: { env: 'WRONG' } }, advanced),
        ],
        left: () => open('orders', server),
        stop: async () => await server[Symbol.asyncDispose](),
      }
    },
  },
  svc: {
    missing: undefined,
    cost: 'cheap',
    start: async () => {
      const breaks = await broken((port) => ({ url: at(port) }), cutAnswer)
      const serve = await startServe('types:\n  App:\n    - {kind: process, executable: node}\n')
      const settings = { url: serve.origin, mode: 'Basic' }
      return {
        breaks,
        cases: [well(settings)],
        left: async () => {
          const { resources } = await serve.holdings()
          return resources['TCPSocketWrap'] ? ['svc serve: connections'] : []
        },
        stop: async () => await serve.stop(),
      }
    },
  },
  deployment: {
    missing: undefined,
    cost: 'cheap',
    start: async () => {
      const folder = serverFolder('deployment')
      const marker = join(folder, 'marker')
      writeFileSync(join(folder, 'version'), '1.2.3\n')
      const documents = await httpPeer(pages(() => ({ '/version': { build: { version: '1.2.3' } } })))
      const requestAt = (port: number) => ({
        expected: '1.2.3',
        url: at(port, '/version'),
        versionKey: 'build.version',
        marker,
      })
      const breaks = await broken(requestAt, cutAnswer, { modes: ['Standard'] })
      return {
        breaks,
        cases: [
          well(requestAt(documents.port), { modes: ['Standard', 'Advanced'] }),
          well({ expected: '1.2.3', versionFile: join(folder, 'version') }, { modes: ['Standard'] }),
          run('missing', 'fails', { expected: '1', versionFile: join(folder, 'none') }, { modes: ['Standard'] }),
        ],
        left: () => open('documents', documents),
        stop: async () => {
          await documents[Symbol.asyncDispose]()
          remove(folder)
        },
      }
    },
  },
} as const satisfies Record<string, Row>
