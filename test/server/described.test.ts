import { get } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { operations } from '../../src/core/protocol/index.ts'
import { DescribedInterface } from '../../src/core/server/documents.ts'
import { ask, openSite, raw, type Site, startSite } from './site.ts'

let site: Site
beforeAll(async () => {
  site = await startSite()
})
afterAll(() => site.server.stop())

const documents = [
  ['/types/typescript', 'text/plain; charset=utf-8'],
  ['/types/metadata.json', 'application/json; charset=utf-8'],
  ['/types/metadata', 'application/json; charset=utf-8'],
  ['/metadata', 'text/html; charset=utf-8'],
  ['/metadata/app.json', 'application/json; charset=utf-8'],
  ['/metadata/app', 'application/json; charset=utf-8'],
  ['/openapi.json', 'application/json; charset=utf-8'],
  ['/openapi-all.json', 'application/json; charset=utf-8'],
] as const

/** The same bytes for all callers, also compressed. */
const isStored = (path: string): boolean => /openapi|app/.test(path)

describe('R6 descriptions of the interface', () => {
  test.each(documents)('R6 GET %s', async (path, type) => {
    const got = await ask(site.port, path)
    expect([got.status, got.headers['content-type']]).toEqual([200, type])
    if (type.startsWith('application/json')) expect(typeof got.json).toBe('object')
    for (const { name } of Object.values(operations)) expect(got.text).toContain(name)
    // Of every address of its own that it names, that of this caller. What is stored for all callers names none.
    expect(got.text.includes(`http://127.0.0.1:${site.port}`)).toBe(!isStored(path))
  })

  test.each(documents)('R4 R5 F4 HEAD, OPTIONS, other verbs and letter case at %s', async (path, type) => {
    const got = await ask(site.port, path)
    const head = await ask(site.port, path, { method: 'HEAD' })
    expect([head.status, head.text, head.headers['content-type']]).toEqual([200, '', type])
    expect(head.headers['content-length']).toBe(got.headers['content-length'])
    const options = await ask(site.port, path, { method: 'OPTIONS' })
    expect([options.status, options.text, options.headers.allow]).toEqual([200, '', 'GET, HEAD, OPTIONS'])
    expect((await ask(site.port, path, { method: 'POST' })).status).toBe(405)
    expect((await ask(site.port, `${path.toUpperCase()}/`)).status).toBe(200)
    expect(got.headers['vary']).toBe(isStored(path) ? 'Accept, Accept-Encoding' : 'Accept')
    expect(got.headers['x-content-type-options']).toBe('nosniff')
    expect(got.headers['x-powered-by']).toBeUndefined()
  })

  test.each(documents)('S1 %s is not shown under a foreign host name', async (path) => {
    const got = await ask(site.port, path, { headers: { host: 'evil.example' } })
    expect([got.status, got.json.ResponseStatus?.ErrorCode]).toEqual([421, 'MisdirectedRequest'])
  })

  test.each(['/openapi', '/openapi.csv', '/metadata.json', '/types', '/types/typescript.json'])(
    'R1 R6 %s is a 404',
    async (path) => {
      expect((await ask(site.port, path)).status).toBe(404)
    },
  )

  test('R6 A9 HTTP Basic is described only where it is turned on', async () => {
    type Described = {
      readonly components: { readonly securitySchemes: Readonly<Record<string, unknown>> }
      readonly paths: Readonly<Record<string, { readonly post: { readonly security?: readonly object[] } }>>
    }
    for (const basic of [true, false]) {
      const { port } = await openSite({ options: { basic } })
      const { components, paths } = (await ask(port, '/openapi-all.json')).json as unknown as Described
      expect(components.securitySchemes['basic']).toEqual(
        basic ? { type: 'http', scheme: 'basic', description: expect.any(String) } : undefined,
      )
      const ways = (path: string) => paths[path]?.post.security?.some((way) => 'basic' in way)
      expect([ways('/assignroles'), ways('/api/AssignRoles[]')]).toEqual([basic, basic])
    }
  })

  test('R6 each caller sees the address that it used', async () => {
    const { port } = await openSite({ options: { trustProxy: ['127.0.0.1'], allowedHosts: ['svc.example'] } })
    const textFor = async (headers: Record<string, string>) =>
      /Base(?:Url|URL): (\S+)/.exec((await ask(port, '/types/typescript', { headers })).text)?.[1]
    expect(await textFor({ host: 'svc.example', 'x-forwarded-proto': 'https' })).toBe('https://svc.example')
    expect(await textFor({ host: 'svc.example' })).toBe('http://svc.example')
    expect(await textFor({ host: `localhost:${port}` })).toBe(`http://localhost:${port}`)
    expect(await textFor({ host: 'svc.example', 'x-forwarded-proto': 'https' })).toBe('https://svc.example')
  })

  test('R6 S3 each description is rendered once for all callers, and its bytes do not depend on the Host', async () => {
    const rendered: string[] = []
    const described = new DescribedInterface({ jsonp: true, basic: false, names: 'PascalCase' }, (name) =>
      rendered.push(name),
    )
    const names = ['metadata', 'openapi', 'openapiAll', 'types', 'app'] as const
    for (const name of names) {
      const all = await Promise.all(
        Array.from({ length: 40 }, (_, port) => described.answer(`http://localhost:${port + 1}`, name)),
      )
      const bodies = new Set(
        all.map(({ body, stored }) => stored?.plain ?? String(body).replace(/localhost:\d+/g, 'localhost')),
      )
      expect([name, bodies.size]).toEqual([name, 1])
    }
    expect(rendered.toSorted()).toEqual(names.toSorted())
  })

  test.each(documents.filter(([path]) => isStored(path)))(
    'R6 GET %s is sent compressed to those who accept gzip',
    async (path) => {
      const plain = await ask(site.port, path)
      const gzipped = await bytesOf(path, 'br;q=1.0, gzip;q=0.8')
      expect(gzipped.encoding).toBe('gzip')
      expect(gunzipSync(gzipped.bytes).toString()).toBe(plain.text)
      expect(gzipped.bytes.length).toBeLessThan(plain.text.length / 4)
      for (const refused of ['gzip;q=0', 'identity', '*;q=0'])
        expect((await bytesOf(path, refused)).bytes.toString()).toBe(plain.text)
    },
  )

  /** `fetch` and `ask` would decode it. */
  const bytesOf = (path: string, accepted: string) =>
    new Promise<{ readonly encoding: string | undefined; readonly bytes: Buffer }>((resolve, reject) => {
      get({ port: site.port, host: '127.0.0.1', path, headers: { 'accept-encoding': accepted } }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({ encoding: response.headers['content-encoding'], bytes: Buffer.concat(chunks) }),
        )
      }).on('error', reject)
    })

  test('R6 an address cannot break out of the comment or the page', async () => {
    for (const host of ["localhost'-*/evil", 'localhost"><script>', 'localhost*']) {
      const { text } = await raw(site.port, `GET /metadata HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      expect(text).toMatch(/^HTTP\/1\.1 4(00|21) /)
      // A refusal is JSON, which no browser renders as a page.
      expect(text).toMatch(/^content-type: application\/json/im)
      expect(text).not.toMatch(/<html|\/\* Options:/)
    }
  })

  test('S6 they contain no version of the program, no path and no configuration', async () => {
    for (const [path] of documents) {
      const { text } = await ask(site.port, path)
      expect(text).not.toContain('9.8.7')
      expect(text).not.toMatch(/\/home\/|\/var\/|svc\.yaml|node_modules/)
    }
  })

  test('S6 the page may not load, run or send anything', async () => {
    const got = await ask(site.port, '/metadata')
    const policy = String(got.headers['content-security-policy'])
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'/)
    expect(policy).toContain("form-action 'none'")
    expect(got.text).not.toMatch(/<script|<img|<iframe|<form|\son\w+=|\sstyle=/i)
  })

  test('R6 every link of the page leads somewhere', async () => {
    const { text } = await ask(site.port, '/metadata')
    const links = [...text.matchAll(/href="([^"]+)"/g)].map(([, link = '']) => link)
    expect(links.length).toBeGreaterThan(20)
    const ids = new Set([...text.matchAll(/id="([^"]+)"/g)].map(([, id]) => id))
    for (const link of new Set(links)) {
      if (link.startsWith('#')) expect([link, ids.has(link.slice(1))]).toEqual([link, true])
      else expect([link, (await ask(site.port, link)).status]).toEqual([link, 200])
    }
  })

  test('P7 its examples put no password where other users of the machine can read it', async () => {
    const { text } = await ask(site.port, '/metadata')
    const examples = [...text.matchAll(/<pre>([\s\S]*?)<\/pre>/g)].map(([, output = '']) => output)
    const signIn = examples.find((output) => output.includes('Password')) ?? expect.fail('no example signs in')
    expect(signIn.split('\n')[0]).not.toContain('Password')
  })
})

describe('N8 requests of unmodified clients', () => {
  test('N8 a JSON content type on a GET or HEAD without a body is ignored', async () => {
    for (const method of ['GET', 'HEAD']) {
      const headers = { 'content-type': 'application/json', 'content-length': '0' }
      const got = await ask(site.port, '/healthcheck?ExecutionMode=Basic&ServerType=Sql', { method, headers })
      expect(got.status).toBe(200)
    }
  })

  test('N6 a list in a query is read as the clients write it', async () => {
    for (const query of ['Roles=a%2Cb', 'Roles=a&Roles=b', 'roles=[a,b]']) {
      await ask(site.port, `/api/AssignRoles?UserName=x&${query}`, { method: 'POST' })
      expect(site.calls.at(-1)?.request).toEqual({ UserName: 'x', Roles: ['a', 'b'] })
    }
  })

  test.each(['/api/AssignRoles', '/json/reply/AssignRoles'])('N8 JSON under text/plain is read at %s', async (path) => {
    const headers = { 'content-type': 'text/plain;charset=UTF-8' }
    await ask(site.port, path, { method: 'POST', headers, body: '{"userName":"x","roles":["a"]}' })
    expect(site.calls.at(-1)?.request).toEqual({ UserName: 'x', Roles: ['a'] })
  })
})
