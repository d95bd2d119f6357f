import { latencySetting } from '../../engine/index.ts'
import { caFileSetting } from '../../net/certificates.ts'
import { verifySetting } from '../../net/http/route.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'
import { ftpSettings } from '../ftp/index.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
/** `Bearer ${token}`: a scheme and one value, so that svc.yaml itself never contains a credential. */
const authorization = /^[A-Za-z][A-Za-z0-9-]* \$\{[A-Za-z]\w*\}$/
const authorizationDoc = `Authorization header: a scheme and a value, such as Bearer \${token} or Basic \${basic}`

const { host, port, tls, servername, caFile, insecureFtp, latency, certificate, passive, dataHosts } = ftpSettings

/** The request of one step and its expectations. */
const requestFields = {
  name: { type: 'text', required: true, doc: 'What it does, for messages: `sign in`' },
  method: { type: 'choice', values: methods, default: 'GET', doc: 'All but GET and HEAD need allowWrites or signIn' },
  path: { type: 'text', pattern: /^\/(?![/\\])/, doc: `Path and query below url, from its slash on: /users/\${id}` },
  headers: { type: 'map', doc: 'Request headers' },
  authorization: { type: 'text', pattern: authorization, doc: authorizationDoc },
  body: { type: 'text', doc: `JSON (values stand in quotes: "\${id}") or XML; its Content-Type may be set in headers` },
  form: { type: 'map', doc: 'Form fields, sent instead of a body' },
  status: {
    type: 'texts',
    doc: 'Status codes that are well: 200, 2xx, 200-299. Without it 2xx, and those of until. No redirect is followed',
  },
  json: { type: 'map', doc: `Values expected in its JSON: path to text, /pattern/, comparison or one \${value}` },
  xml: { type: 'map', doc: 'Values expected in its XML, likewise' },
  expect: { type: 'map', doc: 'Values expected, likewise, where the path says in what: $.a in JSON, /a in XML' },
} as const satisfies SettingsSpec

const ftpFields = {
  host,
  port,
  tls,
  servername,
  caFile,
  username: { type: 'text', required: true, doc: `Account, such as \${probe} or a captured value` },
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
    type: 'map',
    doc: 'Values that the last answer has: $.path in JSON or /path in XML to text, /pattern/ or comparison',
  },
  status: {
    type: 'texts',
    doc: 'Status codes that the last answer has; a status of the step itself has to allow them too. 401 to a signed step always ends the waiting',
  },
  every: { type: 'duration', default: 2_000, doc: 'How long it pauses between two requests, at least 100ms' },
  within: { type: 'duration', doc: 'How long it waits; never longer than the monitor has, less what cleanup needs' },
  most: { type: 'integer', min: 1, max: 1_000, default: 100, doc: 'How many requests it sends at most' },
} as const satisfies SettingsSpec

const failsFields = {
  expect: { type: 'map', required: true, doc: 'Values that such an answer has, all of them' },
  says: { type: 'text', required: true, doc: 'What that means, for the message: `a clip known to be bad passed`' },
} as const satisfies SettingsSpec

const stepFields = {
  ...requestFields,
  capture: {
    type: 'map',
    doc: 'Values for later steps: name to $.path, /xml/path, header:Name or cookie:Name. They are taken for secrets, those of answers on the way too',
  },
  signIn: {
    type: 'flag',
    default: false,
    doc: 'It signs in or out: needs no allowWrites, and when it is refused nobody signs in again for a while',
  },
  until: {
    type: 'group',
    fields: untilFields,
    doc: 'GET or HEAD: ask again until an answer has these values; what the step expects and captures is of that answer',
  },
  fails: {
    type: 'groups',
    fields: failsFields,
    doc: 'Answers that are failures of their own; they end the waiting of `until`',
  },
  ftp: {
    type: 'group',
    fields: ftpFields,
    doc: 'Instead of a request: sign in at this FTP server and list a folder over each way to a data connection',
  },
} as const satisfies SettingsSpec

const cleanupFields = {
  ...requestFields,
  undoes: { type: 'text', required: true, doc: 'Name of the step that makes what this one removes' },
} as const satisfies SettingsSpec

/** The settings of an http-steps monitor in svc.yaml. */
export const stepsSettings = {
  url: {
    type: 'url',
    protocols: ['http', 'https'],
    required: true,
    doc: 'What all paths are below: no step leaves it',
  },
  steps: { type: 'groups', required: true, fields: stepFields, doc: 'What is done, in this order' },
  cleanup: {
    type: 'groups',
    fields: cleanupFields,
    doc: 'What is undone, whatever happened, once the step that it undoes was sent and not refused',
  },
  username: {
    type: 'text',
    doc: `For \${username}, and with password for \${basic} (the value of HTTP basic sign-in)`,
  },
  password: { type: 'secret', doc: `For \${password}` },
  token: { type: 'secret', doc: `For \${token}` },
  authorization: {
    type: 'text',
    pattern: authorization,
    doc: `${authorizationDoc}, of every step that has none of its own`,
  },
  signed: {
    type: 'flag',
    default: false,
    doc: 'Send token (as Bearer, or in tokenHeader), or username and password (as Basic), with every step that neither signs in nor has an authorization of its own',
  },
  tokenHeader: { type: 'text', doc: 'With signed: header that takes the bare token instead, e.g. X-Api-Key' },
  values: { type: 'map', doc: `Values that are known beforehand and no secrets: name to text, for \${name}` },
  show: { type: 'texts', default: [], doc: 'Captured names that are no secrets: the id of what may be left behind' },
  allowWrites: { type: 'flag', default: false, doc: 'Send the steps that may write' },
  latency: latencySetting({ warn: 1_000, limit: 5_000 }, 'How long each step may take, with its connection'),
  insecureHttp: { type: 'flag', default: false, doc: 'Send credentials over http:// to another machine too' },
  verify: verifySetting,
  caFile: caFileSetting,
  maxBody: { type: 'bytes', default: 1024 * 1024, doc: 'An answer is read up to here' },
} as const satisfies SettingsSpec

export type StepsSettings = Values<typeof stepsSettings>
export type Step = StepsSettings['steps'][number]
export type CleanupStep = NonNullable<StepsSettings['cleanup']>[number]
export type FtpStep = NonNullable<Step['ftp']>
/** The common fields of steps and cleanup steps. */
export type RequestStep = Values<typeof requestFields>

/** Whether an expectation consists of a single value. */
export const isValue = (expectation: string): boolean => /^\$\{[A-Za-z]\w*\}$/.test(expectation)

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

/** Whether any step sends a credential of svc.yaml. */
export const signsAnywhere = (settings: StepsSettings): boolean =>
  settings.password !== undefined || settings.token !== undefined || settings.steps.some(({ signIn }) => signIn)
