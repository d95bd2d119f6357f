import { fileProblem } from '../../base/file-errors.ts'
import { readText } from '../../base/files/index.ts'
import { show } from '../../base/format.ts'
import { parseExactly } from '../../base/json.ts'
import { get } from '../../base/net/http/get.ts'
import { deepestJson, readJson } from '../../base/net/json.ts'
import { safeUrl, sanitize } from '../../base/net/text.ts'
import { ProbeError } from '../../base/probe-error.ts'
import type { SettingsSpec, Threshold, Values } from '../../base/settings/index.ts'
import { isMissing } from '../../base/system/files.ts'
import { parseJsonPath, readJsonPath } from '../assert/document.ts'
import {
  type CheckContext,
  checksOn,
  fail,
  machineKind,
  ObservationError,
  ok,
  oneFamilySettings,
  withThreshold,
} from '../engine/index.ts'

const maxBytes = 65_536
const maxVersionLength = 100

/** The check `deployment` records for `version` whether a deployment of plausible age is in progress. */
type Deployment = { inProgress: boolean }
const check = checksOn<Deployment>()

const markerSettings = {
  marker: { type: 'text', observed: true, doc: 'File that exists while a deployment is in progress' },
  markerAge: {
    type: 'threshold',
    unit: 'duration',
    default: { limit: 1_800_000 },
    doc: 'Maximum duration of a deployment; an older marker is a failure that cannot be suppressed',
  },
} as const satisfies SettingsSpec

/** How far a marker may be in the future: the clocks of a share and of this machine differ slightly. Milliseconds. */
const maxAheadMs = 60_000

const isStale = (ageMs: number, { limit }: Threshold): boolean => limit !== undefined && ageMs > limit

/** A deployment in progress is deployment-related (H5). A stale marker is not: that deployment ended badly. */
export const progress = check({
  depth: 'Standard',
  results: { deployment: 'No deployment is in progress, and none was left unfinished' },
  settings: markerSettings,
  applies: (_, { marker = '' }) => marker !== '',
  observe: async (deployment, { marker: path = '', markerAge }, context) => {
    const ageMs = await markerAgeMs(path, context)
    deployment.inProgress = ageMs !== undefined && ageMs >= -maxAheadMs && !isStale(ageMs, markerAge)
    return { path, ageMs }
  },
  evaluate: ({ path, ageMs: sinceMs }, { markerAge }) => {
    if (sinceMs === undefined) return ok('deployment', 'none in progress')
    if (sinceMs < -maxAheadMs) {
      const ahead = `${path} is dated ${show(-sinceMs, 'duration')} in the future`
      return fail('deployment', 'data', `${ahead}: how long the deployment takes is unknown; touch or remove the file`)
    }
    const ageMs = Math.max(0, sinceMs)
    const { limit } = markerAge
    const age = show(ageMs, 'duration')
    const measurement = { value: ageMs, unit: 'milliseconds', limit, bound: 'atMost' } as const
    if (isStale(ageMs, markerAge)) {
      const began = withThreshold(`began ${age} ago and has not ended`, { limit }, 'duration', 'atMost')
      return fail('deployment', 'threshold', `${began}: finish it, or remove ${path}`, { measurement })
    }
    const progress = withThreshold(`in progress for ${age}`, { limit }, 'duration', 'atMost')
    return fail('deployment', 'data', `${progress}: ${path} exists`, {
      measurement,
      deployment: true,
    })
  },
})

/** Milliseconds since the marker was written, negative for one from the future; undefined if there is no marker. Throws ProbeError `data`. */
async function markerAgeMs(path: string, context: CheckContext): Promise<number | undefined> {
  try {
    const { modified } = await context.files('status', { path })
    return context.date().getTime() - modified
  } catch (error) {
    if (isMissing(error)) return undefined
    throw new ProbeError('data', `${path} ${fileProblem(error)}`)
  }
}

const stepsOf = (key: string) => parseJsonPath(key.startsWith('$') ? key : `$.${key}`)
const keyMistake = (key: string): string | undefined =>
  stepsOf(key) ? undefined : 'is not a path such as build.version'

const versionSettings = {
  expected: { type: 'text', doc: 'Expected version or build' },
  expectedFile: { type: 'text', file: 'text', doc: 'File that contains the expected version, instead of `expected`' },
  expectedKey: {
    type: 'text',
    mistake: keyMistake,
    doc: 'Path of the version in `expectedFile`, if that is JSON: build.version',
  },
  versionFile: { type: 'text', observed: true, doc: 'File that contains the deployed version' },
  url: {
    type: 'url',
    protocols: ['http', 'https'],
    doc: 'URL that returns the deployed version, instead of `versionFile`',
  },
  versionKey: {
    type: 'text',
    observed: true,
    mistake: keyMistake,
    doc: 'Path of the version in `versionFile` or in the response, if that is JSON: build.version',
  },
  ...oneFamilySettings,
} as const satisfies SettingsSpec
type VersionSettings = Values<typeof versionSettings>

