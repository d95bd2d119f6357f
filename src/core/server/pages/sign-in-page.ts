import { Authenticate, AuthenticateResponse, authPurpose } from '../../protocol/index.ts'
import type { ProviderFacts } from '../../protocol/service/service.ts'
import { merge, readBody } from '../../protocol/wire/index.ts'
import type { HttpAnswer } from '../answer.ts'
import { callOf } from '../call.ts'
import { orCancelled, ownOrigin, type RequestContext, type ServerContext } from '../context.ts'
import { presented } from '../credential.ts'
import { html, type Markup, trusted } from '../html.ts'
import { refuseForeignChange } from '../origins.ts'
import { receive } from '../receive.ts'
import { faultAnswer, plainJson, visibleFault } from '../response.ts'
import type { RequestTarget } from '../routes.ts'
import { endedCookies, sessionCookies } from '../sign-in.ts'
import { plainAnswer } from './page.ts'

/**
 * The sign-in form for browsers. A POST signs in, or signs out with the provider `logout`, and redirects to the page of
 * this server that `continue` in the query names.
 */
export async function signInPage(
  server: ServerContext,
  context: RequestContext,
  { pairs }: RequestTarget,
): Promise<HttpAnswer> {
  const target = safeTarget(pairs.find(([name]) => name === 'continue')?.[1])
  if (context.logFields.method !== 'POST') return formAnswer(server, context, { target })
  try {
    const cookies = await signInOrOut(server, context)
    return { status: 303, headers: ['Location', target, ...cookies] }
  } catch (error) {
    // A 401 for a form has no challenge, so that the browser shows no dialog.
    const style = { ...plainJson(server), response: AuthenticateResponse }
    const { status, headers } = await faultAnswer(server, context, error, style)
    const notice = `Nobody is signed in: ${visibleFault(error).message}`
    return { ...formAnswer(server, context, { target, notice }), status, headers }
  }
}

/** The cookies after the sign-in or sign-out. Throws Forbidden if another site's page sent the form (T6). */
async function signInOrOut(server: ServerContext, context: RequestContext): Promise<readonly string[]> {
  const { request } = context
  refuseForeignChange(request, context.caller, ownOrigin(server, context), server.origins)
  const bytes = await orCancelled(context, receive(context, server.options.maxBody))
  const values = merge(await readBody(Authenticate, request.headers['content-type'], bytes)) as Authenticate
  const isSignOut = authPurpose('POST', values) === 'sign-out'
  const { credential } = presented(request.headers, { ambient: true, session: true, basic: false, signed: undefined })
  const call = { ...callOf(context, credential, () => {}), verb: 'POST' as const }
  if (isSignOut) {
    await orCancelled(context, server.service.authenticate({ provider: 'logout' }, call))
    return endedCookies(server, context)
  }
  const { UserName = '', Password = '', RememberMe = false } = values
  const answer: AuthenticateResponse = await orCancelled(
    context,
    server.service.authenticate({ provider: 'credentials', UserName, Password, RememberMe }, call),
  )
  return answer.SessionId === undefined ? [] : sessionCookies(server, context, answer.SessionId, RememberMe)
}

/** The status page or the board, with their queries. Any other target, of this server or of another one, is `/`. */
export function safeTarget(text = '/'): string {
  const here = 'http://here'
  if (!text.startsWith('/') || text.includes('\\') || !URL.canParse(text, here)) return '/'
  const { origin, pathname, search, hash } = new URL(text, here)
  return origin === here && ['/', '/board'].includes(pathname) ? `${pathname}${search}${hash}` : '/'
}

function formAnswer(
  server: ServerContext,
  context: RequestContext,
  { target, notice }: { readonly target: string; readonly notice?: string },
): HttpAnswer {
  const { facts } = server.runtime
  const main = facts.store === undefined ? noAccounts : form(target, facts.providers ?? [])
  return plainAnswer(server, context, main, { title: 'Sign in', place: '/sign-in', notice })
}

const noAccounts = html`<section><p>This server has no store, so it has no users. It shows the details of health to callers on its own machine.</p></section>`

const form = (target: string, providers: readonly ProviderFacts[]): Markup => html`<section class="sign-in">
<form method="post" action="/sign-in?continue=${encodeURIComponent(target)}">
<label for="user">User name</label>
<input id="user" name="UserName" autocomplete="username" autocapitalize="none" spellcheck="false" required${trusted(' autofocus')}>
<label for="password">Password</label>
<input id="password" name="Password" type="password" autocomplete="current-password" required>
<div class="check"><input id="stay" name="RememberMe" type="checkbox" value="true"><label for="stay">Stay signed in, for example on a wall display</label></div>
<button class="main">Sign in</button>
</form>
${providers.length > 0 ? html`<h2>Or</h2>${providers.map(({ name, label }) => html`<p><a href="/auth/${encodeURIComponent(name)}?continue=${encodeURIComponent(target)}">Sign in with ${label ?? name}</a></p>`)}` : undefined}
<p class="muted">To read the details of health, an account needs a role or the permission <code>health</code>.</p>
</section>
`
