import { pathProblem } from '../../assert/document.ts'
import { expectationProblem, statusAllowed } from '../../assert/expectation.ts'
import { loadXmlParser } from '../../assert/xml.ts'
import { includes, type Kind } from '../../engine/index.ts'
import { asksPeerAt } from '../../net/http/route.ts'
import { quote, sanitize } from '../../net/text.ts'
import { urlTarget } from '../../net/url.ts'
import { loadFtpLists } from '../ftp/index.ts'
import { reservedHeaders } from '../http/index.ts'
import { expectationsOf } from './expectations.ts'
import { bodyType, templatesOf } from './request.ts'
import { runSteps } from './sequence.ts'
import {
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
import { builtInNames, namesIn, strayPlaceholder } from './values.ts'

/** Why the settings cannot be combined, or undefined. */
export function validate(settings: StepsSettings): string | undefined {
  const url = new URL(settings.url)
  if (url.username !== '' || url.password !== '') return 'url holds a user or a password: use username and password'
  if (url.search !== '' || url.hash !== '') return 'url ends with its path: a query belongs to the path of a step'
  if (settings.password !== undefined && settings.username === undefined) return 'password needs a username'
  if (settings.steps.length === 0) return 'steps is empty: name at least one'
  const unusable = valuesProblem(settings) ?? signedProblem(settings)
  if (unusable !== undefined) return unusable
  const names = [...settings.steps, ...(settings.cleanup ?? [])].map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined) return `two steps are called ${quote(twice, 64)}`
  const defined = new Set<string>([...initialNames(settings), ...Object.keys(settings.values ?? {})])
  for (const step of settings.steps) {
    const wrong = step.ftp
      ? ftpProblem(step, settings, defined)
      : (requestProblem(step, settings, defined) ?? untilProblem(step, settings))
    if (wrong !== undefined) return `step ${quote(step.name, 64)} ${wrong}`
    for (const [name, from] of Object.entries(step.capture ?? {})) {
      const bad = captureProblem(name, from, settings)
      if (bad !== undefined) return `step ${quote(step.name, 64)} ${bad}`
      defined.add(name)
    }
  }
  for (const step of settings.cleanup ?? []) {
    const undone = settings.steps.find(({ name }) => name === step.undoes)
    const wrong =
      undone === undefined || !(writes(undone.method) || undone.signIn) || undone.ftp
        ? `undoes ${quote(step.undoes, 64)}, which is no step that makes anything`
        : requestProblem(step, settings, defined)
    if (wrong !== undefined) return `cleanup ${quote(step.name, 64)} ${wrong}`
  }
  const unknown = settings.show.find(
    (name) => !settings.steps.some(({ capture }) => Object.hasOwn(capture ?? {}, name)),
  )
  return unknown === undefined ? undefined : `show names ${sanitize(unknown, 64)}, which no step captures`
}

function valuesProblem(settings: StepsSettings): string | undefined {
  for (const name of Object.keys(settings.values ?? {})) {
    if (!nameOfValue.test(name)) return `values names ${quote(name, 64)}: names are letters, digits and _`
    if ((builtInNames as readonly string[]).includes(name)) return `values may not name ${name}, which is given`
  }
  return undefined
}

function signedProblem({ signed, authorization, token, password, tokenHeader }: StepsSettings): string | undefined {
  if (!signed) return tokenHeader === undefined ? undefined : 'tokenHeader needs signed: true'
  if (authorization !== undefined) return 'signed and authorization exclude each other'
  if (token !== undefined && password !== undefined) return 'signed takes a token or a password, not both'
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
  if (step.body !== undefined && step.form !== undefined) return 'has a body and a form: one of them is sent'
  if ((step.body !== undefined || step.form !== undefined) && !writes(step.method))
    return `sends no body with ${step.method}`
  if (asksPeerAt(new URL(step.path.replaceAll(/\$\{\w+\}/g, 'x'), 'http://localhost'))) {
    return 'asks a /healthcheck: that is for the kinds http and svc'
  }
  const taken = Object.keys(step.headers ?? {}).find((name) => !isOwnHeader(name))
  if (taken !== undefined) return `may not set the header ${sanitize(taken, 64)}`
  const lost = documentProblem(step) ?? statusProblem(step.status ?? [])
  if (lost !== undefined) return lost
  return bodyProblem(step) ?? templates(templatesOf(step, settings), defined)
}

/** Whether a step may set a header. */
const isOwnHeader = (name: string): boolean => !reservedHeaders.has(name.toLowerCase()) && !/^host$/i.test(name)

function documentProblem(step: RequestStep): string | undefined {
  const expected = expectationsOf(step)
  const wrong = expected
    .flatMap(({ json, xml }) => [
      ...Object.keys(json ?? {}).map((path) => pathProblem(path, 'json')),
      ...Object.keys(xml ?? {}).map((path) => pathProblem(path, 'xml')),
    ])
    .find((problem) => problem !== undefined)
  if (wrong !== undefined) return `expects something where ${wrong}`
  const all = expected.flatMap(({ json, xml }) => [...Object.values(json ?? {}), ...Object.values(xml ?? {})])
  const lost = all.map(expectationProblem).find((problem) => problem !== undefined)
  if (lost !== undefined) return `expects something where ${lost}`
  const mixed = all.find((expectation) => expectation.includes(`\${`) && !isValue(expectation))
  return mixed === undefined ? undefined : `expects ${quote(mixed, 64)}: one \${value} by itself, or none`
}

