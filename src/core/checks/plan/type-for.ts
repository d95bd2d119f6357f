import { didYouMean } from '../../base/suggest.ts'
import { ServerType } from '../../protocol/index.ts'
import { registered } from '../kinds/index.ts'

/** Everyday words for servers besides the names of kinds and of services at standard ports, and where they belong. */
const everyday: { readonly [T in ServerType]?: readonly string[] } = {
  App: [
    'web',
    'website',
    'site',
    'nginx',
    'apache',
    'iis',
    'api',
    'frontend',
    'backend',
    'application',
    'proxy',
    'mail',
    'certificate',
    'server',
    'service',
    'host',
  ],
  Sql: ['db', 'database', 'mariadb', 'mssql', 'postgresql'],
  Batch: ['queue', 'broker', 'cache', 'job', 'worker', 'cron', 'valkey'],
  Identity: ['auth', 'directory', 'login', 'sso', 'keycloak', 'ad'],
  Ftp: ['file'],
  Agents: ['heartbeat'],
}

/** Each of these words, kind and service, with the type under which such servers belong. */
const words: readonly (readonly [word: string, type: ServerType])[] = ServerType.values.flatMap((type) => [
  ...(everyday[type] ?? []).map((word) => [word, type] as const),
  ...Object.entries(registered).flatMap(([kind, { ports = {} }]) => [
    ...Object.values(ports[type] ?? {}).map((service) => [service, type] as const),
    ...(Object.keys(ports)[0] === type ? [[kind, type] as const] : []),
  ]),
])

/**
 * The server type under which a server of this name belongs: that of the kind, or of the service at a standard port, with
 * this name in singular or plural. `isNear`: or with a name like it.
 *
 * @example
 * ```ts
 * typeFor('Web') // 'App'
 * typeFor('databases') // 'Sql'
 * typeFor('Things') // undefined
 * ```
 */
export function typeFor(name: string, isNear = false): ServerType | undefined {
  const whole = name.toLowerCase()
  const one = whole.replace(/[ _-]?servers?$/, '')
  const forms = [whole, one, one.replace(/s$/, '')]
  const near = isNear
    ? didYouMean(
        one,
        words.map(([word]) => word),
      )
    : undefined
  return words.find(([word]) => forms.includes(word) || word === near)?.[1]
}

/** The server type of the first of these monitors whose kind has one. */
export const typeOfKinds = (kinds: readonly unknown[]): ServerType | undefined =>
  kinds.flatMap((kind) => words.find(([word]) => word === kind && Object.hasOwn(registered, word))?.[1] ?? []).at(0)
