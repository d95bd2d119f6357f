import { isIP } from 'node:net'
import { isAbsolute } from 'node:path'
import { bareHost } from '../../base/loopback.ts'
import { defaultsOf, type SettingsSpec, type Values } from '../../base/settings/index.ts'
import { noZone } from '../../base/zone.ts'
import { nameStyles } from '../index.ts'

/** The `serve:` section of svc.yaml: how `svc serve` behaves over HTTP. Flags take precedence. */
export const serveSettings = {
  every: {
    type: 'every',
    default: { Standard: 60_000, Advanced: 3_600_000 },
    // No run of a monitor without a timeout of its own takes longer.
    least: { Basic: 5_000, Standard: 10_000, Advanced: 30_000 },
    doc: 'Intervals at which svc serve runs each monitor, if a svc.yaml exists: a duration for Standard, a map of modes, or `off`. A type and a monitor can have their own',
  },
  watchConfig: {
    type: 'flag',
    doc: 'Whether svc serve reloads by itself when svc.yaml or an included file changes; by default only with an embedded store',
  },
  confirm: {
    type: 'duration',
    default: 20_000,
    min: 5_000,
    max: 3_600_000,
    doc: 'How long a worse result must last before it is confirmed, and alerts and incidents follow. A type and a monitor may have their own',
  },
  flapping: {
    type: 'countOrOff',
    default: 6,
    min: 2,
    max: 100,
    doc: 'More faults of a check than this in an hour are one incident, `flapping`, and not one each; off: each is one. A type and a monitor may have their own',
  },
  witness: {
    type: 'texts',
    default: [],
    mistake: witnessProblem,
    doc: 'Two or more peers that show whether this machine reaches anything: `tcp://10.0.0.1:443`, `dns://9.9.9.9/example.com`, `https://example.com`. While none of them answers, other machines that cannot be reached are not checked',
  },
  name: {
    type: 'text',
    pattern: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/,
    doc: 'Name of this installation in notifications, the label `server`: up to 63 letters, digits, "-", "_" and "."; the same on all nodes of a store. Default: the host name',
  },
  node: {
    type: 'text',
    pattern: /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$/,
    doc: 'Name of this node among those that share a PostgreSQL store: up to 63 letters, digits, "-", "_", "." and ":". Default: the host name, and the port unless it is 8790',
  },
  url: {
    type: 'text',
    mistake: pageProblem,
    doc: 'URL of this server as people reach it, for links in notifications: `https://svc.example.com`',
  },
  timezone: {
    type: 'text',
    mistake: noZone,
    doc: 'Time zone of times on pages and in the texts of notifications, by its IANA name: `Europe/Berlin`. It changes no rule: `timezone:` of an entry with `when:` stays UTC unless written. Default: that of the machine',
  },
  peer: {
    type: 'text',
    mistake: peerProblem,
    doc: 'Address of this node for the other nodes of a PostgreSQL store, which ask each other without the store who sends: `http://10.0.0.7:8790`. It leads to this node alone, not to a load balancer. Default: the address and port on which svc listens',
  },
  ping: {
    type: 'secret',
    doc: "URL of a dead man's switch, which alerts when requests stop coming: svc requests it after each minute in which it watched, stored and sent as it should",
  },
  origins: {
    type: 'texts',
    default: [],
    mistake: originProblem,
    doc: 'Exact origins whose pages may read responses in a browser: `https://ops.example.com`',
  },
  allowedHosts: {
    type: 'texts',
    default: [],
    mistake: hostProblem,
    doc: 'Host names that the server accepts, in addition to the loopback names and, if it listens beyond loopback, those of this machine',
  },
  badges: {
    type: 'texts',
    default: [],
    doc: 'Types and monitors whose state anybody may fetch as an image, also on pages of other sites: `App`, or `App/shop` as `/badge/App/shop.svg`',
  },
  details: {
    type: 'choice',
    values: ['signed-in', 'anyone'],
    default: 'signed-in',
    doc: 'Which callers from other machines see messages, host names and server state. `signed-in`: those with a role or the permission `health`',
  },
  jsonp: {
    type: 'flag',
    doc: 'Whether to support `?callback=`, for pages of this server and of `origins`; by default only if the server listens on loopback',
  },
  names: {
    type: 'choice',
    values: nameStyles,
    default: 'PascalCase',
    doc: 'Default spelling of the member names in JSON responses: camelCase for clients of newer servers',
  },
  basic: {
    type: 'flag',
    default: false,
    doc: 'Whether to accept user name and password by HTTP Basic, for one request each; every request costs a password check',
  },
  refresh: {
    type: 'choice',
    values: ['any', 'rotating'],
    default: 'any',
    doc: 'Which refresh tokens exist: `rotating` issues and renews only those that are valid once; clients that do not request them get none and sign in again',
  },
  hsts: {
    type: 'flag',
    default: true,
    doc: 'Whether answers tell browsers to use only TLS for this host name, at every port, for a year; with false, answers cancel that',
  },
  trustProxy: {
    type: 'texts',
    default: [],
    mistake: proxyProblem,
    doc: 'Addresses or networks of proxies whose `X-Forwarded-For` is trusted: `10.0.0.7`, `10.0.0.0/24`',
  },
  behindProxy: {
    type: 'texts',
    default: [],
    mistake: proxyProblem,
    doc: 'Addresses or networks of the reverse proxies through which all callers come. They are trusted like those of `trustProxy`, no caller is local, and requests from any other machine are refused',
  },
  localAccounts: {
    type: 'texts',
    default: [],
    mistake: accountProblem,
    doc: 'Linux: accounts of this machine, by name or number, whose processes may read messages, host names and server state over loopback without sign-in, as those of root and of the account of svc may: `prometheus`',
  },
  trustLocal: {
    type: 'flag',
    default: true,
    doc: 'Whether callers on loopback may read messages, host names and server state without sign-in: on Linux those of the accounts above, on other systems every process. With false, none may',
  },
  socket: {
    type: 'text',
    mistake: socketProblem,
    doc: 'Path of a Unix socket on which svc answers in plain HTTP as well: `/run/svc/svc.sock`. Whoever may connect by the permissions of the file reads messages, host names and server state without sign-in; the mode is 0600. Linux and macOS',
  },
  socketGroup: {
    type: 'text',
    mistake: (group) => accountProblem(group)?.replace('an account', 'a group'),
    doc: 'Group of this machine, by name or number, whose accounts may connect to `socket`, too (mode 0660). The account of svc must be in it',
  },
  maxBody: {
    type: 'bytes',
    default: 1024 * 1024,
    min: 1024,
    max: 64 * 1024 * 1024,
    doc: 'Maximum size of a request body',
  },
  audit: {
    type: 'group',
    doc: 'What happens to the entries of the audit beside the store',
    fields: {
      stream: {
        type: 'text',
        mistake: streamProblem,
        doc: 'File to which every entry of the audit is appended as a line of JSON, before its change is made: `/var/log/svc/audit.jsonl`. While it cannot be written, changes and sign-ins are refused. Each server has a file of its own',
      },
    },
  },
  metrics: {
    type: 'group',
    hasDefaults: true,
    doc: 'What /metrics exports',
    fields: {
      maxSeries: {
        type: 'integer',
        default: 50_000,
        min: 100,
        max: 1_000_000,
        doc: 'Maximum number of health series; further ones are omitted and counted in svc_series_dropped',
      },
    },
  },
} as const satisfies SettingsSpec

