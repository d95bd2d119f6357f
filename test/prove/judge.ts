import { operationAt, valid } from '../support/wire/openapi.ts'
import { type Answer, headerOf } from './answers.ts'
import { type Secrets, tokensIn } from './secrets.ts'

export type Judged = {
  /** As what it is answered, which is another verb than that of the first line only where R4 allows it. */
  readonly method: string
  /** Whether the answer may have a body. */
  readonly bodiless: boolean
  /** Undefined where the request cannot be determined. */
  readonly target: string | undefined
  /** The request as it was sent, for what it presents of itself. */
  readonly sent: string
  readonly answer: Answer
}

const always: Readonly<Record<string, RegExp>> = {
  'x-correlation-id': /^[\w.:-]{1,128}$/,
  vary: /^Accept$/,
  'cache-control': /^no-store$/,
  'x-content-type-options': /^nosniff$/,
  'content-security-policy': /^default-src 'none'; (?:.*; )?frame-ancestors 'none'(?:;|$)/,
  'referrer-policy': /^no-referrer$/,
  date: /GMT$/,
  'content-length': /^\d+$/,
}
const stack = /\n\s*at \S+ \(|node:internal|\.[cm]?[jt]s:\d+:\d+|node_modules|SQLITE_|SELECT |INSERT INTO/

/** Whether it is a document that is stored once, as it is and gzipped (F4). */
const isDocument = (target: string): boolean => documents.has(operationAt('GET', target)?.operationId ?? '')
const documents = new Set(['getOpenapiJson', 'getOpenapiAllJson', 'getMetadataAppJson', 'getMetadataApp'])

/** The page shows what the checks report, with its refusals too (S12). */
const isStatusPage = (target: string, contentType: string | undefined): boolean =>
  /^\/(?:\?|$)/.test(target) && contentType?.startsWith('text/html') === true

/** Throws an Error that says what is wrong with an answer, whatever was asked. */
export function evaluate(
  { method, bodiless, target, sent, answer }: Judged,
  secrets: Secrets,
  folders: readonly string[],
): void {
  const { status, headers, body } = answer
  const whole = written(headers, body)
  const problems = (what: string): Error =>
    new Error(`${method} ${target?.slice(0, 120)} ${status}: ${what}\n${whole.slice(0, 1_500)}`)

  const isStored = status === 200 && method !== 'OPTIONS' && (target === undefined || isDocument(target))
  for (const [name, form] of Object.entries(always)) {
    const values = headers.flatMap(([written, value]) => (written.toLowerCase() === name ? [value] : []))
    const [first = '', ...others] = values
    // An answer to an unknown request may be such a document.
    const isOther = !isStored || (target === undefined && others.length === 0)
    const more = name === 'vary' && !isOther ? ['Accept-Encoding'] : []
    if (!form.test(first) || others.join() !== more.join())
      throw problems(`F4 S6 the header ${name} is ${values.join(' | ')}`)
  }
  for (const header of ['x-powered-by', 'server'])
    if (headerOf(answer, header) !== undefined) throw problems(`F4 it says ${header}`)
  const contentType = headerOf(answer, 'content-type')
  if (!bodiless && (contentType === undefined) !== (body === '')) throw problems('a body and its type belong together')
  if (status >= 500 && !explained(answer, bodiless))
    throw problems('S6 a 5xx that says neither Failure nor Retry-After')
  if (target !== undefined) valid(method === 'HEAD' && !bodiless ? 'GET' : method, target, status, contentType, body)
  if (stack.test(whole)) throw problems('S6 it speaks of the insides')
  if (
    status >= 400 &&
    folders.some((folder) => whole.includes(folder)) &&
    !(target !== undefined && (isHealth(method, target) || isStatusPage(target, contentType)))
  ) {
    throw problems('S6 it says where files lie')
  }
  const secret = betrayed()
  if (secret !== undefined) throw problems(`S7 it holds a secret: ${secret}`)

  /**
   * S7, F2: a sign-in returns its token once, and so does a new key; the id of a session also goes to the caller that
   * presents it; a script gets nothing.
   */
  function betrayed(): string | undefined {
    const operation = target === undefined || status !== 200 ? '' : (operationAt(method, target)?.operationId ?? '')
    const called = contentType?.startsWith('text/javascript') === true
    const signsIn = operation.includes('Auth') && !called
    const refreshes = operation.includes('AccessToken') && !called
    const others = headers.filter(([name, value]) => !renews(name, value))
    const text = written(others, body)
    const knownSecrets = secrets
      .in(text)
      .find((each) => !(refreshes || (signsIn && each.startsWith('svc_ss_') && sent.includes(each))))
    const tokens = tokensIn(text)
    const isNewKey = /CreateKey|KeysCreate/.test(operation) && !called && /^svc_key_/.test(tokens.join())
    for (const token of tokens) secrets.give(token)
    return knownSecrets ?? (signsIn || refreshes ? undefined : tokens[isNewKey ? 1 : 0])
  }

  /** A2: a page renews the cookie of a session that lasts, for the browser that presented it as one. */
  function renews(name: string, value: string): boolean {
    const [, cookie = '', id = ''] = renewal.exec(value) ?? []
    return (
      name.toLowerCase() === 'set-cookie' &&
      cookie !== '' &&
      target !== undefined &&
      contentType?.startsWith('text/html') === true &&
      pages.has(operationAt(method, target)?.operationId ?? '') &&
      !body.includes(id) &&
      cookiesIn(sent).includes(cookie) &&
      cookiesIn(sent).includes('ss-opt=perm')
    )
  }
}

const written = (headers: Answer['headers'], body: string): string =>
  `${headers.map(([name, value]) => `${name}: ${value}`).join('\n')}\n\n${body}`

/** The pages that somebody signed in may keep open. */
const pages = new Set(['getStatusPage', 'headStatusPage', 'postStatusPage', 'getBoard', 'headBoard'])

/** The Set-Cookie header of a session that lasts for 30 days after its last use. */
const renewal = /^(ss-pid=(svc_ss_[\w-]+)); Path=\/; Max-Age=2592000; HttpOnly; SameSite=Lax(?:; Secure)?$/

/** The cookies that a request presents, as `name=value`. */
const cookiesIn = (sent: string): readonly string[] =>
  (sent.split('\r\n\r\n', 1)[0] ?? '')
    .split('\r\n')
    .slice(1)
    .flatMap((line) => /^cookie:(.*)$/i.exec(line)?.[1]?.split(';') ?? [])
    .map((each) => each.trim())

const isHealth = (method: string, target: string): boolean =>
  /HealthCheck|Healthcheck/.test(operationAt(method, target)?.operationId ?? '')

/** H1, E2: a failed check says so, and a server that cannot answer now says when it can. */
function explained(answer: Answer, bodiless: boolean): boolean {
  const { status, body } = answer
  if (status !== 503) return false
  if (headerOf(answer, 'retry-after') !== undefined) return true
  if (headerOf(answer, 'age') === undefined) return false
  return (
    bodiless ||
    /"Status":"Failure"|"status":"fail"|^Failure,|,Failure,|[{,]Status:Failure,|CRITICAL|^svc_type_success\b.* 0$/m.test(
      body,
    )
  )
}
