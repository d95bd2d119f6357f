import { once } from 'node:events'
import { utimesSync, writeFileSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startServeProcess } from '../support/program/serve-process.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { until } from '../support/suite/until.ts'
import { maxMs, metricsOf } from './scheduled-web.ts'

const victims = 137

async function listening(server: Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A reverse proxy that passes `/7` on to the seventh of these ports. */
const proxyTo = (ports: readonly number[]): Server =>
  createServer(({ url = '/' }, response) => {
    const outgoing = request(
      { host: '127.0.0.1', port: ports[Number(url.slice(1))], path: '/', agent: false },
      (peer) => {
        response.writeHead(peer.statusCode ?? 502)
        peer.pipe(response)
      },
    )
    outgoing.on('error', () => response.destroy()).end()
  })

const incidentsIn = (metrics: string) => {
  const lines = metrics.split('\n').filter((line) => line.startsWith('svc_incident_info{'))
  const of = (label: string, line: string): string => new RegExp(`\\b${label}="([^"]*)"`).exec(line)?.[1] ?? ''
  const monitors = (role: string): readonly string[] => [
    ...new Set(lines.filter((line) => of('role', line) === role).map((line) => of('monitor', line))),
  ]
  return {
    causes: monitors('cause').toSorted(),
    victims: monitors('victim'),
    causesOf: new Set(lines.flatMap((line) => of('cause', line) || [])),
  }
}

test('G3 137 real listeners behind one proxy that goes are one incident with 137 victims', {
  timeout: maxMs,
}, async () => {
  const ports = await Promise.all(
    Array.from({ length: victims }, async () => await listening(createServer((_, response) => response.end('ok')))),
  )
  let proxy = proxyTo(ports)
  const port = await listening(proxy)
  const spare = createServer((_, response) => response.end('ok'))
  const spares = [await listening(spare), await listening(createServer((_, response) => response.end('ok')))]
  const home = temporaryHome()
  const backup = join(home.folder, 'backup')
  const fresh = join(home.folder, 'fresh')
  writeFileSync(backup, 'x')
  writeFileSync(fresh, 'x')
  const old = new Date(Date.now() - 3 * 86_400_000)
  const types = ['App', 'Sql', 'Batch']
  const lines = (type: string): readonly string[] =>
    ports.flatMap((_, at) =>
      types[at % types.length] === type
        ? [`{kind: http, name: m${at}, url: 'http://127.0.0.1:${port}/${at}', dependsOn: Identity/proxy}`]
        : [],
    )
  const yaml = `serve: {confirm: 5s, every: {Standard: 10s, Advanced: off}}
types:
  Identity:
    host: false
    monitors:
      - {kind: tcp, name: proxy, host: 127.0.0.1, port: ${port}}
      - {kind: file-age, name: backup, path: ${backup}, age: {warn: 1d, limit: 2d}, dependsOn: proxy}
      - {kind: tcp, name: spare a, host: 127.0.0.1, port: ${spares[0]}}
      - {kind: tcp, name: spare b, host: 127.0.0.1, port: ${spares[1]}}
      - {kind: file-age, name: behind both, path: ${fresh}, age: {warn: 1d, limit: 2d}, dependsOn: {any: [spare a, spare b]}}
${types
  .map(
    (type) =>
      `  ${type}:\n    host: false\n    monitors:\n${lines(type)
        .map((line) => `      - ${line}\n`)
        .join('')}`,
  )
  .join('')}`
  await using serve = await startServeProcess(yaml)
  const incidents = async () => incidentsIn(await metricsOf(serve))
  const healthy = async (): Promise<boolean> =>
    ((await metricsOf(serve)).match(/^svc_check_success\{.*monitor="http m\d+".* 1$/gm)?.length ?? 0) >= victims
  await until(healthy, maxMs, 250)

  const gone = proxy
  const closed = once(gone, 'close')
  gone.close()
  gone.closeAllConnections()
  await closed
  await until(async () => (await incidents()).victims.length === victims, maxMs, 250)
  const during = await incidents()
  expect(during.causes).toEqual(['tcp proxy'])
  expect([...during.causesOf]).toEqual(['Identity/tcp proxy'])
  const answer = await fetch(`http://127.0.0.1:${serve.port}/impact?Monitor=Identity/proxy`)
  const impact = (await answer.json()) as { readonly Monitors: readonly { readonly Runs: boolean }[] }
  // Those and the backup.
  expect(impact.Monitors.filter(({ Runs }) => !Runs)).toHaveLength(victims + 1)

  proxy = proxyTo(ports)
  await listening(proxy, port)
  await until(async () => (await incidents()).causes.length + (await incidents()).victims.length === 0, maxMs, 250)

  utimesSync(backup, old, old)
  await until(async () => (await incidents()).causes.length > 0, maxMs, 250)
  expect(await incidents()).toMatchObject({ causes: ['file-age backup'], victims: [] })

  spare.close()
  await until(async () => (await incidents()).causes.includes('tcp spare a'), maxMs, 250)
  expect(await incidents()).toMatchObject({ causes: ['file-age backup', 'tcp spare a'], victims: [] })
  expect(await metricsOf(serve)).toMatch(/svc_check_confirmed\{.*monitor="file-age behind both".* 1$/m)
})
