import { HealthCheckRequest } from '../protocol/index.ts'
import { overHttp } from '../reports/index.ts'
import { formatNamed, type Pair } from '../wire/index.ts'
import { clean } from './log.ts'

const asked = new Set(Object.keys(HealthCheckRequest.fields).map((name) => name.toLowerCase()))

/**
 * The target for a log line: of the query only a format that exists, and what a health check asks for
 * where one is asked for. Anywhere else a value may be a secret, whatever its name.
 */
export function loggedPath(path: string, pairs: readonly Pair[], isHealthCheck: boolean): string {
  const kept = pairs.filter(([written, value]) => {
    const name = written.toLowerCase()
    return name === 'format' ? isFormat(value) : isHealthCheck && asked.has(name)
  })
  const left = kept.length < pairs.length ? ['…'] : []
  const query = [...kept.map(([name, value]) => `${name}=${value}`), ...left].join('&')
  return clean(query === '' ? path : `${path}?${query}`)
}

const isFormat = (value: string): boolean =>
  formatNamed(value) !== undefined || overHttp.format.some((known) => known === value.toLowerCase())
