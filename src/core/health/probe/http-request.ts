import { includes } from '../engine.ts'
import { ProbeError, type World } from '../monitor.ts'
import { readCaFile } from './anchors.ts'
import type { Route } from './http-route.ts'
import type { HttpSettings } from './http-settings.ts'
import { hiding, said } from './text.ts'

/** Headers that are ours to set: framing, packing (an answer must not be a zip bomb), and credentials. */
const reserved = new Set([
  'accept-encoding',
  'authorization',
  'connection',
  'content-length',
  'cookie',
  'expect',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-svc-hops',
])

/** The /healthcheck of a server like this one, also where `health` was forgotten: A must not ask B that asks A. */
export const asksPeer = (given: HttpSettings, url: URL): boolean =>
  given.health || /\/(?:healthcheck|HealthCheckRequest)(?:\.\w+)?\/?$/i.test(url.pathname)

/**
 * What is sent where, in a mode: Basic signs in nowhere. Reads the secrets. Throws ProbeError `data`
 * for settings that contradict each other.
 */
export async function routeOf(given: HttpSettings, url: URL, world: World): Promise<Route & { withheld: boolean }> {
  contradictions(given, url)
  const configured = given.password !== undefined || given.token !== undefined
  const signsIn = configured && includes(world.mode, 'Standard')
  const { headers, secrets } = signsIn ? await credentials(given) : { headers: {}, secrets: [] }
  return {
    url,
    method: given.method,
    body: given.body,
    common: {
      'User-Agent': 'svc',
      Accept: given.health || given.json ? 'application/json' : '*/*',
      'Cache-Control': 'no-store',
      ...(asksPeer(given, url) ? { 'X-Svc-Hops': '1' } : {}),
    },
    own: { ...given.headers, ...headers },
    signsIn,
    withheld: configured && !signsIn,
    insecureHttp: given.insecureHttp,
    redirects: given.redirects,
    verify: given.verify,
    ca: await readCaFile(given.caFile),
    hide: hiding(secrets),
  }
}

async function credentials(given: HttpSettings) {
  if (given.token !== undefined) {
    const token = await given.token.reveal()
    const headers =
      given.tokenHeader === undefined ? { Authorization: `Bearer ${token}` } : { [given.tokenHeader]: token }
    return { headers, secrets: [token] }
  }
  const password = (await given.password?.reveal()) ?? ''
  const packed = Buffer.from(`${given.username ?? ''}:${password}`).toString('base64')
  return { headers: { Authorization: `Basic ${packed}` }, secrets: [password, packed] }
}

function contradictions(given: HttpSettings, url: URL): void {
  const wrong = (message: string): never => {
    throw new ProbeError('data', message)
  }
  if (url.username !== '' || url.password !== '') wrong('url holds a user or a password: use username and password')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') wrong('url is neither http nor https')
  if (given.body !== undefined && given.method !== 'POST') wrong('a body needs method: POST')
  if (given.token !== undefined && given.password !== undefined) wrong('token and password exclude each other')
  if (given.password !== undefined && given.username === undefined) wrong('password needs a username')
  if (given.username?.includes(':')) wrong('a username of HTTP basic sign-in holds no colon')
  if (
    given.method === 'HEAD' &&
    (given.health || given.json || given.contains !== undefined || given.matches !== undefined)
  ) {
    wrong('method: HEAD has no body to judge')
  }
  const taken = Object.keys(given.headers ?? {}).find((name) => reserved.has(name.toLowerCase()))
  if (taken !== undefined)
    wrong(
      `headers may not set ${said(taken, 64)}${taken.toLowerCase() === 'authorization' ? ': use password or token' : ''}`,
    )
}
