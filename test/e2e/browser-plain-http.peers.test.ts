import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Accounts, password, startAccounts } from '../server/accounts.ts'
import { peerSuite } from '../support/suite/peer.ts'

const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
/** An address of this machine that is not loopback: a request to it also comes from it. */
const address = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address
const missing =
  program === undefined
    ? 'chromium is not installed'
    : address === undefined
      ? 'this machine has no IPv4 address but loopback'
      : undefined

/** The policies with which a page decides what its requests say about it. */
const policies = ['unsafe-url', 'no-referrer'] as const

peerSuite(missing, 'in a real browser, over plain http beyond loopback', () => {
  let browser: Browser
  let at: Accounts
  let evil: Server
  /** The headers of the latest request for /echo, whatever its host. */
  let echoed: IncomingHttpHeaders = {}
  let evilPort: number
  beforeAll(async () => {
    at = await startAccounts({ jsonp: true, allowedHosts: ['svc.example'] }, address)
    evil = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://evil.example')
      if (pathname === '/echo') echoed = request.headers
      response
        .writeHead(200, { 'content-type': 'text/html', 'referrer-policy': searchParams.get('policy') ?? '' })
        .end('<!doctype html><title>elsewhere</title><body></body>')
    }).listen(0, address)
    await once(evil, 'listening')
    evilPort = (evil.address() as AddressInfo).port
    browser = await chromium.launch({
      ...(program === undefined ? {} : { executablePath: program }),
      args: [
        ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
        `--host-resolver-rules=MAP svc.example ${address}, MAP evil.example ${address}, MAP localhost ${address}`,
      ],
    })
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    evil?.close()
    await at?.close()
  })

  const own = (path: string): string => `http://svc.example:${at.port}${path}`
  const evilPage = (policy: string): string => `http://evil.example:${evilPort}/?policy=${policy}`
  const health = '/healthcheck?ExecutionMode=Basic&ServerType=Identity&SuppressErrorCodes=true'

  /** A browser in which Ann is signed in at the server, with cookies as the server sets them. */
  async function signedIn(): Promise<BrowserContext> {
    const context = await browser.newContext()
    const { cookie } = await at.signIn({}, { host: `svc.example:${at.port}` })
    await context.addCookies(
      cookie.split('; ').map((pair) => {
        const [name = '', value = ''] = pair.split('=')
        return { name, value, domain: 'svc.example', path: '/', httpOnly: true, sameSite: 'Lax' as const }
      }),
    )
    return context
  }
  /** Whether that browser is still signed in: its session is valid and its cookie is there. */
  async function isSignedIn(context: BrowserContext): Promise<boolean> {
    const page = await context.newPage()
    await page.goto(own('/auth'))
    const text = await page.locator('body').innerText()
    await page.close()
    return text.includes('"UserName":"Ann"')
  }
  async function atEvil(context: BrowserContext, policy: string): Promise<Page> {
    const page = await context.newPage()
    await page.goto(evilPage(policy))
    return page
  }
  /** Runs a script that ends by calling `done` in the page. */
  const within = (page: Page, script: string): Promise<unknown> => page.evaluate(`new Promise((done) => { ${script} })`)
  const element = (tag: string, members: string, url: string, where = 'body'): string => `
    const one = document.createElement('${tag}')
    ${members.replaceAll('URL', JSON.stringify(url))}
    one.onload = () => done('loaded')
    one.onerror = () => done('refused')
    document.${where}.append(one)`

  test('the browser tells such a server nothing about the requesting page, unlike a server on loopback', async () => {
    const context = await browser.newContext()
    const page = await atEvil(context, 'no-referrer')
    await within(page, element('script', 'one.src = URL', `http://svc.example:${evilPort}/echo`))
    expect(echoed.host).toBe(`svc.example:${evilPort}`)
    expect(Object.keys(echoed).filter((name) => /^(?:sec-fetch|origin|referer)/.test(name))).toEqual([])
    await within(page, element('script', 'one.src = URL', `http://localhost:${evilPort}/echo`))
    expect(echoed['sec-fetch-site']).toBe('cross-site')
    await context.close()
  })

  describe.each(policies)('a foreign page with the referrer policy %s', (policy) => {
    test('S11 reads nothing by JSONP', async () => {
      const context = await signedIn()
      const page = await atEvil(context, policy)
      for (const path of [`${health}&callback=got`, '/server-types?callback=got', '/auth?callback=got']) {
        const read = await within(
          page,
          `window.got = (answer) => done('read: ' + JSON.stringify(answer)); ${element('script', 'one.src = URL', own(path))}`,
        )
        expect([path, read]).toEqual([path, 'refused'])
      }
      await context.close()
    })

    test('S11 reads nothing by fetch, XMLHttpRequest or EventSource', async () => {
      const context = await signedIn()
      const page = await atEvil(context, policy)
      for (const path of [health, `${health}&format=csv`, '/metrics', '/auth', '/', '/server-types']) {
        const url = JSON.stringify(own(path))
        const fetched = `fetch(${url}, { credentials: 'include' }).then((r) => r.text()).then(done, () => done('refused'))`
        const opaque = `fetch(${url}, { mode: 'no-cors' }).then((r) => r.text()).then((text) => done(text || 'refused'), () => done('refused'))`
        const xhr = `const one = new XMLHttpRequest(); one.open('GET', ${url}); one.withCredentials = true
          one.onload = () => done(one.responseText); one.onerror = () => done('refused'); one.send()`
        const events = `const one = new EventSource(${url}, { withCredentials: true })
          one.onmessage = (event) => done(event.data); one.onopen = () => done('open'); one.onerror = () => { one.close(); done('refused') }`
        for (const script of [fetched, opaque, xhr, events]) {
          expect([path, script.slice(0, 20), await within(page, script)]).toEqual([
            path,
            script.slice(0, 20),
            'refused',
          ])
        }
      }
      await context.close()
    })

    test.each([health, '/metrics', '/auth', '/', '/server-types'])(
      'S11 reads nothing of %s by an image, a script, a style sheet or a frame',
      async (path) => {
        const context = await signedIn()
        const page = await atEvil(context, policy)
        expect(await within(page, element('img', 'one.src = URL', own(path)))).toBe('refused')
        expect(await within(page, element('script', 'one.src = URL', own(path)))).toBe('refused')
        const sheet = element('link', "one.rel = 'stylesheet'; one.href = URL", own(path), 'head')
        expect(await within(page, sheet)).toBe('refused')
        // A frame reports `load` for a refusal as well. Neither the page nor a person sees the answer in it.
        await within(page, element('iframe', 'one.src = URL', own(path)))
        expect(await page.evaluate("document.querySelector('iframe').contentDocument")).toBe(null)
        const [, frame] = page.frames()
        expect(await frame?.evaluate('document.body.innerText')).not.toMatch(/Status|UserName|svc_/)
        await context.close()
      },
    )

    test('T6 signs nobody out, by a link, a form, an image, a script, a frame or a fetch', async () => {
      const context = await signedIn()
      for (const path of ['/auth/logout', '/json/reply/Authenticate?provider=logout']) {
        const url = own(path)
        const page = await atEvil(context, policy)
        await within(page, element('img', 'one.src = URL', url))
        await within(page, element('script', 'one.src = URL', url))
        await within(page, element('iframe', 'one.src = URL', url))
        await within(
          page,
          `fetch(${JSON.stringify(url)}, { mode: 'no-cors', credentials: 'include' }).then(done, done)`,
        )
        for (const method of ['get', 'post']) {
          const back = await atEvil(context, policy)
          await back.setContent(
            `<form method="${method}" action="${url}"><input name="provider" value="logout"></form>`,
          )
          await Promise.all([back.waitForNavigation(), back.evaluate('document.forms[0].submit()')])
          expect([path, method, await isSignedIn(context)]).toEqual([path, method, true])
          await back.close()
        }
        await Promise.all([page.waitForNavigation(), page.evaluate(`location.href = ${JSON.stringify(url)}`)])
        expect([path, 'navigation', await isSignedIn(context)]).toEqual([path, 'navigation', true])
        await page.close()
      }
      await context.close()
    })

    test('T6 signs nobody in and changes no roles, by a form of any encoding or a fetch', async () => {
      const context = await browser.newContext()
      const forms = [
        ['/auth/credentials', { UserName: 'Ned', Password: password }],
        ['/auth', { provider: 'credentials', UserName: 'Ned', Password: password }],
        ['/json/reply/Authenticate', { provider: 'credentials', UserName: 'Ned', Password: password }],
      ] as const
      const roles = [['/assignroles', { UserName: 'Ned', Roles: 'Admin' }]] as const
      const ann = await signedIn()
      for (const [path, fields] of [...forms, ...roles]) {
        for (const encoding of ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain']) {
          const victim = path === '/assignroles' ? ann : context
          const page = await atEvil(victim, policy)
          const inputs = Object.entries(fields).map(([name, value]) => `<input name="${name}" value="${value}">`)
          await page.setContent(
            `<form method="post" enctype="${encoding}" action="${own(path)}">${inputs.join('')}</form>`,
          )
          const [answer] = await Promise.all([page.waitForNavigation(), page.evaluate('document.forms[0].submit()')])
          expect([path, encoding, answer?.status()]).toEqual([path, encoding, expect.toBeOneOf([400, 401, 403])])
          const body = JSON.stringify(JSON.stringify(fields))
          const posted = `fetch(${JSON.stringify(own(path))}, { method: 'POST', mode: 'no-cors', credentials: 'include', body: ${body} }).then(done, done)`
          await page.goto(evilPage(policy))
          await within(page, posted)
          await page.close()
        }
      }
      expect(await context.cookies(own('/'))).toEqual([])
      expect((await at.admin.roles.show('Ned')).roles).toEqual([])
      await Promise.all([context.close(), ann.close()])
    })
  })

  test('T6 a page of the server itself signs the user out, by a form and by a link that names it', async () => {
    for (const leave of ['document.forms[0].submit()', 'document.links[0].click()']) {
      const context = await signedIn()
      const page = await context.newPage()
      const body = `<form method="post" action="/auth/logout"></form><a href="/auth/logout">sign out</a>`
      await page.route(own('/page'), (route) => route.fulfill({ contentType: 'text/html', body }))
      await page.goto(own('/page'))
      const [answer] = await Promise.all([page.waitForNavigation(), page.evaluate(leave)])
      expect([leave, answer?.status(), await isSignedIn(context)]).toEqual([leave, 200, false])
      await context.close()
    }
  })

  test('S11 a page of the server itself reads an answer by JSONP', async () => {
    const context = await browser.newContext()
    const page = await context.newPage()
    await page.route(own('/page'), (route) => route.fulfill({ contentType: 'text/html', body: '<body></body>' }))
    await page.goto(own('/page'))
    const script = element('script', 'one.src = URL', own(`${health}&callback=got`))
    expect(await within(page, `window.got = (answer) => done('read: ' + answer.Status); ${script}`)).toBe(
      'read: Success',
    )
    await context.close()
  })
})