/** The shortest pause between two requests, in milliseconds. */
const shortestPause = 100

function untilProblem(step: Step, settings: StepsSettings): string | undefined {
  const { method, signIn, until, fails = [] } = step
  if (fails.some(({ expect }) => Object.keys(expect).length === 0)) return 'has fails without a value in expect'
  if (until === undefined) return undefined
  if (signIn) return 'signs in and has until: a sign-in is sent once'
  if (writes(method)) return `sends ${method} and has until: only GET and HEAD are sent again`
  const values = Object.keys(until.expect ?? {}).length
  if (values === 0 && (until.status ?? []).length === 0) return 'has until without expect or status: say what ends it'
  if (method === 'HEAD' && values > 0) return 'has until with expect, and HEAD has no body to judge'
  if (until.every < shortestPause) return `asks every ${until.every} ms: give every 100ms or more`
  return statusProblem(until.status ?? []) ?? endlessProblem(step, settings)
}

const allStatuses = Array.from({ length: 900 }, (_, index) => index + 100)

/** Rejects a status in `until` that can never end the polling. */
function endlessProblem(step: Step, settings: StepsSettings): string | undefined {
  for (const entry of step.until?.status ?? []) {
    const meant = allStatuses.filter((status) => statusAllowed(status, [entry]))
    if (meant.length === 0) return `waits for status ${sanitize(entry, 20)}, which no answer has`
    if (!meant.some((status) => statusAllowed(status, statusesOf(step)))) {
      const own = (step.status ?? []).join(', ')
      return `waits for status ${sanitize(entry, 20)}, which its own status (${sanitize(own, 80)}) excludes: add it there, or leave that out`
    }
    if (isSigned(step, settings) && meant.every((status) => status === 401)) {
      return `waits for status ${sanitize(entry, 20)}, which ends it: a refused credential is sent once; leave it out`
    }
  }
  return undefined
}

function statusProblem(allowed: readonly string[]): string | undefined {
  try {
    for (const entry of allowed) statusAllowed(200, [entry])
    return undefined
  } catch (error) {
    return `expects a status that cannot be read: ${(error as RangeError).message}`
  }
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
    return `has a body that is not JSON: values stand in quotes there, "\${id}"`
  }
}

function templates(all: readonly string[], defined: ReadonlySet<string>): string | undefined {
  for (const template of all) {
    const stray = strayPlaceholder(template)
    if (stray !== undefined) return `holds ${quote(stray, 40)}, which is no \${name}`
    const lost = namesIn(template).find((name) => !defined.has(name))
    if (lost !== undefined) {
      return `uses \${${lost}}, which nothing before it gives: it is one of ${[...defined].join(', ')}`
    }
  }
  return undefined
}

const nameOfValue = /^[A-Za-z]\w{0,63}$/

function captureProblem(name: string, from: string, settings: StepsSettings): string | undefined {
  if (!nameOfValue.test(name)) return `captures ${quote(name, 64)}: names are letters, digits and _`
  if ((builtInNames as readonly string[]).includes(name) || Object.hasOwn(settings.values ?? {}, name)) {
    return `may not capture ${name}, which is given`
  }
  if (/^(?:header|cookie):[!#$%&'*+.^_`|~\w-]+$/.test(from)) return undefined
  const wrong = from.startsWith('count(') ? `${quote(from, 64)} is a count` : pathProblem(from)
  return wrong === undefined
    ? undefined
    : `captures ${name} from ${quote(from, 64)}, which is none of $.path, /xml/path, header:Name, cookie:Name`
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
  if (ftp.host.includes(`\${`)) return 'has an ftp host that is a value: who is signed in to must stand in svc.yaml'
  if (ftp.tls === 'off' && (ftp.servername !== undefined || ftp.caFile !== undefined)) {
    return 'has ftp with tls: off, and what only TLS needs'
  }
  const used = [...namesIn(ftp.username), ...namesIn(ftp.password)]
  const secrets = { password: settings.password, basic: settings.password, token: settings.token }
  for (const [name, secret] of Object.entries(secrets)) {
    if (used.includes(name) && secret?.origin.startsWith('{keychain:')) {
      return `would send \${${name}} to ${sanitize(ftp.host, 64)}, and a secret of the keychain belongs to the host of url`
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
  title: 'A sequence of HTTP requests does what a client does',
  runsOn: 'network',
  preload: () => Promise.all([loadXmlParser(), loadFtpLists()]),
  settings: stepsSettings,
  checks: [
    {
      name: 'connect',
      depth: 'Advanced',
      doc: 'The port accepts a connection; over https the server is who it should be',
    },
    {
      name: 'step',
      depth: 'Advanced',
      doc: 'Each of `steps` is answered as expected, in time; the first that fails ends the sequence',
    },
    {
      name: 'cleanup',
      depth: 'Advanced',
      doc: 'With `cleanup`: what the steps made is removed, or named as left behind',
      when: ['cleanup'],
    },
  ],
  target: urlTarget,
  signsIn: (settings, mode) => includes(mode, 'Advanced') && signsAnywhere(settings),
  validate,
  run: runSteps,
}
export default steps