/** How `svc serve` behaves over HTTP: the `serve:` section of svc.yaml, overridden by flags. */
export type ServeOptions = Values<typeof serveSettings> & {
  /** Includes stack traces in error bodies. Off by default. */
  readonly debug: boolean
}

/** The values without a svc.yaml and flags. */
export const serveDefaults = { ...defaultsOf(serveSettings), debug: false } as ServeOptions

function originProblem(origin: string): string | undefined {
  // Responses may depend on the reader's credentials, so wildcards are refused.
  if (origin.includes('*')) return 'must be one exact origin: wildcards are not supported, list each'
  const url = URL.canParse(origin) ? new URL(origin) : undefined
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    return 'must be an origin: write it like https://ops.example.com'
  }
  return url.origin === origin ? undefined : `must be an origin alone: write ${url.origin}`
}

/**
 * The problem of a text that is not the name or number of an account.
 *
 * @example
 * ```ts
 * accountProblem('prometheus') // undefined
 * ```
 */
export function accountProblem(account: string): string | undefined {
  return /^[A-Za-z0-9_][A-Za-z0-9_.@\\-]{0,255}\$?$/.test(account)
    ? undefined
    : 'must be the name or number of an account of this machine: write it like prometheus'
}

/** Why a text is not a witness, or undefined if it is. */
export function witnessProblem(witness: string): string | undefined {
  const mistake = 'must be a peer: write it like tcp://10.0.0.1:443, dns://9.9.9.9/example.com or https://example.com'
  const url = URL.canParse(witness) ? new URL(witness) : undefined
  if (!url || url.hostname === '' || url.username !== '' || url.password !== '') return mistake
  if (url.protocol === 'https:' || url.protocol === 'http:') return undefined
  if (url.protocol === 'tcp:')
    return url.port === '' || (url.pathname !== '' && url.pathname !== '/') ? mistake : undefined
  if (url.protocol === 'dns:')
    return /^\/[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?\.?$/i.test(url.pathname) ? undefined : mistake
  return mistake
}

/** A relative path would depend on the folder in which svc starts. */
function streamProblem(path: string): string | undefined {
  return isAbsolute(path) ? undefined : 'must be an absolute path: write it like /var/log/svc/audit.jsonl'
}

/** Bytes of a path, with the 0 at its end, that the address of a Unix socket has room for: 104 on macOS, 108 on Linux. */
const maxSocketPath = 104

/** Why a text is not the path of a Unix socket, or undefined if it is. */
function socketProblem(path: string): string | undefined {
  if (!isAbsolute(path)) return 'must be an absolute path: write it like /run/svc/svc.sock'
  return Buffer.byteLength(path) < maxSocketPath ? undefined : `must be shorter than ${maxSocketPath} bytes`
}

function pageProblem(page: string): string | undefined {
  const url = URL.canParse(page) ? new URL(page) : undefined
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    return 'must be the URL of the status page: write it like https://svc.example.com'
  }
  const isPlain = url.username === '' && url.password === '' && url.search === '' && url.hash === ''
  return isPlain ? undefined : 'must have neither a user, a password, a query nor a fragment'
}

