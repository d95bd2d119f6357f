import { exactJson, parseExactly } from '../../../base/json.ts'
import type { HttpCall } from '../../../base/net/http/call.ts'
import type { CookieJar } from '../../../base/net/http/cookies.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { textIn } from '../../assert/expectation.ts'
import { expectationsOf } from './expectations.ts'
import {
  isSigned,
  isValue,
  type RequestStep,
  type SignedStep,
  type Step,
  type StepsSettings,
  writes,
} from './settings.ts'
import { inXml, type StepValues } from './values.ts'

/** Every template of a step, in no particular order. */
export const templatesOf = (step: RequestStep | Step, settings: StepsSettings): readonly string[] => [
  step.path ?? '',
  authorizationOf(step, settings) ?? '',
  step.body ?? '',
  ...Object.values(step.headers ?? {}),
  ...Object.values(step.form ?? {}),
  ...expectationsOf(step).flatMap(({ json, xml, contains = '' }) =>
    [...Object.values(json ?? {}), ...Object.values(xml ?? {}), contains].map(textIn).filter(isValue),
  ),
]

/**
 * The Authorization header of a step. A step that signs in does not use the common header, which would often contain
 * the value that this step is to capture.
 */
export const authorizationOf = (
  step: RequestStep & { readonly signIn?: boolean },
  settings: StepsSettings,
): string | undefined =>
  step.authorization ??
  (isSigned(step, settings) && settings.tokenHeader === undefined ? ours(settings) : common(step, settings))

const common = (step: SignedStep, settings: StepsSettings): string | undefined =>
  step.signIn ? undefined : settings.authorization
const ours = (settings: StepsSettings): string =>
  settings.token === undefined ? `Basic \${basic}` : `Bearer \${token}`

/** The type of a step's body; undefined for a type into which no value can be inserted safely. */
export function bodyType(step: RequestStep): 'json' | 'xml' | undefined {
  const contentType = Object.entries(step.headers ?? {}).find(([name]) => name.toLowerCase() === 'content-type')?.[1]
  const body = step.body?.trimStart() ?? ''
  if (contentType === undefined) return /^[[{]/.test(body) ? 'json' : body.startsWith('<') ? 'xml' : undefined
  return /json/i.test(contentType) ? 'json' : /xml/i.test(contentType) ? 'xml' : undefined
}

const contentTypes = { json: 'application/json', xml: 'application/xml' } as const

/** The request of a step, with its values inserted and encoded for their positions. Throws ProbeError `data`. */
export function requestOf(step: RequestStep, settings: StepsSettings, values: StepValues, jar: CookieJar): HttpCall {
  const url = urlOf(step, settings, values)
  const authorization = authorizationOf(step, settings)
  const cookie = jar.header(url.pathname, url.protocol === 'https:')
  const type = step.form ? 'application/x-www-form-urlencoded' : contentTypes[bodyType(step) ?? 'json']
  const body = bodyOf(step, values)
  const headers = Object.entries(step.headers ?? {}).map(([name, value]) => [
    name.toLowerCase(),
    headerValue(name, value, values),
  ])
  const expectsXml = expectationsOf(step).some(({ xml }) => xml !== undefined)
  const tokenHeader = isSigned(step, settings) ? settings.tokenHeader : undefined
  return {
    method: step.method,
    path: `${url.pathname}${url.search}`,
    headers: {
      host: url.host,
      'user-agent': 'svc',
      accept: expectsXml ? 'application/xml, text/xml;q=0.9, */*;q=0.1' : 'application/json, */*;q=0.1',
      'cache-control': 'no-store',
      ...(body === undefined ? {} : { 'content-type': type }),
      ...(body === undefined && writes(step.method) ? { 'content-length': '0' } : {}),
      ...(Object.fromEntries(headers) as Record<string, string>),
      ...(tokenHeader === undefined
        ? {}
        : { [tokenHeader.toLowerCase()]: headerValue(tokenHeader, `\${token}`, values) }),
      ...(authorization === undefined ? {} : { authorization: headerValue('authorization', authorization, values) }),
      ...(cookie === undefined ? {} : { cookie }),
      connection: 'close',
    },
    body,
  }
}

/** The URL of a step, which is always below `url`, whatever the values are. */
export function urlOf(step: RequestStep, settings: StepsSettings, values: StepValues): URL {
  const base = new URL(settings.url)
  const below = base.pathname.replace(/\/$/, '')
  const path = values.fill(step.path ?? '/', (value) => {
    // Even in encoded form, a server might interpret it as the parent folder.
    if (value.split(/[\\/]/).some((part) => part === '.' || part === '..')) {
      throw new ProbeError('data', 'a captured value leads out of its path: nothing was sent')
    }
    return encodeURIComponent(value.toWellFormed())
  })
  const url = URL.parse(`${base.origin}${below}${path}`)
  if (url === null || url.origin !== base.origin || !url.pathname.startsWith(`${below}/`)) {
    throw new ProbeError('data', 'the path of this step leads away from url: nothing was sent')
  }
  return url
}

/** A header with its values. Throws ProbeError `data` for one that cannot be sent. */
export function headerValue(name: string, template: string, values: StepValues): string {
  return values.fill(template, (value) => {
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      throw new ProbeError(
        'data',
        `a value for the header ${name} contains a character that a header does not allow: nothing was sent`,
      )
    }
    return value
  })
}

function bodyOf(step: RequestStep, values: StepValues): string | undefined {
  if (step.form) {
    const form = new URLSearchParams()
    for (const [name, value] of Object.entries(step.form)) form.append(name, values.fill(value, String))
    return form.toString()
  }
  if (step.body === undefined) return undefined
  if (bodyType(step) === 'xml') return values.fill(step.body, inXml)
  if (bodyType(step) !== 'json') return step.body
  // Inserts the values into the strings of the parsed document, so that a value can never become anything but a string.
  return exactJson(filledJson(parseExactly(step.body), values))
}

function filledJson(value: unknown, values: StepValues): unknown {
  if (typeof value === 'string') return values.fill(value, String)
  if (Array.isArray(value)) return value.map((item: unknown) => filledJson(item, values))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filledJson(item, values)]))
}
