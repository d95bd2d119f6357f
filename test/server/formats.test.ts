import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, failing, healthy, question, type Site, startSite, withSite } from './site.ts'

let site: Site
let sick: Site
beforeAll(async () => {
  site = await startSite()
  sick = await startSite({ health: async (_request, call) => failing(call) })
})
afterAll(() => Promise.all([site.server.stop(), sick.server.stop()]))

const type = async (path: string, accept?: string): Promise<string | undefined> =>
  (await ask(site.port, path, { headers: accept === undefined ? {} : { accept } })).headers['content-type']

const json = 'application/json; charset=utf-8'
const csv = 'text/csv; charset=utf-8'

describe('F1 the suffix precedes format, which precedes Accept, which precedes JSON', () => {
  const [path, query] = question.split('?')
  test.each([
    [question, undefined, json],
    [question, '*/*', json],
    [question, 'text/html', json],
    [question, 'text/csv', csv],
    [`${question}&format=CSV`, 'application/json', csv],
    [`${question}&format=xml`, 'text/csv', csv],
    [`${path}.json?${query}&format=csv`, 'text/csv', json],
    [`${path}.csv?${query}&callback=cb`, undefined, csv],
  ])('F1 %s with Accept %s is %s', async (url, accept, expected) => {
    expect(await type(url, accept)).toBe(expected)
  })
})

