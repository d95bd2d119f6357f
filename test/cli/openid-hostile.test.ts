import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { localCall } from '../../src/cli/session/session.ts'
import { listenForCallback } from '../../src/cli/sign-in/openid/callback.ts'
import { pollForTokens, requestDeviceCode } from '../../src/cli/sign-in/openid/device.ts'
import { browserLines, hasBrowser, openBrowser, tokenOfProvider } from '../../src/cli/sign-in/openid/index.ts'
import { discover } from '../../src/cli/sign-in/openid/issuer.ts'
import { Fault } from '../../src/core/base/errors.ts'
import { type Answers, configuration, startSimulatedProvider, unsigned } from '../support/openid/simulated-provider.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const link = { caFile: undefined, userAgent: 'svc/test', env: {} }
const call = localCall(new AbortController().signal)
const providerAt = (issuer: string) => ({ name: 'corp', issuer, clientId: 'svc', scope: 'openid' })

async function simulated(answers: Answers = {}) {
  const provider = await startSimulatedProvider(answers)
  onTestFinished(provider.close)
  return provider
}

/** The fault of a promise that must reject with one. */
async function faultOf(promise: Promise<unknown>): Promise<Fault> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(Fault)
  return error as Fault
}

type Opened = { readonly authorization: URL; readonly redirect: URL; readonly state: string; readonly nonce: string }

/** Begins a sign-in in a browser that the test plays. `said` is what the user is shown. */
async function begin(issuer: string, { opens = true } = {}) {
  const messages: string[] = []
  const stop = new AbortController()
  const token = tokenOfProvider(
    providerAt(issuer),
    {
      link,
      env: opens ? { BROWSER: 'true' } : {},
      platform: 'linux',
      mayOpenBrowser: opens,
      say: (text) => messages.push(text),
    },
    { ...call, signal: stop.signal },
  )
  token.catch(() => {})
  const address = (): string | undefined => /(http:\S+code_challenge=\S+)/.exec(messages.join('\n'))?.[1]
  await until(async () => address() !== undefined)
  const authorization = new URL(address() ?? '')
  const parameter = (name: string): string => authorization.searchParams.get(name) ?? ''
  const opened: Opened = {
    authorization,
    redirect: new URL(parameter('redirect_uri')),
    state: parameter('state'),
    nonce: parameter('nonce'),
  }
  return { token, messages, stop, opened }
}

const callbackOf = ({ redirect }: Opened, parameters: Readonly<Record<string, string>>): string =>
  `${redirect.href}?${new URLSearchParams(parameters)}`

describe('the configuration of a simulated provider', () => {
  test.each([
    [
      'another issuer',
      (issuer: string) => ({ ...configuration(issuer), issuer: 'https://other.example' }),
      /names the issuer https:\/\/other\.example/,
    ],
    ['no token endpoint', (issuer: string) => ({ issuer }), /no usable token endpoint/],
    [
      'a token endpoint of another scheme',
      (issuer: string) => ({ issuer, token_endpoint: 'file:///etc/passwd' }),
      /no usable token endpoint/,
    ],
    [
      'a token endpoint in clear text',
      (issuer: string) => ({ issuer, token_endpoint: 'http://192.0.2.1/token' }),
      /no usable token endpoint/,
    ],
    ['a list', () => [], /no OpenID configuration/],
    ['two megabytes', () => ({ issuer: 'x'.repeat(2_000_000) }), /no OpenID configuration/],
    ['deeply nested lists', () => `${'['.repeat(200_000)}${']'.repeat(200_000)}`, /no OpenID configuration/],
    ['a web page', () => '<!doctype html><title>Welcome</title>', /no OpenID configuration/],
  ])('A13 is refused with %s', async (_, answer, message) => {
    const { issuer, requests } = await simulated({ '/.well-known/openid-configuration': answer })
    const fault = await faultOf(discover(providerAt(issuer), link, call))
    expect(fault.message).toMatch(message)
    expect(fault.exitCode).toBe(8)
    expect(requests).toHaveLength(1)
  })

  test.each(['http://192.0.2.1', 'ftp://127.0.0.1', 'https://user:word@sso.example', 'javascript:alert(1)', 'corp'])(
    'A13 an issuer %s is refused before any request',
    async (issuer) => {
      const fault = await faultOf(discover(providerAt(issuer), link, call))
      expect(fault.message).toMatch(/unusable provider/)
      expect(fault.message).not.toContain('word')
    },
  )

  test('A13 a provider without S256 is not used in the browser', async () => {
    const { issuer } = await simulated({
      '/.well-known/openid-configuration': (issuer) => ({
        issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        code_challenge_methods_supported: ['plain'],
      }),
    })
    const place = { link, env: { BROWSER: 'true' }, platform: 'linux', mayOpenBrowser: true, say: () => {} } as const
    expect((await faultOf(tokenOfProvider(providerAt(issuer), place, call))).message).toMatch(/no way to sign in/)
  })

  test('C2 a provider that refuses connections is exit code 6, and the message is about the provider', async () => {
    const fault = await faultOf(discover(providerAt('http://127.0.0.1:9'), link, call))
    expect(fault.exitCode).toBe(6)
    expect(fault.message).toMatch(/^identity provider: /)
    expect(fault.details.hints?.join('\n')).not.toMatch(/svc serve --port/)
  })
})