/**
 * Why a text is not the address of a node for other nodes, or undefined if it is.
 *
 * @example
 * ```ts
 * peerProblem('http://10.0.0.7:8790') // undefined
 * ```
 */
export function peerProblem(peer: string): string | undefined {
  const url = URL.canParse(peer) ? new URL(peer) : undefined
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    return 'must be the address of this node: write it like http://10.0.0.7:8790'
  return `${url.origin}/` === url.href ? undefined : `must be an address alone: write ${url.origin}`
}

function hostProblem(host: string): string | undefined {
  if (host.includes('*')) return 'must be one exact host name: wildcards are not supported, list each'
  if (isIP(bareHost(host))) return undefined
  if (/^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$/i.test(host))
    return undefined
  return 'must be a host name alone: without scheme, port or path, like svc.example.com'
}

/**
 * Why a text is not the address or network of a proxy, or undefined if it is.
 *
 * @example
 * ```ts
 * proxyProblem('10.0.0.0/24') // undefined
 * proxyProblem('10.0.0.0/0') // 'would trust every caller: name the proxy, or its network'
 * ```
 */
export function proxyProblem(proxy: string): string | undefined {
  const [address = '', prefix, ...rest] = proxy.split('/')
  const family = isIP(address)
  const mistake = 'must be an address or a network: write it like 10.0.0.7 or 10.0.0.0/24'
  if (family === 0 || rest.length > 0) return mistake
  if (prefix === undefined) return undefined
  const bits = /^\d{1,3}$/.test(prefix) ? Number(prefix) : -1
  if (bits < 0 || bits > (family === 4 ? 32 : 128)) return mistake
  // Every caller could then claim any address.
  return bits === 0 ? 'would trust every caller: name the proxy, or its network' : undefined
}
