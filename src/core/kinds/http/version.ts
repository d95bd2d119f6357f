import { type Content, jsonIn } from '../../assert/content.ts'
import { unmet } from '../../assert/expectation.ts'
import { jsonText, parseJsonPath, readJsonPath } from '../../assert/json-path.ts'
import { fail, ok, type Result } from '../../engine/index.ts'
import { count, quoted, said } from '../../net/text.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'
import { answer, judgeFrom, ofAnswer, onHttp } from './connection.ts'

const versionSetting = {
  type: 'group',
  doc: 'Version that must be running; skew is deployment-related',
  fields: {
    expected: { type: 'text', required: true, doc: 'Text, /pattern/ or comparison' },
    json: { type: 'text', default: '$.version', doc: 'JSON path of the version in the body' },
    header: { type: 'text', doc: 'Response header that holds it instead' },
  },
} as const satisfies SettingsSpec[string]

export const version = onHttp({
  ...ofAnswer,
  results: { version: 'The expected version is running' },
  settings: { version: versionSetting, judgeFrom },
  when: ['version'],
  evaluate: ({ content, patterns }, { version }) =>
    version === undefined ? [] : patterns.within(() => evaluateVersion(content, version)),
})

type ExpectedVersion = NonNullable<Values<{ version: typeof versionSetting }>['version']>
type Version = { readonly version: string } | { readonly problem: string }

/** Version skew is deployment-related: SuppressDeploymentErrors lets it pass. */
function evaluateVersion(content: Content, expected: ExpectedVersion): Result<'version'> {
  const { address, hide } = content
  const read = versionIn(content, expected)
  if ('problem' in read) return fail('version', 'data', `${address}: ${read.problem}`, { deployment: true })
  const shown = hide(read.version)
  const more = { deployment: true, facts: { version: said(shown, 80) } }
  const problem = unmet(read.version, expected.expected, hide)
  if (problem !== undefined) return fail('version', 'data', `${address}: the version ${problem}`, more)
  return ok('version', `${address} runs ${quoted(shown, 80)}`, more)
}

/** The version in an answer, or why there is none. */
function versionIn(content: Content, { header, json }: ExpectedVersion): Version {
  if (header !== undefined) {
    const value = content.headers[header.toLowerCase()]
    return value === undefined
      ? { problem: `the answer has no header ${said(header, 64)}, so no version` }
      : { version: value }
  }
  const read = jsonIn(content)
  if ('problem' in read) return read
  const steps = parseJsonPath(json)
  if (steps === undefined) return { problem: `${quoted(json, 80)} is not a JSON path such as $.a.b[0].c` }
  const value = readJsonPath(read.value, steps)
  return value === undefined
    ? { problem: `the answer has no ${said(json, 80)}, so no version` }
    : { version: jsonText(value.value) }
}

export const sameVersion = onHttp({
  depth: 'Advanced',
  results: { 'same version': 'Where `version` is set and all of several addresses are asked: they run the same one' },
  settings: { version: versionSetting },
  when: ['version'],
  async observe(http, { version }, context) {
    const { content } = await answer(http, undefined, context)
    const read = version && versionIn(content, version)
    return { version: read && 'version' in read ? content.hide(read.version) : undefined }
  },
  evaluate: () => [],
  /** A pattern or a comparison lets several versions pass. */
  compare(all) {
    const known = all.flatMap(({ address, observation: { version } }) =>
      version === undefined ? [] : { address, version },
    )
    if (known.length < 2) return []
    // The most common one first: whoever runs another stands out behind it.
    const versions = [...Map.groupBy(known, ({ version }) => version)]
      .map(([version, group]) => ({ version, addresses: group.map(({ address }) => address) }))
      .sort((a, b) => b.addresses.length - a.addresses.length)
    const [first, ...others] = versions
    const more = { deployment: true }
    if (others.length === 0)
      return ok('same version', `${known.length} addresses run ${quoted(first?.version ?? '', 80)}`, more)
    const groups = versions.map(({ version, addresses: [one = '', ...rest] }) => {
      const where = rest.length === 0 ? one : `${one} (and ${count(rest.length, 'other')})`
      return `${quoted(version, 40)} at ${where}`
    })
    const message = `${known.length} addresses run ${versions.length} versions: ${groups.join(', ')}`
    const details = versions.map(({ version, addresses }) => `${quoted(version, 80)} at ${addresses.join(', ')}`)
    return fail('same version', 'data', message, { ...more, details })
  },
})