describe('the callback of svc login', () => {
  const issuerOf = async (namesItself: boolean) => {
    const { issuer } = await simulated({
      '/.well-known/openid-configuration': (issuer) => ({
        ...configuration(issuer),
        authorization_response_iss_parameter_supported: namesItself,
      }),
      '/token': (issuer) => ({ id_token: unsigned({ iss: issuer, aud: 'svc', nonce }) }),
    })
    return issuer
  }
  let nonce = ''

  test('A13 an answer with another state changes nothing, and the right one counts once', async () => {
    const { issuer, requests } = await simulated({
      '/token': (issuer) => ({ id_token: unsigned({ iss: issuer, aud: 'svc', nonce }) }),
    })
    const { token, opened } = await begin(issuer)
    nonce = opened.nonce
    const { state } = opened
    for (const invalid of ['', 'x', state.slice(1), `${state}x`, state.toUpperCase()]) {
      const response = await fetch(callbackOf(opened, { state: invalid, code: 'of-an-attacker' }))
      expect(response.status).toBe(400)
    }
    expect((await fetch(callbackOf(opened, { code: 'without-state' }))).status).toBe(400)
    expect((await fetch(`${callbackOf(opened, { state, code: 'one' })}&code=two`)).status).toBe(404)
    const both = await Promise.allSettled(
      ['first', 'second'].map((code) => fetch(callbackOf(opened, { state, code })).then(({ status }) => status)),
    )
    expect(both.filter((one) => one.status === 'fulfilled' && one.value === 200)).toHaveLength(1)
    expect(await token).toContain('.')
    const exchanges = requests.filter(({ path }) => path === '/token')
    expect(exchanges).toHaveLength(1)
    expect(['first', 'second']).toContain(exchanges[0]?.form.get('code'))
    expect(exchanges[0]?.form.get('code_verifier')).toMatch(/^[\w-]{43}$/)
    await expect(fetch(callbackOf(opened, { state, code: 'replayed' }))).rejects.toThrow('fetch failed')
  })

  test('A13 programs that hold many connections open keep no browser out: the oldest idle ones are closed', async () => {
    const { issuer } = await simulated({
      '/token': (issuer) => ({ id_token: unsigned({ iss: issuer, aud: 'svc', nonce }) }),
    })
    const { token, opened } = await begin(issuer)
    nonce = opened.nonce
    const sockets = Array.from({ length: 100 }, () => connect(Number(opened.redirect.port), '127.0.0.1'))
    for (const socket of sockets) socket.on('error', () => {})
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
    })

    await Promise.all(sockets.slice(0, 60).map((socket) => once(socket, 'close')))
    expect((await fetch(callbackOf(opened, { state: opened.state, code: 'one' }))).status).toBe(200)
    expect(await token).toContain('.')
  })

  test('A13 only GET /callback by its own address is answered, with a page that repeats nothing', async () => {
    const { issuer } = await simulated()
    const { token, opened, stop } = await begin(issuer)
    const marker = '<script>alert(1)</script>'
    const foreign = await new Promise<number | undefined>((resolve, reject) => {
      request(
        callbackOf(opened, { state: opened.state, code: 'x' }),
        { headers: { host: 'rebound.example' } },
        (answer) => {
          answer.resume()
          resolve(answer.statusCode)
        },
      )
        .once('error', reject)
        .end()
    })
    expect(foreign).toBe(421)
    expect((await fetch(callbackOf(opened, { state: opened.state, code: 'x' }), { method: 'POST' })).status).toBe(405)
    expect((await fetch(new URL('/', opened.redirect))).status).toBe(404)
    const page = await fetch(callbackOf(opened, { state: marker, code: marker, error: marker }))
    expect(await page.text()).not.toContain('alert')
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(page.headers.get('cache-control')).toBe('no-store')
    stop.abort(new Fault('Interrupted'))
    expect((await faultOf(token)).exitCode).toBe(130)
    await expect(fetch(opened.redirect)).rejects.toThrow('fetch failed')
  })

  test.each([
    ['of another issuer', true, { iss: 'https://other.example' }],
    ['of another issuer, although the provider does not name itself,', false, { iss: 'https://other.example' }],
    ['without the issuer of a provider that names itself', true, {}],
  ])('A13 an answer %s is refused, and its code goes nowhere', async (_, namesItself, more) => {
    const issuer = await issuerOf(namesItself)
    const { token, opened } = await begin(issuer)
    await fetch(callbackOf(opened, { state: opened.state, code: 'mixed-up', ...more }))
    const fault = await faultOf(token)
    expect(fault.exitCode).toBe(4)
    expect(fault.message).toMatch(/issuer|other\.example/)
  })

  test('A13 a refusal of the provider is exit code 4, in its own words without terminal escapes', async () => {
    const { issuer } = await simulated()
    const { token, opened } = await begin(issuer)
    const { state } = opened
    const page = await fetch(
      callbackOf(opened, { state, error: 'access_denied', error_description: 'not \u001b[31mtoday\u0007' }),
    )
    expect(await page.text()).toContain('The sign-in failed')
    const fault = await faultOf(token)
    expect(fault.exitCode).toBe(4)
    expect(fault.message).toContain('refuses the sign-in: access_denied (not today)')
  })

  test('A13 listens on 127.0.0.1 only, on another port each time', async () => {
    const issuer = await discover(providerAt((await simulated()).issuer), link, call)
    const make = () => listenForCallback({ state: 's', issuer, clientId: 'svc' }, call.signal)
    const [one, other] = [await make(), await make()]
    expect(one.redirectUri).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)
    expect(one.redirectUri).not.toBe(other.redirectUri)
    await Promise.all([one.close(), other.close()])
  })
})

