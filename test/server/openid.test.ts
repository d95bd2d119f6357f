import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { Secret } from '../../src/core/base/settings/index.ts'
import type { Config } from '../../src/core/config/index.ts'
import { serveDefaults } from '../../src/core/protocol/service/service.ts'
import type { RunningServer } from '../../src/core/server/index.ts'
import { testCore, testServer } from '../support/engine/core.ts'
import { clientId, clientSecret, erin, type OpenIdServer, startOpenId } from '../support/openid/provider.ts'
import { adminOver, type TestAdmin } from '../support/store/admin.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { ask, type Got } from './site.ts'

const folder = temporaryFolder()
/** The name under which people know both nodes. */
const host = 'svc.example.org'
const home = `http://${host}`

type Node = { readonly port: number; readonly admin: TestAdmin; readonly stop: () => Promise<void> }

async function startNode(auth: Config['auth'], store = join(folder, 'svc.db')): Promise<Node> {
  const { service, runtime } = await testCore({
    config: { origin: undefined, types: {}, serve: { ...serveDefaults }, warnings: [], ...(auth ? { auth } : {}) },
    store,
  })
  const admin = adminOver(service)
  const server: RunningServer = await testServer({
    service,
    runtime,
    options: { ...serveDefaults, allowedHosts: [host] },
    limits: { lingerMs: 200, drainDelayMs: 0, quietMs: 100 },
  })
  const stop = async (): Promise<void> => {
    await server.stop()
    await runtime.close()
  }
  return { port: server.port, admin, stop }
}

/** A browser without a screen: it keeps cookies by origin, and follows no redirect by itself. */
class Browser {
  readonly jars = new Map<string, Map<string, string>>()

  async get(url: string, node: Node, headers: Record<string, string> = {}): Promise<Got> {
    const { host: name, origin, port, pathname, search } = new URL(url)
    const jar = this.jars.get(origin) ?? new Map<string, string>()
    this.jars.set(origin, jar)
    const cookie = [...jar].map(([key, value]) => `${key}=${value}`).join('; ')
    const got = await ask(name === host ? node.port : Number(port), `${pathname}${search}`, {
      headers: { host: name, accept: 'text/html,*/*;q=0.8', ...(cookie === '' ? {} : { cookie }), ...headers },
    })
    for (const line of got.headers['set-cookie'] ?? []) {
      const [, key = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '' || /max-age=0|expires=thu, 01 jan 1970/i.test(line)) jar.delete(key)
      else jar.set(key, value)
    }
    return got
  }

  cookies(): ReadonlyMap<string, string> {
    return this.jars.get(home) ?? new Map()
  }

  /** Follows redirects until the provider sends the browser back; returns that address. */
  async atProvider(first: Got, node: Node): Promise<string> {
    let url = new URL(first.headers.location ?? '', provider.issuer).href
    while (!url.startsWith(home)) {
      const got = await this.get(url, node)
      if (got.headers.location === undefined) throw new Error(`${url} answered ${got.status}: ${got.text}`)
      url = new URL(got.headers.location, url).href
    }
    return url
  }
}

let provider: OpenIdServer
let one: Node
let two: Node
const corp = (): Config['auth'] => ({
  digest: false,
  digestMd5: true,
  openid: [
    {
      name: 'corp',
      issuer: provider.issuer,
      clientId,
      clientSecret: new Secret('the test', async () => clientSecret),
      scope: 'openid profile email',
      label: 'Example Corp',
      roles: { claim: 'groups', map: { 'ops-admins': 'Admin' } },
      tolerance: 60_000,
    },
  ],
})
beforeAll(async () => {
  provider = await startOpenId()
  provider.allow([`${home}/auth/corp`])
  one = await startNode(corp())
  two = await startNode(corp())
})
beforeEach(() => {
  provider.signsIn = erin
  provider.intercept = undefined
})
afterAll(async () => {
  await one.stop()
  await two.stop()
  await provider.close()
})

const lastReason = async (): Promise<string | undefined> => (await one.admin.audit.list({ limit: 1 }))[0]?.reason

