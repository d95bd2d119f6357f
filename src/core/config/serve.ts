import { isIP } from 'node:net'
import { nameStyles } from '../protocol/index.ts'
import { type Problem, readSettings, type SettingsContext, type SettingsSpec, type Values } from '../settings/index.ts'

/** The `serve:` part of svc.yaml: how `svc serve` behaves over HTTP. Flags go over it. */
export const serveSettings = {
  origins: {
    type: 'texts',
    default: [],
    doc: 'Origins whose pages may read answers in a browser, each exact: `https://ops.example.com`',
  },
  allowedHosts: {
    type: 'texts',
    default: [],
    doc: 'Host names that are answered, beside the loopback names and, off loopback, those of this machine',
  },
  details: {
    type: 'choice',
    values: ['signed-in', 'anyone'],
    default: 'signed-in',
    doc: 'Who sees messages, host names and server state when the caller is not on this machine',
  },
  jsonp: { type: 'flag', default: true, doc: 'Whether `?callback=` is answered' },
  names: {
    type: 'choice',
    values: nameStyles,
    default: 'PascalCase',
    doc: 'How members of JSON answers are spelled where a request asks for nothing else: camelCase for clients of newer servers',
  },
  basic: {
    type: 'flag',
    default: false,
    doc: 'Whether a user name and password by HTTP Basic count, for one request each; every one costs a password check',
  },
  trustProxy: {
    type: 'texts',
    default: [],
    doc: 'Addresses or networks of proxies whose `X-Forwarded-For` is believed: `10.0.0.7`, `10.0.0.0/24`',
  },
  maxBody: { type: 'bytes', default: 1024 * 1024, doc: 'The largest request body, 1KiB to 64MiB' },
} as const satisfies SettingsSpec

export type ServeConfig = Values<typeof serveSettings>

type ServeRead = { readonly values: ServeConfig; readonly problems: readonly Problem[] }

/** Reads the `serve:` part. Problems are relative to it. */
export function readServe(raw: unknown, context: SettingsContext): ServeRead {
  const { values, problems } = readSettings(serveSettings, raw, context)
  const each = (
    name: 'origins' | 'allowedHosts' | 'trustProxy',
    wrong: (text: string) => string | undefined,
  ): Problem[] =>
    (values[name] ?? []).flatMap((text, index) => {
      const message = text === '' ? undefined : wrong(text)
      return message === undefined ? [] : [{ path: [name, index], message }]
    })
  const more = [
    ...each('origins', originProblem),
    ...each('allowedHosts', hostProblem),
    ...each('trustProxy', proxyProblem),
  ]
  const size = values.maxBody ?? serveSettings.maxBody.default
  if (size < 1024 || size > 64 * 1024 * 1024) more.push({ path: ['maxBody'], message: 'must be 1KiB to 64MiB' })
  return { values, problems: [...problems, ...more] }
}

function originProblem(origin: string): string | undefined {
  // Answers may be read with the reader's own sign-in, so nobody is let in by a wildcard.
  if (origin.includes('*')) return 'must be one exact origin: wildcards are not taken, list each'
  const url = URL.canParse(origin) ? new URL(origin) : undefined
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    return 'must be an origin: write it like https://ops.example.com'
  }
  return url.origin === origin ? undefined : `must be an origin alone: write ${url.origin}`
}

function hostProblem(host: string): string | undefined {
  if (host.includes('*')) return 'must be one exact host name: wildcards are not taken, list each'
  if (isIP(host.replace(/^\[(.*)\]$/, '$1'))) return undefined
  if (/^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$/i.test(host))
    return undefined
  return 'must be a host name alone: without scheme, port or path, like svc.example.com'
}

function proxyProblem(proxy: string): string | undefined {
  const [address = '', prefix, ...rest] = proxy.split('/')
  const family = isIP(address)
  const wrong = 'must be an address or a network: write it like 10.0.0.7 or 10.0.0.0/24'
  if (family === 0 || rest.length > 0) return wrong
  if (prefix === undefined) return undefined
  const bits = /^\d{1,3}$/.test(prefix) ? Number(prefix) : -1
  if (bits < 0 || bits > (family === 4 ? 32 : 128)) return wrong
  // Everyone's address would then be what the caller claims.
  return bits === 0 ? 'trusts every caller: name the proxy, or its network' : undefined
}