describe('the tokens of a simulated provider', () => {
  test.each([
    ['of another issuer', { iss: 'https://other.example' }, /its issuer is https:\/\/other\.example/],
    ['without an issuer', { iss: undefined }, /its issuer is/],
    ['for another client', { aud: 'another' }, /for another client/],
    ['issued to another client', { aud: ['svc', 'another'], azp: 'another' }, /issued to another client/],
    ['for two clients, of which it names none', { aud: ['svc', 'another'] }, /issued to another client/],
    ['of another sign-in', { nonce: 'replayed' }, /nonce/],
    ['without a nonce', { nonce: undefined }, /nonce/],
  ])('A13 an ID token %s is not sent to the server', async (_, change, message) => {
    let nonce = ''
    const { issuer } = await simulated({
      '/token': (issuer) => ({ id_token: unsigned({ iss: issuer, aud: 'svc', nonce, ...change }) }),
    })
    const { token, opened } = await begin(issuer)
    nonce = opened.nonce
    await fetch(callbackOf(opened, { state: opened.state, code: 'x' }))
    const fault = await faultOf(token)
    expect(fault.message).toMatch(message)
    expect(fault.exitCode).toBe(4)
  })

  test.each([
    ['is not a JWT', { id_token: 'opaque' }, /not a JSON Web Token/],
    [
      'is an access token of another issuer',
      { access_token: unsigned({ iss: 'https://other.example' }) },
      /its issuer is/,
    ],
    ['contains line breaks', { id_token: 'a\r\nX-Injected: 1' }, /returned no token/],
    ['is missing', {}, /returned no token/],
  ])('A13 a token that %s is not sent to the server', async (_, answer, message) => {
    const { issuer } = await simulated({ '/token': () => answer })
    const { token, opened } = await begin(issuer)
    await fetch(callbackOf(opened, { state: opened.state, code: 'x' }))
    expect((await faultOf(token)).message).toMatch(message)
  })

  test('A13 a provider that requires a secret of the client is exit code 4, with what it must allow', async () => {
    const { issuer } = await simulated({ '/token': () => ({ error: 'invalid_client' }) })
    const { token, opened } = await begin(issuer)
    await fetch(callbackOf(opened, { state: opened.state, code: 'x' }))
    const fault = await faultOf(token)
    expect(fault.exitCode).toBe(4)
    expect(fault.details.hints?.join()).toMatch(/public client .*http:\/\/127\.0\.0\.1\/callback/)
  })
})