describe('A13 a browser signs in by redirects', () => {
  test('A13 it leaves with state, nonce and PKCE, and arrives with a session', async () => {
    const browser = new Browser()
    const left = await browser.get(`${home}/auth/corp`, one)
    expect(left.status).toBe(302)
    const request = new URL(left.headers.location ?? '')
    expect(request.origin).toBe(provider.issuer)
    expect(Object.fromEntries(request.searchParams)).toEqual({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: `${home}/auth/corp`,
      scope: 'openid profile email',
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    })
    expect(left.headers['set-cookie']).toEqual([
      expect.stringMatching(/^svc-openid=[\w-]+; Path=\/; Max-Age=660; HttpOnly; SameSite=Lax$/),
    ])
    const back = await browser.atProvider(left, one)
    const arrived = await browser.get(back, one)
    expect([arrived.status, arrived.headers.location]).toEqual([302, `${home}/`])
    expect([...browser.cookies().keys()]).toEqual(['ss-id', 'ss-opt'])
    const who = await browser.get(`${home}/auth`, one, { accept: 'application/json' })
    expect(who.json).toMatchObject({ UserName: 'erin', Roles: ['Admin'] })
    expect((await browser.get(`${home}/`, one)).text).toContain('signed in as erin by corp')
    const [entry] = await one.admin.audit.list({ limit: 1 })
    expect(entry).toMatchObject({ event: 'signin.ok', target: 'erin' })
    const out = await browser.get(`${home}/auth/logout`, one, { 'sec-fetch-site': 'same-origin' })
    expect(out.status).toBe(200)
    expect((await browser.get(`${home}/auth`, one)).status).toBe(401)
  })

  test('A13 it may leave from one node and arrive at another', async () => {
    const browser = new Browser()
    const back = await browser.atProvider(await browser.get(`${home}/auth/corp`, one), one)
    expect((await browser.get(back, two)).status).toBe(302)
    expect((await browser.get(`${home}/auth`, one, { accept: 'application/json' })).json['UserName']).toBe('erin')
  })

  test('A13 it arrives at the page that it asked for, and stays signed in if it asked for that', async () => {
    const browser = new Browser()
    const left = await browser.get(`${home}/auth/corp?continue=/metadata&RememberMe=true`, one)
    const arrived = await browser.get(await browser.atProvider(left, one), one)
    expect(arrived.headers.location).toBe(`${home}/metadata`)
    expect([...browser.cookies().keys()]).toEqual(['ss-pid', 'ss-opt'])
  })

  test.for(['https://evil.example/', '//evil.example/', '/\\evil.example/', 'javascript:alert(1)'])(
    'A14 it is not sent to %s',
    async (url) => {
      const got = await new Browser().get(`${home}/auth/corp?continue=${encodeURIComponent(url)}`, one)
      expect([got.status, got.headers.location]).toEqual([400, undefined])
    },
  )

  test('A13 a client that accepts JSON is redirected as well, and HEAD begins nothing', async () => {
    const got = await new Browser().get(`${home}/auth/corp`, one, { accept: 'application/json' })
    expect(got.status).toBe(302)
    expect((await ask(one.port, '/auth/corp', { method: 'HEAD' })).status).toBe(405)
  })
})

/** A browser that is about to come back, with the address that the provider sent it to. */
async function aboutToArrive(): Promise<{ readonly browser: Browser; readonly back: URL }> {
  const browser = new Browser()
  return { browser, back: new URL(await browser.atProvider(await browser.get(`${home}/auth/corp`, one), one)) }
}

/** The answer to a refused sign-in: a page that contains nothing of the request. */
function expectRefused(got: Got): void {
  expect(got.status).toBe(401)
  expect(got.headers['content-type']).toBe('text/html; charset=utf-8')
  expect(got.text).toContain('The sign-in was refused')
  expect((got.headers['set-cookie'] ?? []).join()).not.toContain('ss-id=svc_')
}