describe('F2 JSONP', () => {
  test('F2 a callback wraps the JSON and ends without a semicolon', async () => {
    const got = await ask(site.port, `${question}&callback=app.onHealth&format=csv`)
    expect(got.headers['content-type']).toBe('text/javascript; charset=utf-8')
    expect(got.text).toMatch(/^app\.onHealth\(\{"Status":"Success".*\}\)$/)
  })

  test('F2 an error keeps its status and is wrapped', async () => {
    const got = await ask(site.port, '/healthcheck?ServerType=Sql&callback=cb')
    expect(got.status).toBe(400)
    expect(got.text).toMatch(/^cb\(\{"ResponseStatus":.*\}\)$/)
  })

  test('F2 a failed check keeps its 503', async () => {
    const got = await ask(sick.port, `${question}&callback=cb`)
    expect(got.status).toBe(503)
    expect(got.text).toMatch(/^cb\(\{"Status":"Failure"/)
  })

  test('F2 an invalid callback name is a 400 in plain JSON', async () => {
    const got = await ask(site.port, `${question}&callback=alert(1)//`)
    expect(got.status).toBe(400)
    expect(got.headers['content-type']).toBe(json)
    expect(got.json.ResponseStatus?.ErrorCode).toBe('BadRequest')
  })

  test('F2 an empty callback gives plain JSON, and other methods ignore it', async () => {
    expect((await ask(site.port, `${question}&callback=`)).json.Status).toBe('Success')
    const body = '{"ExecutionMode":"Basic","ServerType":"Sql"}'
    const got = await ask(site.port, '/api/HealthCheckRequest?callback=cb', { method: 'POST', body })
    expect(got.json.Status).toBe('Success')
  })

  test('F2 the configuration can turn it off, and an empty callback then still gives plain JSON', async () => {
    await withSite({ options: { jsonp: false } }, async ({ port }) => {
      expect((await ask(port, `${question}&callback=cb`)).status).toBe(403)
      expect((await ask(port, `${question}&callback=`)).json.Status).toBe('Success')
      const body = '{"ExecutionMode":"Basic","ServerType":"Sql"}'
      const posted = await ask(port, '/api/HealthCheckRequest?callback=cb', { method: 'POST', body })
      expect(posted.json.Status).toBe('Success')
    })
  })
})

describe('F3 CSV', () => {
  test('F3 a success is an attachment with a header row and one row', async () => {
    const got = await ask(site.port, question, { headers: { accept: 'text/csv' } })
    expect(got.headers['content-disposition']).toBe('attachment;filename="HealthCheckRequest.csv"')
    expect(got.text).toMatch(/^ServerState,Status,StatusMessage,.*\r\n,Success,.*\r\n$/)
  })

  test('F3 a failed check has no ResponseStatus in CSV and is not an attachment', async () => {
    const got = await ask(sick.port, `${question}&format=csv`)
    expect(got.status).toBe(503)
    expect(got.headers['content-disposition']).toBeUndefined()
    expect(got.text).not.toContain('ResponseStatus')
  })

  test('F3 an error is CSV too', async () => {
    const got = await ask(site.port, '/healthcheck.csv')
    expect(got.status).toBe(400)
    expect(got.headers['content-type']).toBe(csv)
    expect(got.text).toMatch(/^ResponseStatus\r\n"\{ErrorCode:NotEmpty,/)
  })
})

describe('F4 headers of every response', () => {
  test.each([
    ['GET', question],
    ['GET', '/healthcheck'],
    ['GET', '/nothing'],
    ['GET', '/'],
    ['GET', '/livez'],
    ['GET', '/readyz'],
    ['GET', '/metrics'],
    ['OPTIONS', '/auth'],
    ['POST', '/auth'],
    ['GET', '/healthcheck.csv'],
    ['TRACE', '/'],
  ])('F4 %s %s', async (method, path) => {
    const { headers } = await ask(site.port, path, { method })
    expect(headers.vary).toBe('Accept')
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(headers['cache-control']).toBe('no-store')
    expect(headers['x-powered-by']).toBeUndefined()
    expect(headers.server).toBeUndefined()
    expect(headers['content-security-policy']).toMatch(/^default-src 'none';.*frame-ancestors 'none'/)
    expect(headers['referrer-policy']).toBe('no-referrer')
    expect(headers['x-correlation-id']).toMatch(/^[0-9a-f-]{36}$/)
    expect(JSON.stringify(headers)).not.toContain('9.8.7')
  })
})

describe('F5 reports', () => {
  test('F5 format=nagios and format=prometheus keep the 503', async () => {
    const nagios = await ask(sick.port, `${question}&format=Nagios`)
    expect(nagios.status).toBe(503)
    expect(nagios.text).toMatch(/^SVC CRITICAL - Sql/)
    const prometheus = await ask(sick.port, `${question}&format=prometheus`)
    expect(prometheus.status).toBe(503)
    expect(prometheus.text).toMatch(/^svc_type_success\{.*type="Sql".*\} 0$/m)
  })

  test('F5 prtg implies SuppressErrorCodes', async () => {
    const got = await ask(sick.port, `${question}&format=prtg`)
    expect(got.status).toBe(200)
    expect(JSON.parse(got.text)).toHaveProperty('prtg.result')
  })

  test('F5 Accept application/health+json', async () => {
    const accept = (value: string) => ask(sick.port, question, { headers: { accept: value } })
    const got = await accept('application/health+json, application/json;q=0.5')
    expect(got.status).toBe(503)
    expect(got.headers['content-type']).toMatch(/^application\/health\+json/)
    expect(JSON.parse(got.text)).toHaveProperty('status', 'fail')
    expect((await accept('application/json, application/health+json')).headers['content-type']).toBe(json)
    expect((await accept('application/health+json;q=0')).headers['content-type']).toBe(json)
  })

  test('F5 a suffix or a callback precedes a report, and other operations have no reports', async () => {
    expect((await ask(sick.port, `${question.replace('?', '.json?')}&format=prtg`)).json.Status).toBe('Failure')
    expect((await ask(sick.port, `${question}&format=prtg&callback=cb`)).text).toMatch(/^cb\(\{"Status"/)
    expect((await ask(sick.port, '/auth?format=prtg', { method: 'POST' })).json.ResponseStatus?.ErrorCode).toBe(
      'NotImplementedException',
    )
  })

  test('F5 an error of the request stays an error in JSON', async () => {
    const got = await ask(site.port, '/healthcheck?format=nagios')
    expect(got.status).toBe(400)
    expect(got.json.ResponseStatus?.ErrorCode).toBe('NotEmpty')
  })

  test('one target that is requested in several formats answers each in its own', async () => {
    await withSite({ health: async (_request, call) => healthy(call) }, async ({ port }) => {
      for (const accept of ['text/csv', 'application/json', 'application/health+json', 'text/csv']) {
        const got = await ask(port, question, { headers: { accept } })
        expect(got.headers['content-type']).toContain(accept)
      }
    })
  })
})
