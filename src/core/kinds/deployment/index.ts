import { parseJsonPath, readJsonPath } from '../../assert/json-path.ts'
import {
  type Broken,
  type CheckContext,
  evaluateBroken,
  fail,
  monitorKind,
  ok,
  part,
  type Result,
} from '../../engine/index.ts'
import { show } from '../../format.ts'
import { get } from '../../net/http/get.ts'
import { safeUrl, said } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import type { Values } from '../../settings/index.ts'
import { fileTrouble, isMissing, readSmallFile } from '../../system/files.ts'

const settings = {
  expected: { type: 'text', doc: 'The version or build that should run' },
  expectedFile: { type: 'text', doc: 'File that says it, in place of expected' },
  expectedKey: { type: 'text', doc: 'Where it stands in that file, if that is JSON: a path such as build.version' },
  versionFile: { type: 'text', doc: 'File that says which version is deployed' },
  url: { type: 'url', protocols: ['http', 'https'], doc: 'Address that says it, in place of versionFile' },
  versionKey: {
    type: 'text',
    doc: 'Where it stands in that file or answer, if that is JSON: a path such as build.version',
  },
  marker: { type: 'text', doc: 'File that exists while a deployment is in progress' },
  markerAge: {
    type: 'threshold',
    unit: 'duration',
    default: { limit: 1_800_000 },
    doc: 'How long a deployment may take; an older marker is a failure that nothing suppresses',
  },
} as const
type DeploymentSettings = Values<typeof settings>

export type DeploymentSeen =
  | { readonly see: 'marker'; readonly path: string; readonly ageMs: number | undefined }
  | { readonly see: 'version'; readonly found: string; readonly expected: string; readonly from: string }
  /** `inProgress`: a deployment of sane age is under way, so a version that cannot be read is its doing. */
  | (Broken & { readonly inProgress: boolean })

const mostBytes = 65_536
const shown = 100

/**
 * The monitor that SuppressDeploymentErrors acts on (H5): a version that differs and a deployment in
 * progress are deployment-related; so is a version that cannot be read meanwhile. A marker that was
 * left behind is not: that deployment has ended badly.
 */
export default monitorKind({
  name: 'deployment',
  title: 'The deployed version is the expected one, and no deployment is in progress',
  settings,
  checks: [
    { name: 'deployment', depth: 'Standard', doc: 'No deployment is in progress, or one was left behind' },
    { name: 'version', depth: 'Standard', doc: 'Found and expected version are the same text' },
  ],
  target: (settings) => (settings.url ? { host: new URL(settings.url).hostname } : {}),
  async *observe(settings, context): AsyncGenerator<DeploymentSeen> {
    context.step('deployment')
    let inProgress = false
    if (settings.marker) {
      const { marker } = settings
      const seen = await part('deployment', context, () => lookAtMarker(marker, context))
      inProgress = seen.see === 'marker' && seen.ageMs !== undefined && !isStale(seen.ageMs, settings)
      yield seen.see === 'broken' ? { ...seen, inProgress: false } : seen
    }
    if (!hasSource(settings)) return
    const from = settings.versionFile ?? (settings.url === undefined ? '' : safeUrl(new URL(settings.url)))
    context.step('version', from)
    const seen = await part('version', context, async () => lookAtVersion(settings, context, from), from)
    yield seen.see === 'broken' ? { ...seen, inProgress } : seen
  },
  evaluate: evaluateDeployment,
  validate,
})

/** Settings that would silently compare nothing are an error. */
function validate(settings: DeploymentSettings): string | undefined {
  const { expected, expectedFile, versionFile, url, marker } = settings
  const wanted = expected !== undefined || expectedFile !== undefined
  const source = hasSource(settings)
  if (versionFile !== undefined && url !== undefined) {
    return 'gives both versionFile and url: the version can come from one of them'
  }
  if (expected !== undefined && expectedFile !== undefined) {
    return 'gives both expected and expectedFile: give one of them'
  }
  if (source && !wanted) return 'does not say which version is expected: give expected or expectedFile'
  if (wanted && !source) return 'does not say where the version is found: give versionFile or url'
  if (!source && marker === undefined) {
    return 'does not say what to look at: give expected with versionFile or url, or a marker'
  }
  return undefined
}

const hasSource = ({ versionFile, url }: DeploymentSettings): boolean => versionFile !== undefined || url !== undefined