describe('a device code of a simulated provider', () => {
  const code =
    (more: Readonly<Record<string, unknown>> = {}) =>
    (issuer: string) => ({
      device_code: 'device-secret',
      user_code: 'ABCD-EFGH',
      verification_uri: `${issuer}/device`,
      expires_in: 100,
      interval: 2,
      ...more,
    })

  /** Asks as svc login does, with a clock that does not wait. Returns the pauses in seconds. */
  async function poll(answers: readonly unknown[], more: Readonly<Record<string, unknown>> = {}) {
    const left = [...answers]
    const provider = await simulated({
      '/device/auth': code(more),
      '/token': () => (left.length > 1 ? left.shift() : left[0]),
    })
    const issuer = await discover(providerAt(provider.issuer), link, call)
    const pauses: number[] = []
    const at = issuer.deviceAuthorization
    if (!at) throw new Error('no device endpoint')
    const device = await requestDeviceCode(issuer, at, providerAt(provider.issuer), link, call)
    const result = pollForTokens(issuer, device, providerAt(provider.issuer), link, call, async (ms) => {
      pauses.push(ms / 1_000)
    })
    result.catch(() => {})
    return { provider, result, pauses, device }
  }
  const pending = { error: 'authorization_pending' }

  test('A13 svc waits as long as the provider says, and longer after each slow_down', async () => {
    const { result, pauses } = await poll([pending, { error: 'slow_down' }, pending, { access_token: 'opaque' }])
    expect(await result).toMatchObject({ accessToken: 'opaque' })
    expect(pauses).toEqual([2, 2, 7, 7])
  })

  test.each([
    [{ interval: 0 }, 1],
    [{ interval: 1e9 }, 60],
    [{ interval: 'now' }, 5],
    [{ interval: undefined }, 5],
  ])('A13 an interval of %o is bounded', async (more, seconds) => {
    const { result, pauses } = await poll([{ access_token: 'opaque' }], more)
    await result
    expect(pauses).toEqual([seconds])
  })

  test.each([
    ['access_denied', 4, /declined/],
    ['expired_token', 7, /has expired/],
    ['invalid_grant', 4, /refuses the sign-in: invalid_grant/],
  ])('A13 %s ends the sign-in with exit code %i', async (error, exit, message) => {
    const { result, provider } = await poll([pending, { error }])
    const fault = await faultOf(result)
    expect(fault.exitCode).toBe(exit)
    expect(fault.message).toMatch(message)
    expect(fault.message).not.toContain('device-secret')
    expect(provider.requests.filter(({ path }) => path === '/token')).toHaveLength(2)
  })

  test('A13 svc stops asking when the code has expired', async () => {
    const { result, pauses } = await poll([pending], { expires_in: 10 })
    expect((await faultOf(result)).exitCode).toBe(7)
    expect(pauses).toHaveLength(5)
  })

  test.each([
    'javascript:alert(1)',
    'http://192.0.2.1/device',
    'file:///etc/passwd',
    'https://user:word@sso.example/device',
    '',
  ])('A13 a verification address %s is refused', async (verification_uri) => {
    const { issuer } = await simulated({ '/device/auth': code({ verification_uri }) })
    const place = { link, env: {}, platform: 'linux', mayOpenBrowser: true, say: () => {} } as const
    expect((await faultOf(tokenOfProvider(providerAt(issuer), place, call))).message).toMatch(/no usable device code/)
  })

  test('K6 the address and the code are shown without terminal escapes', async () => {
    const { issuer } = await simulated({
      '/device/auth': code({
        user_code: 'AB\u001b]0;owned\u0007CD\r\n\u202eEF',
        verification_uri: 'https://sso.example/\u001b[2Jdevice',
        verification_uri_complete: 'javascript:alert(1)',
      }),
      '/token': () => ({ error: 'access_denied' }),
    })
    const messages: string[] = []
    const place = { link, env: {}, platform: 'linux', mayOpenBrowser: true, say: (text: string) => messages.push(text) }
    await faultOf(tokenOfProvider(providerAt(issuer), { ...place, platform: 'linux' }, call))
    const text = messages.join('\n')
    expect(text).toContain('enter the code ABCD EF')
    expect(text).toContain('https://sso.example/%1B[2Jdevice')
    expect(text).not.toMatch(/[\u001b\u0007\r\u202e]|javascript/)
  })

  test('A13 without device codes, svc prints the address of the browser and says so', async () => {
    const { issuer } = await simulated({
      '/.well-known/openid-configuration': (issuer) => ({
        ...configuration(issuer),
        device_authorization_endpoint: undefined,
      }),
    })
    const { token, messages, stop } = await begin(issuer, { opens: false })
    expect(messages.join()).toMatch(/offers no codes for other devices.*forward port \d+/s)
    stop.abort(new Fault('Interrupted'))
    await faultOf(token)
  })
})