const hasSource = ({ versionFile, url }: Pick<VersionSettings, 'versionFile' | 'url'>): boolean =>
  versionFile !== undefined || url !== undefined

/** A version mismatch is deployment-related (H5). So is a version that cannot be read during a deployment. */
export const version = check({
  depth: 'Standard',
  results: { version: 'The deployed version is the expected one' },
  settings: versionSettings,
  applies: (_, settings) => hasSource(settings),
  observe: async ({ inProgress }, settings, context) => {
    const { versionFile, url } = settings
    const from = versionFile ?? (url === undefined ? '' : safeUrl(new URL(url)))
    context.step('version', from)
    try {
      const expected =
        settings.expected ?? (await versionInFile(settings.expectedFile ?? '', settings.expectedKey, context))
      const actual =
        url === undefined
          ? await versionInFile(versionFile ?? '', settings.versionKey, context)
          : versionIn(await bodyOf(new URL(url), context), settings.versionKey, from)
      return { actual, expected: expected.trim(), from }
    } catch (error) {
      throw inProgress ? new ObservationError(error, { deployment: true }) : error
    }
  },
  evaluate: ({ actual, expected, from }) => {
    const words = sanitize(actual, maxVersionLength)
    if (actual === expected) return ok('version', `${words}, as expected`, { facts: { version: words } })
    return fail('version', 'data', `${from} reports ${words}, expected ${sanitize(expected, maxVersionLength)}`, {
      deployment: true,
      facts: { version: words },
    })
  },
})

async function versionInFile(path: string, key: string | undefined, context: CheckContext): Promise<string> {
  const file = await readText(context.files, path, maxBytes).catch((error: unknown) => {
    context.signal.throwIfAborted()
    throw new ProbeError('data', `${path} ${fileProblem(error)}`)
  })
  return versionIn(file.text, key, path)
}

async function bodyOf(url: URL, { signal, lookup }: CheckContext): Promise<string> {
  const { status, body } = await get(url, { signal, lookup, maxBytes, accept: 'application/json, text/plain' })
  if (status !== 200) throw new ProbeError('protocol', `${safeUrl(url)} answered ${status}, not 200`)
  return body
}

/** The version in a text, or at a key of a JSON text. Throws ProbeError `data` if there is none. */
export function versionIn(text: string, key: string | undefined, from: string): string {
  if (key === undefined) {
    const whole = text.trim()
    if (whole === '') throw new ProbeError('data', `${from} is empty`)
    return whole
  }
  const steps = stepsOf(key)
  if (!steps) throw new ProbeError('data', `${key} is not a path such as build.version`)
  // A build number has as many digits as a date to the millisecond.
  const read = readJson(text, deepestJson, parseExactly)
  if ('problem' in read) {
    const what = read.problem === 'tooDeep' ? `nests JSON more than ${deepestJson} deep` : 'is not JSON'
    throw new ProbeError('data', `${from} ${what}`)
  }
  const value = readJsonPath(read.json, steps)?.value
  const part = typeof value === 'number' || typeof value === 'bigint' ? String(value) : value
  if (typeof part !== 'string' || part.trim() === '') throw new ProbeError('data', `${from} has no text at ${key}`)
  return part.trim()
}

/** Rejects settings that would silently compare nothing. */
function validate(settings: VersionSettings & Values<typeof markerSettings>): string | undefined {
  const { expected, expectedFile, versionFile, url, marker } = settings
  const isExpected = expected !== undefined || expectedFile !== undefined
  const source = hasSource(settings)
  if (versionFile !== undefined && url !== undefined) {
    return 'has both versionFile and url: remove one of them'
  }
  if (expected !== undefined && expectedFile !== undefined) {
    return 'has both expected and expectedFile: remove one of them'
  }
  if (source && !isExpected) return 'has no expected version: add expected or expectedFile'
  if (isExpected && !source) return 'has no source of the deployed version: add versionFile or url'
  if (!source && marker === undefined) {
    return 'has nothing to check: add expected with versionFile or url, or add marker'
  }
  return undefined
}

/** SuppressDeploymentErrors acts on this kind (H5). */
export default machineKind({
  name: 'deployment',
  title: 'The deployed version is the expected one, and no deployment is in progress',
  cost: {
    unit: 'HTTP requests',
    Basic: [0, 0],
    Standard: [0, 0],
    Advanced: [0, 0],
    adds: [{ setting: 'url', from: 'Standard', connections: 1, requests: 1 }],
  },
  settings: versionSettings,
  target: ({ url }) => (url ? { host: new URL(url).hostname } : {}),
  validate,
  open: (): Deployment => ({ inProgress: false }),
  checks: [progress, version],
})
