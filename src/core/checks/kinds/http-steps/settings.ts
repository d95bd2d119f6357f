import { verifySetting } from '../../../base/net/http/route.ts'
import { trustSettings } from '../../../base/net/trust.ts'
import {
  type Expectation,
  headerMistake,
  headerNameMistake,
  lineMistake,
  type SettingsSpec,
  sameHeader,
  statusMistake,
  type Values,
} from '../../../base/settings/index.ts'
import { expectedValues } from '../../assert/document.ts'
import { textIn } from '../../assert/expectation.ts'
import { addressesSettings, latencySetting, proxySettings, reachSettings, type SignIn } from '../../engine/index.ts'
import { ftpSettings } from '../ftp/index.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
/** `Bearer ${token}`: a scheme and one value, so that svc.yaml itself never contains a credential. */
const authorization = /^[A-Za-z][A-Za-z0-9-]* \$\{[A-Za-z]\w*\}$/
const authorizationDoc = `Authorization header: a scheme and a value, such as Bearer \${token} or Basic \${basic}`

const { host, port, tls, insecureFtp, latency, certificate, passive, dataHosts } = ftpSettings

/** The request of one step and its expectations. */
const requestFields = {
  name: { type: 'text', required: true, doc: 'Name of the step in messages: `sign in`' },
  method: {
    type: 'choice',
    observed: true,
    values: methods,
    default: 'GET',
    doc: 'All but GET and HEAD need allowWrites or signIn',
  },
  path: {
    type: 'text',
    observed: true,
    pattern: /^\/(?![/\\])/,
    doc: `Path and query below url, beginning with a slash: /users/\${id}`,
  },
  headers: { type: 'map', observed: true, mistake: headerMistake, sameKey: sameHeader, doc: 'Request headers' },
  authorization: { type: 'text', pattern: authorization, doc: authorizationDoc },
  body: {
    type: 'text',
    observed: true,
    doc: `JSON (with values in quotes: "\${id}") or XML; set another Content-Type in headers`,
  },
  form: { type: 'map', observed: true, doc: 'Form fields, sent instead of a body' },
  status: {
    type: 'texts',
    mistake: statusMistake,
    needsOne: true,
    doc: 'Accepted status codes: 200, 2xx, 200-299. By default 2xx and those of until. Redirects are not followed',
  },
  contains: { type: 'text', negatable: true, doc: `Text that the answer must contain, or one \${value}` },
  json: {
    ...expectedValues('json'),
    doc: `Values expected in its JSON: path to text, /pattern/, comparison or one \${value}`,
  },
  xml: { ...expectedValues('xml'), doc: 'Values expected in its XML, in the same form' },
  expect: { ...expectedValues(), doc: 'Values expected, in the same form, by path: $.a in JSON, /a in XML' },
} as const satisfies SettingsSpec

const ftpFields = {
  host,
  port,
  tls,
  ...trustSettings,
  username: {
    type: 'text',
    required: true,
    mistake: lineMistake,
    doc: `Account, such as \${probe} or a captured value`,
  },
  password: {
    type: 'text',
    required: true,
    pattern: /^\$\{[A-Za-z]\w*\}$/,
    doc: `One value, such as \${probePassword} or a captured one`,
  },
  insecureFtp,
  latency,
  certificate,
  passive,
  dataHosts,
} as const satisfies SettingsSpec

const untilFields = {
  expect: {
    ...expectedValues(),
    doc: 'Values of the last answer: $.path in JSON or /path in XML to text, /pattern/ or comparison',
  },
  status: {
    type: 'texts',
    mistake: statusMistake,
    needsOne: true,
    doc: 'Status codes of the last answer; the status of the step, if set, must allow them too. 401 to a signed step always ends the polling',
  },
  every: { type: 'duration', default: 2_000, doc: 'Pause between two requests, at least 100ms' },
  within: {
    type: 'duration',
    doc: 'Maximum duration of the polling; never longer than the timeout of the monitor, less the time for cleanup',
  },
  most: { type: 'integer', min: 1, max: 1_000, default: 100, doc: 'Maximum number of requests' },
} as const satisfies SettingsSpec

const failsFields = {
  expect: { ...expectedValues(), required: true, doc: 'Values that identify such an answer; all must match' },
  says: {
    type: 'text',
    required: true,
    doc: 'Meaning of such an answer, for the message: `a clip known to be bad passed`',
  },
} as const satisfies SettingsSpec

