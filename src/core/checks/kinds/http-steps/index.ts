import { asksPeerAt } from '../../../base/net/http/route.ts'
import { quote, sanitize } from '../../../base/net/text.ts'
import { unusedTrust } from '../../../base/net/trust.ts'
import { urlTarget } from '../../../base/net/url.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { pathProblem } from '../../assert/document.ts'
import { statusAllowed, textIn } from '../../assert/expectation.ts'
import { loadXmlParser } from '../../assert/xml.ts'
import { clientExpiry, declaredResults, ignoredHeaders, includes, type Kind } from '../../engine/index.ts'
import { loadFtpLists } from '../ftp/index.ts'
import { reservedHeaders } from '../http/index.ts'
import { expectationsOf } from './expectations.ts'
import { bodyType, headerValue, templatesOf, urlOf } from './request.ts'
import { runSteps } from './sequence.ts'
import {
  accountOf,
  isSigned,
  isValue,
  type RequestStep,
  type Step,
  type StepsSettings,
  signsAnywhere,
  statusesOf,
  stepsSettings,
  writes,
} from './settings.ts'
import { builtInNames, namesIn, StepValues, strayPlaceholder } from './values.ts'

/** Why the settings cannot be combined, or undefined. */
export function validate(settings: StepsSettings): string | undefined {
  const url = new URL(settings.url)
  if (url.username !== '' || url.password !== '') return 'url contains a user or a password: use username and password'
  if (url.search !== '' || url.hash !== '')
    return 'url contains a query or a fragment: move a query to the path of a step'
  if (settings.password !== undefined && settings.username === undefined) return 'password needs a username'
  if (settings.steps.length === 0) return 'steps is empty: add at least one'
  const unusable = trustProblem(settings) ?? valuesProblem(settings) ?? signedProblem(settings)
  if (unusable !== undefined) return unusable
  const names = [...settings.steps, ...(settings.cleanup ?? [])].map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined) return `two steps have the name ${quote(twice, 64)}`
  const defined = new Set<string>([...initialNames(settings), ...Object.keys(settings.values ?? {})])
  for (const step of settings.steps) {
    const problem = step.ftp
      ? ftpProblem(step, settings, defined)
      : (requestProblem(step, settings, defined) ?? untilProblem(step, settings))
    if (problem !== undefined) return `step ${quote(step.name, 64)} ${problem}`
    for (const [name, from] of Object.entries(step.capture ?? {})) {
      const bad = captureProblem(name, from, settings)
      if (bad !== undefined) return `step ${quote(step.name, 64)} ${bad}`
      defined.add(name)
    }
  }
  for (const step of settings.cleanup ?? []) {
    const undone = settings.steps.find(({ name }) => name === step.undoes)
    const problem =
      undone === undefined || !(writes(undone.method) || undone.signIn) || undone.ftp
        ? `undoes ${quote(step.undoes, 64)}, which is not a step that sends a request`
        : requestProblem(step, settings, defined)
    if (problem !== undefined) return `cleanup ${quote(step.name, 64)} ${problem}`
  }
  const unknown = settings.show.find(
    (name) => !settings.steps.some(({ capture }) => Object.hasOwn(capture ?? {}, name)),
  )
  return unknown === undefined ? undefined : `show names ${sanitize(unknown, 64)}, which no step captures`
}

function valuesProblem(settings: StepsSettings): string | undefined {
  for (const name of Object.keys(settings.values ?? {})) {
    if (!nameOfValue.test(name)) return `values contains the name ${quote(name, 64)}: use letters, digits and _`
    if ((builtInNames as readonly string[]).includes(name)) return `values may not contain the built-in name ${name}`
  }
  return undefined
}

const trustProblem = ({ url, fingerprint, clientCert }: StepsSettings): string | undefined =>
  url.startsWith('http:') ? unusedTrust({ fingerprint, clientCert }, 'https') : undefined

function signedProblem({ signed, authorization, token, password, tokenHeader }: StepsSettings): string | undefined {
  if (!signed) return tokenHeader === undefined ? undefined : 'tokenHeader needs signed: true'
  if (authorization !== undefined) return 'signed and authorization exclude each other'
  if (token !== undefined && password !== undefined) return 'signed needs a token or a password, not both'
  if (tokenHeader !== undefined && !isOwnHeader(tokenHeader))
    return `tokenHeader may not be ${sanitize(tokenHeader, 64)}`
  return undefined
}

const initialNames = (settings: StepsSettings): readonly string[] =>
  builtInNames.filter((name) => {
    if (name === 'basic') return settings.username !== undefined && settings.password !== undefined
    return name === 'probe' || name === 'probePassword' || settings[name] !== undefined
  })

