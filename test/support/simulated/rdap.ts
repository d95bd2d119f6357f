import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An answer of an RDAP server. `body` is sent as JSON, or as it is if it is a text. */
export type RdapAnswer = {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export type RdapServer = {
  readonly port: number
  /** The base URL. */
  readonly url: string
  /** The paths that were requested. */
  readonly requests: readonly string[]
  readonly close: () => Promise<void>
}

/** A domain as in RFC 9083, 5.3, that expires so many days from now. */
export const registered = (name: string, days = 100, more: object = {}): object => ({
  objectClassName: 'domain',
  ldhName: name.toUpperCase(),
  status: ['active', 'client transfer prohibited'],
  events: [
    { eventAction: 'registration', eventDate: '1990-12-31T23:59:59Z' },
    { eventAction: 'expiration', eventDate: new Date(Date.now() + days * 86_400_000).toISOString() },
  ],
  nameservers: [{ objectClassName: 'nameserver', ldhName: `ns1.${name}` }],
  ...more,
})

/** A simulated RDAP server of a registry on loopback: no real one may be asked by tests. */
export async function rdapServer(answer: (name: string) => RdapAnswer | undefined): Promise<RdapServer> {
  const requests: string[] = []
  const server = createServer(({ url = '' }, response) => {
    requests.push(url)
    const {
      status = 200,
      headers = {},
      body = {},
    } = answer(url.split('/').at(-1) ?? '') ?? {
      status: 404,
      body: { errorCode: 404 },
    }
    response.writeHead(status, { 'Content-Type': 'application/rdap+json', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}/rdap`,
    requests,
    close: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