describe('the browser of svc login', () => {
  test.each([
    [{}, 'linux', false],
    [{ DISPLAY: ':0' }, 'linux', true],
    [{ WAYLAND_DISPLAY: 'wayland-0' }, 'linux', true],
    [{ DISPLAY: ':10', SSH_CONNECTION: '192.0.2.1 1 192.0.2.2 22' }, 'linux', false],
    [{ SSH_TTY: '/dev/pts/0' }, 'darwin', false],
    [{ SSH_TTY: '/dev/pts/0', BROWSER: 'code-open' }, 'linux', true],
    [{}, 'darwin', true],
    [{}, 'win32', true],
  ] as const)('A13 with %o on %s there is one: %s', (env, platform, expected) => {
    expect(hasBrowser(env, platform)).toBe(expected)
  })

  test('A13 BROWSER names programs and where the address stands; else the platform decides', () => {
    const url = 'https://sso.example/auth?a=1&b=2'
    expect(browserLines(url, { BROWSER: 'firefox --new-tab %s:lynx' }, 'linux')).toEqual([
      ['firefox', '--new-tab', url],
      ['lynx', url],
    ])
    expect(browserLines(url, {}, 'linux')).toEqual([['xdg-open', url]])
    expect(browserLines(url, {}, 'darwin')).toEqual([['open', url]])
    expect(browserLines(url, {}, 'win32')).toEqual([['rundll32', 'url.dll,FileProtocolHandler', url]])
  })

  test('A13 no shell sees the address', async () => {
    const folder = temporaryFolder()
    const script = join(folder, 'browser.mjs')
    writeFileSync(
      script,
      `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(join(folder, 'seen'))}, JSON.stringify(process.argv.slice(2)))`,
    )
    const url = new URL(`https://sso.example/$(touch\${IFS}${folder}/owned);\`id\`?a=1&b='2'`)
    expect(await openBrowser(url, { PATH: process.env['PATH'], BROWSER: `${process.execPath} ${script}` })).toBe(true)
    expect(JSON.parse(readFileSync(join(folder, 'seen'), 'utf8'))).toEqual([url.href])
    expect(existsSync(join(folder, 'owned'))).toBe(false)
  })

  test('A13 the next program of BROWSER is tried when one is missing or fails', async () => {
    const url = new URL('https://sso.example/')
    const env = { PATH: process.env['PATH'] }
    expect(await openBrowser(url, { ...env, BROWSER: 'no-such-browser:false:true' })).toBe(true)
    expect(await openBrowser(url, { ...env, BROWSER: 'no-such-browser:false' })).toBe(false)
  })
})