async function lookAtMarker(path: string, context: CheckContext): Promise<Exclude<DeploymentSeen, Broken>> {
  const { stat } = await import('node:fs/promises')
  try {
    const { mtime } = await stat(path)
    return { see: 'marker', path, ageMs: Math.max(0, context.date().getTime() - mtime.getTime()) }
  } catch (error) {
    if (isMissing(error)) return { see: 'marker', path, ageMs: undefined }
    throw new ProbeError('data', `${path} ${fileTrouble(error)}`)
  }
}

async function lookAtVersion(
  settings: DeploymentSettings,
  context: CheckContext,
  from: string,
): Promise<Exclude<DeploymentSeen, Broken>> {
  const expected = settings.expected ?? (await inFile(settings.expectedFile ?? '', settings.expectedKey, context))
  const found =
    settings.url === undefined
      ? await inFile(settings.versionFile ?? '', settings.versionKey, context)
      : versionIn(await answerOf(settings.url, context), settings.versionKey, from)
  return { see: 'version', found, expected: expected.trim(), from }
}

async function inFile(path: string, key: string | undefined, context: CheckContext): Promise<string> {
  const file = await readSmallFile(path, mostBytes, context.signal).catch((error: unknown) => {
    context.signal.throwIfAborted()
    throw new ProbeError('data', `${path} ${fileTrouble(error)}`)
  })
  return versionIn(file.text, key, path)
}

async function answerOf(address: string, context: CheckContext): Promise<string> {
  const { signal, lookup } = context
  const url = new URL(address)
  const { status, body } = await get(url, {
    signal,
    lookup,
    maxBytes: mostBytes,
    accept: 'application/json, text/plain',
  })
  if (status !== 200) throw new ProbeError('protocol', `${safeUrl(url)} answered ${status}, not 200`)
  return body
}

/** The version in a text, or at a key of a JSON text. Throws ProbeError `data` when there is none. */
export function versionIn(text: string, key: string | undefined, from: string): string {
  if (key === undefined) {
    const version = text.trim()
    if (version === '') throw new ProbeError('data', `${from} is empty`)
    return version
  }
  const steps = parseJsonPath(key.startsWith('$') ? key : `$.${key}`)
  if (!steps) throw new ProbeError('data', `${key} is not a path such as build.version`)
  let value: unknown
  try {
    value = readJsonPath(JSON.parse(text), steps)?.value
  } catch {
    throw new ProbeError('data', `${from} is not JSON`)
  }
  const found = typeof value === 'number' ? String(value) : value
  if (typeof found !== 'string' || found.trim() === '') throw new ProbeError('data', `${from} has no text at ${key}`)
  return found.trim()
}

const isStale = (ageMs: number, { markerAge }: DeploymentSettings): boolean =>
  markerAge.limit !== undefined && ageMs > markerAge.limit

export function evaluateDeployment(seen: DeploymentSeen, settings: DeploymentSettings): Result {
  switch (seen.see) {
    case 'marker':
      return evaluateMarker(seen, settings)
    case 'version': {
      const found = said(seen.found, shown)
      const expected = said(seen.expected, shown)
      return seen.found === seen.expected
        ? ok('version', `${found}, as expected`)
        : fail('version', 'data', `${seen.from} says ${found}, expected ${expected}`, { deployment: true })
    }
    case 'broken': {
      const result = evaluateBroken(seen)
      return seen.inProgress ? { ...result, deployment: true } : result
    }
  }
}

function evaluateMarker(
  { path, ageMs }: Extract<DeploymentSeen, { see: 'marker' }>,
  settings: DeploymentSettings,
): Result {
  if (ageMs === undefined) return ok('deployment', 'none in progress')
  const { limit } = settings.markerAge
  const age = show(ageMs, 'duration')
  const figures: Partial<Result> = { measurement: { value: ageMs, unit: 'milliseconds', limit } }
  if (!isStale(ageMs, settings)) {
    const allowed = limit === undefined ? '' : ` (limit ${show(limit, 'duration')})`
    return fail('deployment', 'data', `in progress for ${age}${allowed}: ${path} exists`, {
      ...figures,
      deployment: true,
    })
  }
  const said = `began ${age} ago and has not ended (limit ${show(limit ?? 0, 'duration')}): finish it, or remove ${path}`
  return fail('deployment', 'threshold', said, figures)
}