describe('A13 a browser sign-in that somebody has tampered with is refused', () => {
  test('A13 a replayed answer of the provider is refused, also by another node', async () => {
    const { browser, back } = await aboutToArrive()
    const cookies = new Map(browser.cookies())
    expect((await browser.get(back.href, one)).status).toBe(302)
    for (const node of [one, two]) {
      const again = new Browser()
      again.jars.set(home, new Map(cookies))
      expectRefused(await again.get(back.href, node))
      expect(await lastReason()).toBe('corp: state was used before')
    }
  })

  test('A13 of parallel arrivals with one state, one signs in', async () => {
    const { browser, back } = await aboutToArrive()
    const cookies = new Map(browser.cookies())
    const statuses = await Promise.all(
      [one, two, one, two].map(async (node) => {
        const each = new Browser()
        each.jars.set(home, new Map(cookies))
        return (await each.get(back.href, node)).status
      }),
    )
    expect(statuses.sort()).toEqual([302, 401, 401, 401])
  })

  test('A13 a replayed code with a new state is refused', async () => {
    const first = await aboutToArrive()
    expect((await first.browser.get(first.back.href, one)).status).toBe(302)
    const second = await aboutToArrive()
    second.back.searchParams.set('code', first.back.searchParams.get('code') ?? '')
    expectRefused(await second.browser.get(second.back.href, one))
    expect(await lastReason()).toContain('the provider did not accept the code')
  })

  test('A13 another browser cannot finish a sign-in (no cookie)', async () => {
    const { back } = await aboutToArrive()
    expectRefused(await new Browser().get(back.href, one))
    expect(await lastReason()).toContain('the browser did not begin this sign-in here')
  })

  test('A13 the state of another sign-in is refused', async () => {
    const [mine, theirs] = [await aboutToArrive(), await aboutToArrive()]
    expectRefused(await mine.browser.get(theirs.back.href, one))
    expect(await lastReason()).toContain('state is not that of this browser')
  })

  test('A13 a changed cookie is refused', async () => {
    const { browser, back } = await aboutToArrive()
    const sealed = browser.cookies().get('svc-openid') ?? ''
    browser.jars.get(home)?.set('svc-openid', `${sealed.slice(0, -4)}AAAA`)
    expectRefused(await browser.get(back.href, one))
  })

  test('A13 an ID token with another nonce is refused', async () => {
    const { browser, back } = await aboutToArrive()
    const foreign = await provider.sign({ nonce: 'another' })
    provider.intercept = (request, response) => {
      if (!request.url?.startsWith('/token')) return false
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify({ id_token: foreign, token_type: 'Bearer' }))
      return true
    }
    expectRefused(await browser.get(back.href, one))
    expect(await lastReason()).toContain('nonce is not that of this sign-in')
  })

  test('A13 an answer that names another issuer is refused before the code is sent', async () => {
    const { browser, back } = await aboutToArrive()
    back.searchParams.set('iss', 'https://evil.example')
    const before = provider.requests.length
    expectRefused(await browser.get(back.href, one))
    expect(await lastReason()).toContain('does not name the issuer')
    expect(provider.requests.slice(before)).toEqual([])
  })

  test('A13 an error of the provider is not shown, whatever its text contains', async () => {
    const { browser, back } = await aboutToArrive()
    back.searchParams.delete('code')
    back.searchParams.set('error', '<script>alert(1)</script>')
    back.searchParams.set('error_description', '<img src=x onerror=alert(1)>')
    const got = await browser.get(back.href, one)
    expectRefused(got)
    expect(got.text).not.toMatch(/alert|onerror/)
    expect(await lastReason()).toBe('corp: the provider refused the sign-in (unknown error)')
  })

  test('A13 a refusal by the person is a 401', async () => {
    const { browser, back } = await aboutToArrive()
    back.searchParams.delete('code')
    back.searchParams.set('error', 'access_denied')
    expectRefused(await browser.get(back.href, one))
    expect(await lastReason()).toContain('access_denied')
  })
})

