import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { opensslMissing } from '../support/certs.ts'
import { blackHole, echo, http, peer } from '../support/faults.ts'
import { httpPeer, pages } from '../support/http-peer.ts'
import { nginxMissing, startNginx } from '../support/nginx.ts'
import { administrator, rabbitmqMissing, startRabbitmq } from '../support/rabbitmq.ts'
import { remove, serverFolder } from '../support/server.ts'
import { broken, certificates, open, type Row, run, well } from './leak-row.ts'
import { startServe } from './leak-serve.ts'

const host = '127.0.0.1'
/** An answer that says more than comes. */
const cutAnswer = http(200, '{"name":"x","size":12345}').slice(0, -12)
const at = (port: number, path = ''): string => `http://${host}:${port}${path}`

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
        cases: [
          well({ url: server.url, ...account, queues: [{ name: 'orders', consumers: 0 }] }),
          run(
            'wrong password',
            ['auth'],
            { url: server.url, ...account, password: { env: 'WRONG' } },
            { modes: ['Standard'] },
          ),
          ...breaks.cases,
        ],
        left: breaks.left,
        stop: async () => {
          await breaks.stop()
          await server.remove()
        },
      }
    },
  },
  tcp: {
    missing: undefined,
    cost: 'cheap',
    start: async () => {
      const sound = await peer(echo)
      const silent = (port: number) => ({ host, port, send: 'PING', expect: 'PING' })
      const breaks = await broken(silent, 'PO')
      return {
        cases: [well(silent(sound.port)), ...breaks.cases],
        left: () => [...open('echo', sound), ...breaks.left()],
        stop: async () => {
          await sound.close()
          await breaks.stop()
        },
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
        cases: [
          well(settings(sound.port)),
          run('not trusted', ['tls'], settings(stranger.port), { modes: ['Standard', 'Advanced'] }),
          ...breaks.cases,
        ],
        left: () => [...open('sound', sound), ...open('stranger', stranger), ...breaks.left()],
        stop: async () => {
          await sound.close()
          await stranger.close()
          await breaks.stop()
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
          ...breaks.cases,
        ],
        left: () => [
          ...open('documents', documents),
          ...open('refusing', refusing),
          ...open('not trusted', untrusted),
          ...breaks.left(),
        ],
        stop: async () => {
          await nginx.remove()
          await documents[Symbol.asyncDispose]()
          await refusing[Symbol.asyncDispose]()
          await untrusted.close()
          await breaks.stop()
        },
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
        cases: [well(settings), ...breaks.cases],
        left: async () => {
          const { resources } = await serve.held()
          return [...(resources['TCPSocketWrap'] ? ['svc serve: connections'] : []), ...breaks.left()]
        },
        stop: async () => {
          await serve.stop()
          await breaks.stop()
        },
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
      const asked = (port: number) => ({
        expected: '1.2.3',
        url: at(port, '/version'),
        versionKey: 'build.version',
        marker,
      })
      const breaks = await broken(asked, cutAnswer, { modes: ['Standard'] })
      return {
        cases: [
          well(asked(documents.port), { modes: ['Standard', 'Advanced'] }),
          well({ expected: '1.2.3', versionFile: join(folder, 'version') }, { modes: ['Standard'] }),
          ...breaks.cases,
          run('missing', 'fails', { expected: '1', versionFile: join(folder, 'none') }, { modes: ['Standard'] }),
        ],
        left: () => [...open('documents', documents), ...breaks.left()],
        stop: async () => {
          await documents[Symbol.asyncDispose]()
          await breaks.stop()
          remove(folder)
        },
      }
    },
  },
} as const satisfies Record<string, Row>
