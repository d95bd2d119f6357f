import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { read } from '../support/suite/repository.ts'
import { failing, healthy, openSite, raw, type Site, type SiteOptions } from './site.ts'

const page = read('docs/load-balancers.md')
const block = (language: string, name: string): string => {
  const [, lines] = new RegExp(`\`\`\`${language} ${name}\\n(.*?)\`\`\``, 's').exec(page) ?? []
  if (lines === undefined) throw new Error(`docs/load-balancers.md has no lines for ${name}`)
  return lines
}

/** A request as a program sends it, and the statuses that are a success for it. */
type Probe = {
  readonly name: string
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly isSuccess: (status: number) => boolean
}

/** The fields of an object. Another field is one that the program does not know, or that this reader would ignore. */
function fieldsOf(object: unknown, ...names: readonly string[]): Readonly<Record<string, unknown>> {
  const fields = object as Readonly<Record<string, unknown>>
  expect(names).toEqual(expect.arrayContaining(Object.keys(fields)))
  return fields
}
const durationOf = (text: unknown): number => {
  expect(text).toMatch(/^\d+s$/)
  return Number.parseInt(String(text), 10)
}
const isBelow400 = (status: number): boolean => status >= 200 && status < 400

/** The requests that Traefik 3 sends for `healthCheck` of a service of the file provider. */
function probesOfTraefik(): readonly Probe[] {
  const { http } = parse(block('yaml', 'traefik'))
  const { routers, services } = fieldsOf(http, 'routers', 'services')
  for (const router of Object.values(routers as object)) {
    const { rule, service } = fieldsOf(router, 'rule', 'service')
    expect(rule).toMatch(/^Host\(`svc\.example\.com`\)/)
    expect(services).toHaveProperty([String(service)])
  }
  return Object.entries(services as object).map(([name, service]) => {
    const { servers, healthCheck } = fieldsOf(
      fieldsOf(service, 'loadBalancer')['loadBalancer'],
      'servers',
      'healthCheck',
    )
    const [first] = servers as readonly object[]
    const url = new URL(String(fieldsOf(first, 'url')['url']))
    const check = fieldsOf(healthCheck, 'path', 'port', 'hostname', 'interval', 'timeout')
    expect(durationOf(check['timeout'])).toBeLessThan(durationOf(check['interval']))
    const port = check['port'] ?? url.port
    expect(String(port)).toBe('8790')
    const host = String(check['hostname'] ?? `${url.hostname}:${port}`)
    const headers = { Host: host, 'User-Agent': 'Go-http-client/1.1', 'Accept-Encoding': 'gzip' }
    return { name, target: String(check['path']), headers, isSuccess: isBelow400 }
  })
}

/** The requests that Consul sends for an HTTP check. */
function probesOfConsul(): readonly Probe[] {
  const { services } = fieldsOf(JSON.parse(block('json', 'consul')), 'services')
  return (services as readonly object[]).flatMap((service) => {
    const { name, checks } = fieldsOf(service, 'name', 'address', 'port', 'checks')
    return (checks as readonly object[]).map((check) => {
      const { http, header = {}, ...more } = fieldsOf(check, 'name', 'http', 'header', 'interval', 'timeout')
      expect(durationOf(more['timeout'])).toBeLessThan(durationOf(more['interval']))
      const { host, pathname, search } = new URL(String(http))
      const own = Object.entries(header as Record<string, readonly string[]>).map(([key, [value = '']]) => [key, value])
      const usual = {
        'User-Agent': 'Consul Health Check',
        Accept: 'text/plain, text/*, */*',
        'Accept-Encoding': 'gzip',
      }
      const headers = { Host: host, ...usual, ...Object.fromEntries(own) }
      return { name: String(name), target: `${pathname}${search}`, headers, isSuccess: (status) => status < 300 }
    })
  })
}

/** The requests that the kubelet sends for `httpGet`, apart from TLS. */
function probesOfKubelet(): readonly Probe[] {
  const probes = fieldsOf(parse(block('yaml', 'kubernetes')), 'livenessProbe', 'readinessProbe')
  return Object.entries(probes).map(([name, probe]) => {
    const { httpGet } = fieldsOf(probe, 'httpGet', 'periodSeconds', 'timeoutSeconds', 'failureThreshold')
    const { path, port, scheme } = fieldsOf(httpGet, 'path', 'port', 'scheme')
    expect([port, scheme]).toEqual([8790, 'HTTPS'])
    const headers = { Host: '10.1.2.3:8790', 'User-Agent': 'kube-probe/1.34', Accept: '*/*', Connection: 'close' }
    return { name, target: String(path), headers, isSuccess: isBelow400 }
  })
}

const readers = { Traefik: probesOfTraefik, Consul: probesOfConsul, Kubernetes: probesOfKubelet } as const

/** Which probes succeed at a site. */
async function verdicts(probes: readonly Probe[], { port }: Site): Promise<Readonly<Record<string, boolean>>> {
  const answers = probes.map(async ({ name, target, headers, isSuccess }) => {
    const lines = Object.entries({ Connection: 'close', ...headers }).map(([key, value]) => `${key}: ${value}\r\n`)
    const { text } = await raw(port, `GET ${target} HTTP/1.1\r\n${lines.join('')}\r\n`)
    return [name, isSuccess(Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1]))] as const
  })
  return Object.fromEntries(await Promise.all(answers))
}

const options = { allowedHosts: ['svc.example.com'] }
const lost = { ready: () => Promise.reject(new Error('disk full')) }
const situations: Readonly<Record<string, SiteOptions>> = {
  'all is well': { options, health: async (_, call) => healthy(call) },
  'the store cannot be written': { options, runtime: lost },
  'a monitor fails': { options, health: async (_, call) => failing(call) },
}

const expected = {
  Traefik: { 'all is well': [], 'the store cannot be written': ['sign-in'], 'a monitor fails': ['app'] },
  Consul: { 'all is well': [], 'the store cannot be written': ['svc'], 'a monitor fails': ['app'] },
  Kubernetes: { 'all is well': [], 'the store cannot be written': ['readinessProbe'], 'a monitor fails': [] },
} as const

test.each(
  Object.entries(expected).flatMap(([reader, rows]) =>
    Object.entries(rows).map(([situation, failed]) => [reader as keyof typeof readers, situation, failed] as const),
  ),
)('W13 simulated: the probes of %s in the docs, when %s, fail exactly for %j', async (reader, situation, failed) => {
  const probes = readers[reader]()
  const site = await openSite(situations[situation] ?? {})
  const all = Object.fromEntries(probes.map(({ name }) => [name, !(failed as readonly string[]).includes(name)]))
  expect(await verdicts(probes, site)).toEqual(all)
})

test('W13 simulated: a probe of /healthcheck under a name that the server does not know fails, and those of /livez and /readyz do not', async () => {
  const site = await openSite({ options: { allowedHosts: [] } })
  expect(await verdicts(probesOfTraefik(), site)).toEqual({ health: true, 'sign-in': true, app: false })
})