describe('A13 opaque tokens, metadata, and what is off', () => {
  /** An opaque access token of a browser sign-in, taken from the answer to the server. */
  async function accessToken(): Promise<string> {
    const callback = `${home}/auth/corp`
    const browser = new Browser()
    const verifier = 'v'.repeat(43)
    const challenge = Buffer.from(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))).toString(
      'base64url',
    )
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: callback,
      scope: 'openid profile',
      state: 's',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    })
    const back = new URL(await browser.atProvider(await browser.get(`${provider.issuer}/auth?${query}`, one), one))
    const form = new URLSearchParams({
      grant_type: 'authorization_code',
      code: back.searchParams.get('code') ?? '',
      redirect_uri: callback,
      code_verifier: verifier,
    })
    const encoded = [clientId, clientSecret].map((part) => encodeURIComponent(part)).join(':')
    const answer = await fetch(`${provider.issuer}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(encoded).toString('base64')}` },
      body: form,
    })
    return ((await answer.json()) as { access_token: string }).access_token
  }
  const post = (token: string) =>
    ask(one.port, '/auth/corp', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ AccessToken: token }),
    })

  test('A13 an opaque access token signs in by introspection, until the provider has ended it', async () => {
    const token = await accessToken()
    expect(token).not.toContain('.')
    const got = await post(token)
    expect([got.status, got.json['UserName']]).toEqual([200, 'erin'])
    const encoded = [clientId, clientSecret].map((part) => encodeURIComponent(part)).join(':')
    await fetch(`${provider.issuer}/token/revocation`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(encoded).toString('base64')}` },
      body: new URLSearchParams({ token }),
    })
    expect((await post(token)).status).toBe(401)
    expect(await lastReason()).toContain('not active')
  })

  test('T7 an opaque token of another client, and one that is not a bearer token, are refused', async () => {
    const answers = [
      { active: true, sub: 'erin-1', client_id: 'another-service', token_type: 'Bearer' },
      { active: true, sub: 'erin-1', client_id: clientId },
      { active: true, sub: 'erin-1', client_id: clientId, token_type: 'DPoP', cnf: { jkt: 'AAAA' } },
      { active: true, sub: 'erin-1', client_id: clientId, token_type: 'Bearer', iss: 'https://evil.example' },
      { active: true, sub: clientId, client_id: clientId, token_type: 'Bearer' },
      { active: 'true', sub: 'erin-1', client_id: clientId, token_type: 'Bearer' },
    ]
    for (const answer of answers) {
      provider.intercept = (request, response) => {
        if (!request.url?.startsWith('/token/introspection')) return false
        response.end(JSON.stringify(answer))
        return true
      }
      expect((await post('opaque')).status).toBe(401)
    }
    expect((await post('an opaque token\r\nX: y')).status).toBe(401)
  })

  test('A13 /metadata/app.json lists the provider, and nothing secret', async () => {
    const got = await ask(one.port, '/metadata/app.json')
    const { plugins } = got.json as { plugins?: { auth: { authProviders: unknown } } }
    expect(plugins?.auth.authProviders).toEqual([
      { name: 'credentials', type: 'credentials' },
      {
        name: 'corp',
        type: 'openid',
        label: 'Example Corp',
        meta: { issuer: provider.issuer, clientId, scope: 'openid profile email' },
      },
    ])
    expect(got.text).not.toContain(clientSecret)
  })

  test('A13 where no provider is turned on, its routes are a 404 and the metadata lists none', async () => {
    const node = await startNode(undefined, join(folder, 'other.db'))
    onTestFinished(() => node.stop())

    const answers = [await ask(node.port, '/auth/corp'), await ask(node.port, '/auth/corp', { method: 'POST' })]
    for (const { status, json } of answers) {
      expect(status).toBe(404)
      expect(json.ResponseStatus?.Message).toBe("No configuration was added for OAuth provider 'corp'")
    }
    const { plugins } = (await ask(node.port, '/metadata/app.json')).json as {
      plugins?: { auth: { authProviders: unknown } }
    }
    expect(plugins?.auth.authProviders).toEqual([{ name: 'credentials', type: 'credentials' }])
  })

  test('A13 while the provider is down, a browser gets a page with the status 503', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => closed.once('listening', resolve))
    const { port } = closed.address() as AddressInfo
    await new Promise((resolve) => closed.close(resolve))
    const config = corp()
    const [first] = config?.openid ?? []
    if (!config || !first) throw new Error('there is no provider')
    const down: Config['auth'] = { ...config, openid: [{ ...first, issuer: `http://127.0.0.1:${port}` }] }
    const node = await startNode(down, join(folder, 'down.db'))
    onTestFinished(() => node.stop())

    const got = await new Browser().get(`${home}/auth/corp`, node)
    expect([got.status, got.headers['retry-after']]).toEqual([503, '10'])
    expect(got.text).toContain('does not answer')
  })
})
