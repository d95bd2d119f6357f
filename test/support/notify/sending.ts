import { readFileSync } from 'node:fs'
import { text as textOf } from 'node:stream/consumers'
import { startSmtp } from '../servers/smtp.ts'
import { httpPeer } from '../simulated/http-peer.ts'
import { type Opened, opened, openedProgram } from './notice.ts'
import { type ServiceAnswer, serviceRows, settingsAt } from './service-rows.ts'

/** A receiver and the messages that it has sent. */
export type Sent = AsyncDisposable & { readonly one: Opened; readonly texts: () => readonly string[] }

/** A body as JSON, with the path, which has the key of an alert that is closed. */
const textOfRequest = (path: string | undefined, body: string): string => {
  if (body.startsWith('[')) return body
  const fields = body.startsWith('{') ? (JSON.parse(body) as object) : Object.fromEntries(new URLSearchParams(body))
  return JSON.stringify({ ...fields, path })
}

async function overHttp(
  yaml: (origin: string) => string,
  { status, body: reply }: ServiceAnswer = { status: 200, body: '' },
  env: (origin: string) => Readonly<Record<string, string>> = () => ({}),
): Promise<Sent> {
  const bodies: string[] = []
  const peer = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      if (request.method !== 'GET') bodies.push(textOfRequest(request.url, body))
      response.writeHead(status).end(typeof reply === 'string' ? reply : JSON.stringify(reply))
    })
  })
  const one = await opened(yaml(peer.origin), { env: env(peer.origin) })
  return { one, texts: () => bodies, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() }
}

/** A receiver of each kind, and its messages. */
export const sending: Readonly<Record<string, () => Promise<Sent>>> = {
  alertmanager: () => overHttp((origin) => `{name: r, alertmanager: {urls: ["${origin}"]}}`),
  webhook: () => overHttp((origin) => `{name: r, webhook: {url: "${origin}/hook"}}`),
  email: async () => {
    const mails: string[] = []
    const peer = await startSmtp({
      onData: (stream, _, done) => {
        void textOf(stream).then((mail) => {
          mails.push(mail)
          done()
        })
      },
    })
    const to = `{server: "smtp://127.0.0.1:${peer.port}", from: svc@svc.test, to: [accepted@svc.test]}`
    const one = await opened(`{name: r, email: ${to}}`)
    return { one, texts: () => mails, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() }
  },
  exec: async () => {
    const { allowed, ...one } = await openedProgram('cat >> $(dirname "$0")/bodies')
    const texts = (): readonly string[] => readFileSync(`${allowed}/bodies`, 'utf8').trim().split('\n')
    return { one, texts, [Symbol.asyncDispose]: async () => {} }
  },
  ...Object.fromEntries(
    Object.entries(serviceRows).map(([name, { accepts, env }]) => [
      name,
      () => overHttp((origin) => JSON.stringify({ name: 'r', [name]: settingsAt(name, origin) }), accepts, env),
    ]),
  ),
}
