import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { delimiter } from 'node:path'
import { Fault } from '../../../core/base/errors.ts'
import type { Call } from '../../../core/protocol/service/service.ts'
import type { ProcessEnvironment } from '../../io/io.ts'
import { machine } from '../../io/process.ts'
import { listenForCallback } from './callback.ts'
import { pollForTokens, requestDeviceCode } from './device.ts'
import { type DiscoveredProvider, discover, type ProviderLink, printable } from './issuer.ts'
import type { OpenIdProvider } from './server-providers.ts'
import { requestTokens, tokenToSend } from './tokens.ts'

type Line = readonly [program: string, ...args: readonly string[]]

const isSet = (env: ProcessEnvironment, name: string): boolean => (env[name] ?? '') !== ''

/** Whether a browser on this machine can be expected to open in front of the user. */
export function hasBrowser(env: ProcessEnvironment, platform: NodeJS.Platform): boolean {
  if (isSet(env, 'BROWSER')) return true
  if (['SSH_CONNECTION', 'SSH_CLIENT', 'SSH_TTY'].some((name) => isSet(env, name))) return false
  return platform === 'darwin' || platform === 'win32' || isSet(env, 'DISPLAY') || isSet(env, 'WAYLAND_DISPLAY')
}

/**
 * The command lines that open an address, in the order to try: those of BROWSER (`firefox %s:lynx`), else that of the
 * platform. They run without a shell.
 */
export function browserLines(url: string, env: ProcessEnvironment, platform: NodeJS.Platform): readonly Line[] {
  const own = (env['BROWSER'] ?? '').split(delimiter).flatMap((entry): readonly Line[] => {
    const [program, ...args] = entry.split(' ').filter((word) => word !== '')
    if (program === undefined) return []
    const filled = args.map((word) => word.replaceAll('%s', () => url))
    return [args.some((word) => word.includes('%s')) ? [program, ...filled] : [program, ...args, url]]
  })
  if (own.length > 0) return own
  if (platform === 'darwin') return [['open', url]]
  if (platform === 'win32') return [['rundll32', 'url.dll,FileProtocolHandler', url]]
  return [['xdg-open', url]]
}

/** Milliseconds after which a program that still runs counts as a browser. */
const settledMs = 1_500

/** Opens an http or https address in a browser. Returns whether one started. */
export async function openBrowser(
  url: URL,
  env: ProcessEnvironment,
  platform: NodeJS.Platform = machine.platform,
): Promise<boolean> {
  for (const line of browserLines(url.href, env, platform)) if (await starts(line, env)) return true
  return false
}

function starts([program, ...args]: Line, env: ProcessEnvironment): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  // Its own process group: ctrl-C in the terminal must not end the browser.
  const child = spawn(program, args, { env: { ...env }, stdio: 'ignore', detached: true, shell: false })
  const timer = setTimeout(() => resolve(true), settledMs)
  child.once('error', () => resolve(false))
  child.once('exit', (code) => resolve(code === 0))
  child.unref()
  return promise.finally(() => clearTimeout(timer))
}

export { chooseProvider, type OpenIdProvider, type ProviderChoice } from './server-providers.ts'

export type SignInPlace = {
  readonly link: ProviderLink
  readonly env: ProcessEnvironment
  readonly platform: NodeJS.Platform
  /** False with --no-browser. */
  readonly mayOpenBrowser: boolean
  /** Shows lines to the user. */
  readonly say: (text: string) => void
}

/** Milliseconds that the user has to sign in. */
const patience = 5 * 60_000

/**
 * Signs the user in at an OpenID provider, in the browser of this machine or, without one, with a device code in any
 * other. Returns the token to send to svc's server. svc is a public client there, and keeps none of its tokens.
 */
export async function tokenOfProvider(provider: OpenIdProvider, place: SignInPlace, call: Call): Promise<string> {
  const issuer = await discover(provider, place.link, call)
  const opens = place.mayOpenBrowser && hasBrowser(place.env, place.platform)
  const { authorization, deviceAuthorization } = issuer
  if (deviceAuthorization && (!opens || !authorization)) {
    return await byDeviceCode(provider, issuer, deviceAuthorization, place, call)
  }
  if (authorization) return await byBrowser(provider, issuer, authorization, opens, place, call)
  throw new Fault('ServerError', `${printable(provider.issuer)} offers svc no way to sign in`, {
    hints: ['It needs an authorization endpoint with PKCE (S256), or a device authorization endpoint.'],
  })
}

const random = (): string => randomBytes(32).toString('base64url')

/** The authorization code flow with PKCE and a callback on this machine (RFC 8252, RFC 7636). */
async function byBrowser(
  provider: OpenIdProvider,
  issuer: DiscoveredProvider,
  authorization: URL,
  opens: boolean,
  { link, env, platform, say }: SignInPlace,
  call: Call,
): Promise<string> {
  const { clientId, scope } = provider
  const [state, nonce, verifier] = [random(), random(), random()]
  const callback = await listenForCallback({ state, issuer, clientId }, call.signal)
  try {
    const { redirectUri } = callback
    const url = new URL(authorization)
    const parameters = {
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      scope,
      state,
      nonce,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    }
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
    say(
      opens
        ? `Sign in at ${printable(provider.issuer)} in the browser. If none opens, open this address on this machine:\n\n  ${url.href}\n`
        : `${printable(provider.issuer)} offers no codes for other devices. Open this address in a browser on this machine,\nor forward port ${new URL(redirectUri).port} of 127.0.0.1 to this machine first (ssh -L):\n\n  ${url.href}\n`,
    )
    if (opens && !(await openBrowser(url, env, platform))) say('No browser started: open the address yourself.')
    const code = await inTime(callback.code, provider.issuer, call.signal)
    const form = {
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      client_id: clientId,
      code_verifier: verifier,
    }
    const answer = await requestTokens(issuer, form, link, call)
    if ('error' in answer) throw answer.refused
    return tokenToSend(answer, provider, nonce)
  } finally {
    await callback.close()
  }
}

/** The device authorization flow (RFC 8628). */
async function byDeviceCode(
  provider: OpenIdProvider,
  issuer: DiscoveredProvider,
  at: URL,
  { link, say }: SignInPlace,
  call: Call,
): Promise<string> {
  const device = await requestDeviceCode(issuer, at, provider, link, call)
  const { verification, complete, userCode } = device
  say(
    [
      `Open this address in a browser on any device, and enter the code ${userCode}:`,
      '',
      `  ${verification.href}`,
      ...(complete ? ['', 'Or open this one, and compare the code:', '', `  ${complete.href}`] : []),
      '',
      'Waiting …',
    ].join('\n'),
  )
  return tokenToSend(await pollForTokens(issuer, device, provider, link, call), provider, undefined)
}

/** Rejects when the user takes too long, or at ctrl-C. */
async function inTime<T>(answer: Promise<T>, issuer: string, signal: AbortSignal): Promise<T> {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const late = setTimeout(() => {
    const minutes = patience / 60_000
    reject(
      new Fault('Timeout', `nobody signed in at ${printable(issuer)} within ${minutes} minutes`, {
        hints: ['Run svc login again. Without a browser on this machine: --no-browser'],
      }),
    )
  }, patience)
  const abort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    return await Promise.race([answer, ended])
  } finally {
    clearTimeout(late)
    signal.removeEventListener('abort', abort)
  }
}