function requestProblem(
  step: RequestStep & { readonly signIn?: boolean; readonly undoes?: string },
  settings: StepsSettings,
  defined: ReadonlySet<string>,
): string | undefined {
  if (step.path === undefined) return 'has neither a path nor ftp'
  const undoesSignIn = settings.steps.some(({ name, signIn }) => signIn && name === step.undoes)
  if (writes(step.method) && !settings.allowWrites && !step.signIn && !undoesSignIn) {
    return `sends ${step.method}, which needs allowWrites: true (or signIn: true where it only signs in or out)`
  }
  if (step.body !== undefined && step.form !== undefined) return 'has both body and form: remove one of them'
  if ((step.body !== undefined || step.form !== undefined) && !writes(step.method))
    return `cannot send a body with ${step.method}`
  if (asksPeerAt(new URL(step.path.replaceAll(/\$\{\w+\}/g, 'x'), 'http://localhost'))) {
    return 'requests a /healthcheck: use kind http or svc'
  }
  const taken = Object.keys(step.headers ?? {}).find((name) => !isOwnHeader(name))
  if (taken !== undefined) return `may not set the header ${sanitize(taken, 64)}`
  const lost = documentProblem(step)
  if (lost !== undefined) return lost
  return bodyProblem(step) ?? templates(templatesOf(step, settings), defined) ?? unsendable(step, settings)
}

/** Why the written part of a request cannot be sent, whatever is captured. */
function unsendable(step: RequestStep, settings: StepsSettings): string | undefined {
  const values = new StepValues()
  for (const name of templatesOf(step, settings).flatMap(namesIn)) values.set(name, 'x', false)
  for (const [name, value] of Object.entries(settings.values ?? {})) values.set(name, value, false)
  try {
    urlOf(step, settings, values)
    for (const [name, template] of Object.entries(step.headers ?? {})) headerValue(name, template, values)
    return undefined
  } catch (error) {
    if (error instanceof ProbeError) return `cannot be sent: ${error.message.replace(': nothing was sent', '')}`
    throw error
  }
}

/** Whether a step may set a header. */
const isOwnHeader = (name: string): boolean => !reservedHeaders.has(name.toLowerCase()) && !/^host$/i.test(name)

function documentProblem(step: RequestStep): string | undefined {
  const expected = expectationsOf(step)
  const all = expected.flatMap(({ json, xml }) => [...Object.values(json ?? {}), ...Object.values(xml ?? {})])
  if (expected.some(({ contains }) => contains !== undefined && textIn(contains) === ''))
    return 'has an empty contains, which every answer has'
  const mixed = [...all, ...expected.flatMap(({ contains = '' }) => contains)]
    .map(textIn)
    .find((expectation) => expectation.includes(`\${`) && !isValue(expectation))
  return mixed === undefined ? undefined : `expects ${quote(mixed, 64)}: use a \${value} alone, or none`
}

/** The shortest pause between two requests, in milliseconds. */
const shortestPause = 100

function untilProblem(step: Step, settings: StepsSettings): string | undefined {
  const { method, signIn, until, fails = [] } = step
  if (fails.some(({ expect }) => Object.keys(expect).length === 0)) return 'has fails without a value in expect'
  if (until === undefined) return undefined
  if (signIn) return 'has both signIn and until: a sign-in is sent only once'
  if (writes(method)) return `sends ${method} and has until: only GET and HEAD are repeated`
  const values = Object.keys(until.expect ?? {}).length
  if (values === 0 && (until.status ?? []).length === 0) return 'has until without expect or status: add one of them'
  if (method === 'HEAD' && values > 0) return 'has until with expect, but HEAD has no body to evaluate'
  if (until.every < shortestPause) return `repeats its request every ${until.every} ms: set every to 100ms or more`
  return endlessProblem(step, settings)
}

const allStatuses = Array.from({ length: 900 }, (_, index) => index + 100)

/** Rejects a status in `until` that can never end the polling. */
function endlessProblem(step: Step, settings: StepsSettings): string | undefined {
  for (const entry of step.until?.status ?? []) {
    const meant = allStatuses.filter((status) => statusAllowed(status, [entry]))
    if (!meant.some((status) => statusAllowed(status, statusesOf(step)))) {
      const own = (step.status ?? []).join(', ')
      return `waits for status ${sanitize(entry, 20)}, which its own status (${sanitize(own, 80)}) excludes: add it there, or remove that status`
    }
    if (isSigned(step, settings) && meant.every((status) => status === 401)) {
      return `waits for status ${sanitize(entry, 20)}, which always ends the polling, because a refused credential is sent only once: remove it`
    }
  }
  return undefined
}

function bodyProblem(step: RequestStep): string | undefined {
  if (step.body === undefined) return undefined
  const type = bodyType(step)
  if (type === undefined && step.body.includes(`\${`))
    return 'has values in a body that is neither JSON nor XML; use form'
  if (type !== 'json') return undefined
  try {
    JSON.parse(step.body)
    return undefined
  } catch {
    return `has a body that is not JSON: put values in quotes, "\${id}"`
  }
}