const stepFields = {
  ...requestFields,
  capture: {
    type: 'map',
    doc: 'Values for later steps: name to $.path, /xml/path, header:Name or cookie:Name. They are treated as secrets, also those of earlier answers while polling',
  },
  signIn: {
    type: 'flag',
    default: false,
    doc: 'The step signs in or out: it needs no allowWrites, and after a refusal svc does not sign in again for a while',
  },
  until: {
    type: 'group',
    fields: untilFields,
    doc: 'GET or HEAD: repeat the request until an answer has these values; the step evaluates and captures from that answer',
  },
  fails: {
    type: 'groups',
    fields: failsFields,
    doc: 'Answers that mean a failure; they also end the polling of `until`',
  },
  ftp: {
    type: 'group',
    fields: ftpFields,
    doc: 'Instead of a request: sign in to this FTP server and list a folder in each passive mode',
  },
} as const satisfies SettingsSpec

const cleanupFields = {
  ...requestFields,
  undoes: { type: 'text', required: true, doc: 'Name of the step that creates what this one removes' },
} as const satisfies SettingsSpec

/** The settings of an http-steps monitor in svc.yaml. */
export const stepsSettings = {
  url: {
    type: 'url',
    protocols: ['http', 'https'],
    required: true,
    doc: 'Base URL of all paths; no step leaves it',
  },
  steps: { type: 'groups', required: true, fields: stepFields, doc: 'The steps, in this order' },
  cleanup: {
    type: 'groups',
    fields: cleanupFields,
    doc: 'Steps that always run at the end, each if the step that it undoes was sent and not refused',
  },
  username: {
    type: 'text',
    doc: `For \${username}, and with password for \${basic} (the value of HTTP basic sign-in)`,
  },
  password: { type: 'secret', doc: `For \${password}` },
  token: { type: 'secret', form: 'header', doc: `For \${token}` },
  authorization: {
    type: 'text',
    pattern: authorization,
    doc: `${authorizationDoc}, of every step that does not set its own`,
  },
  signed: {
    type: 'flag',
    default: false,
    doc: 'Send token (as Bearer, or in tokenHeader), or username and password (as Basic), with every step that neither signs in nor sets its own authorization',
  },
  tokenHeader: {
    type: 'text',
    mistake: headerNameMistake,
    doc: 'With signed: header that takes the bare token instead, e.g. X-Api-Key',
  },
  values: { type: 'map', doc: `Values that are known in advance and not secret: name to text, for \${name}` },
  show: {
    type: 'texts',
    default: [],
    doc: 'Names of captured values that are not secret, such as the id of an object that may be left behind',
  },
  allowWrites: { type: 'flag', default: false, doc: 'Send the steps that may write' },
  latency: latencySetting({ warn: 1_000, limit: 5_000 }, 'How long each step may take, with its connection'),
  insecureHttp: { type: 'flag', default: false, doc: 'Send credentials over http:// to other machines too' },
  verify: verifySetting,
  ...trustSettings,
  // A sequence may write and takes its time: nobody is to send it to each address without being asked.
  addresses: addressesSettings.never,
  ...reachSettings,
  ...proxySettings,
  maxBody: { type: 'bytes', default: 1024 * 1024, doc: 'Maximum bytes that are read of an answer' },
} as const satisfies SettingsSpec

export type StepsSettings = Values<typeof stepsSettings>
export type Step = StepsSettings['steps'][number]
export type CleanupStep = NonNullable<StepsSettings['cleanup']>[number]
export type FtpStep = NonNullable<Step['ftp']>
/** The common fields of steps and cleanup steps. */
export type RequestStep = Values<typeof requestFields>

/** Whether an expectation consists of a single value. */
export const isValue = (expectation: Expectation): boolean => /^\$\{[A-Za-z]\w*\}$/.test(textIn(expectation))

/** The status codes that a step accepts. */
export const statusesOf = (step: RequestStep | Step): readonly string[] =>
  step.status ?? ['2xx', ...(('until' in step ? step.until?.status : undefined) ?? [])]

/** Whether a method may change data on the server. */
export const writes = (method: string): boolean => method !== 'GET' && method !== 'HEAD'

export type SignedStep = RequestStep & { readonly signIn?: boolean }

/** Whether a step sends a credential of svc.yaml because of `signed`. */
export const isSigned = (step: SignedStep, settings: StepsSettings): boolean =>
  settings.signed &&
  !step.signIn &&
  step.authorization === undefined &&
  (settings.token !== undefined || settings.password !== undefined)

/** The account of the steps. Whoever sends the same credentials elsewhere has the same account. */
export const accountOf = ({ username, password, token }: StepsSettings): SignIn => ({
  account: username ?? 'token',
  secrets: [token, password],
})

/** Whether any step sends a credential of svc.yaml. */
export const signsAnywhere = (settings: StepsSettings): boolean =>
  settings.password !== undefined || settings.token !== undefined || settings.steps.some(({ signIn }) => signIn)
