import { ServerType } from '../../protocol/index.ts'
import { registered } from '../kinds/index.ts'

/** Everyday words for servers besides the names of kinds and of services at standard ports, and where they belong. */
const everyday: { readonly [T in ServerType]?: readonly string[] } = {
  App: ['web', 'website', 'site', 'api', 'frontend', 'backend', 'proxy', 'mail', 'server', 'service', 'host'],
  Sql: ['db', 'database', 'mariadb', 'mssql', 'postgresql'],
  Batch: ['queue', 'broker', 'cache', 'job', 'worker', 'cron', 'valkey'],
  Identity: ['auth', 'directory', 'login', 'sso', 'keycloak', 'ad'],
  Ftp: ['file'],
  Agents: ['heartbeat'],
}

/**
 * The server type under which a server of this name belongs: that of the kind, or of the service at a standard port, with
 * this name in singular or plural.
 *
 * @example
 * ```ts
 * typeFor('Web') // 'App'
 * typeFor('databases') // 'Sql'
 * typeFor('Things') // undefined
 * ```
 */
export function typeFor(name: string): ServerType | undefined {
  const one = name.toLowerCase().replace(/[ _-]?servers?$/, '')
  const words = [one, one.replace(/s$/, '')]
  return ServerType.values.find(
    (type) =>
      everyday[type]?.some((word) => words.includes(word)) ||
      Object.entries(registered).some(
        ([kind, { ports = {} }]) =>
          Object.values(ports[type] ?? {}).some((service) => words.includes(service)) ||
          (words.includes(kind) && Object.keys(ports)[0] === type),
      ),
  )
}