function templates(all: readonly string[], defined: ReadonlySet<string>): string | undefined {
  for (const template of all) {
    const stray = strayPlaceholder(template)
    if (stray !== undefined) return `contains ${quote(stray, 40)}, which is not a \${name}`
    const lost = namesIn(template).find((name) => !defined.has(name))
    if (lost !== undefined) {
      return `uses \${${lost}}, which no earlier step captures: use one of ${[...defined].join(', ')}`
    }
  }
  return undefined
}

const nameOfValue = /^[A-Za-z]\w{0,63}$/

function captureProblem(name: string, from: string, settings: StepsSettings): string | undefined {
  if (!nameOfValue.test(name)) return `captures ${quote(name, 64)}: use letters, digits and _ in names`
  if ((builtInNames as readonly string[]).includes(name) || Object.hasOwn(settings.values ?? {}, name)) {
    return `may not capture the built-in name ${name}`
  }
  if (/^(?:header|cookie):[!#$%&'*+.^_`|~\w-]+$/.test(from)) return undefined
  const problem = from.startsWith('count(') ? `${quote(from, 64)} is a count` : pathProblem(from)
  return problem === undefined
    ? undefined
    : `captures ${name} from ${quote(from, 64)}, which is not of the form $.path, /xml/path, header:Name or cookie:Name`
}

function ftpProblem(step: Step, settings: StepsSettings, defined: ReadonlySet<string>): string | undefined {
  const { ftp } = step
  if (ftp === undefined) return undefined
  if (step.path !== undefined || step.body !== undefined || step.form !== undefined || step.capture !== undefined) {
    return 'has ftp, so it sends no request and captures nothing'
  }
  if (step.until !== undefined || step.fails !== undefined || step.expect !== undefined) {
    return 'has ftp, so there is no answer for until, fails or expect'
  }
  if (ftp.host.includes(`\${`)) return 'has a value in its ftp host: write the host in svc.yaml'
  if (ftp.tls === 'off' && unusedTrust(ftp, 'TLS') !== undefined) {
    return 'has ftp with tls: off, but settings that only apply to TLS'
  }
  const used = [...namesIn(ftp.username), ...namesIn(ftp.password)]
  const secrets = { password: settings.password, basic: settings.password, token: settings.token }
  for (const [name, secret] of Object.entries(secrets)) {
    if (used.includes(name) && secret?.origin.startsWith('{keychain:')) {
      return `would send \${${name}} to ${sanitize(ftp.host, 64)}, but a secret of the keychain is bound to the host of url`
    }
  }
  return templates([ftp.username, ftp.password], defined)
}

/**
 * Acts like a client, step by step: signs in, reads, creates, uses and removes. Its settings determine its checks, and
 * a failed step decides how the run continues. Therefore it runs by itself, and is not composed of checks.
 */
const steps: Kind<typeof stepsSettings> = {
  name: 'http-steps',
  title: 'A sequence of HTTP requests works as for a client',
  exposure:
    'What a user of the site may do. Use an account of its own, without data of others and without rights to pay or delete.',
  // Discovery recognizes an HTTP server. Only people know the steps of a client.
  recognition: 'none',
  runsOn: 'network',
  preload: () => Promise.all([loadXmlParser(), loadFtpLists()]),
  optionalParts: [{ part: 'User-Agent, Accept, Accept-Encoding, Cache-Control', unasked: ignoredHeaders }],
  cost: {
    unit: 'HTTP requests',
    Basic: [0, 0],
    Standard: [0, 0],
    Advanced: [0, 0],
    adds: [
      { setting: 'steps', each: true, from: 'Advanced', connections: 1, requests: 1 },
      { setting: 'steps', each: true, where: 'signIn', from: 'Advanced', signIns: 1 },
      { setting: 'cleanup', each: true, from: 'Advanced', connections: 1, requests: 1 },
    ],
    besides:
      'A step with `until` repeats its request until the condition holds. A step with `ftp` signs in to an FTP server.',
  },
  settings: stepsSettings,
  checks: [
    {
      name: 'connect',
      depth: 'Advanced',
      doc: 'The port accepts a connection, over https with a trusted certificate',
    },
    {
      name: 'step',
      depth: 'Advanced',
      doc: 'Each of `steps` gets the expected answer in time; the first failure ends the sequence',
      items: ({ steps }: StepsSettings) => steps.map(({ name }) => name),
    },
    {
      name: 'cleanup',
      depth: 'Advanced',
      doc: 'With `cleanup`: what the steps created is removed; anything left behind is reported',
      when: ['cleanup'],
      items: ({ cleanup = [] }: StepsSettings) => cleanup.map(({ name }) => name),
    },
    ...declaredResults(clientExpiry(stepsSettings, 'Advanced')),
  ],
  target: urlTarget,
  signsIn: (settings, mode) =>
    includes(mode, 'Advanced') && signsAnywhere(settings) ? accountOf(settings) : undefined,
  validate,
  run: runSteps,
}
export default steps
