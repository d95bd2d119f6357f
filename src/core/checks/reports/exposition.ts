/**
 * The only writer of Prometheus' exposition formats: the text format 0.0.4 and OpenMetrics 1.0. Callers describe their
 * values as families; only this module knows how each format writes names, comments and escapes.
 */
import { entryOf } from '../../base/lazy.ts'
import type { Family, Labels, Sample } from '../../protocol/service/family.ts'

/** The labels that every reader may see: their values are words of svc. All others may be names of the configuration. */
const openLabels: ReadonlySet<string> = new Set(['depth', 'hop', 'result', 'state', 'trigger', 'type'])

/**
 * The families as a reader sees them who may not see names (S11): without labels whose values may be names, samples that
 * only these tell apart counted together.
 */
export const withoutNames = (families: readonly Family[]): readonly Family[] =>
  families.map((family) => {
    const groups = Map.groupBy(
      family.samples.map(({ labels = {}, ...sample }) => ({
        ...sample,
        labels: Object.fromEntries(Object.entries(labels).filter(([name]) => openLabels.has(name))),
      })),
      ({ labels }) => labelSet(labels),
    )
    const together = merges[family.together ?? 'sum']
    const samples = [...groups.values()].flatMap((group) => {
      const [first] = group
      return first ? [{ ...first, value: group.map(({ value }) => value).reduce((a, b) => together(a, b)) }] : []
    })
    return { ...family, samples }
  })

const merges: Readonly<Record<NonNullable<Family['together']>, (a: number, b: number) => number>> = {
  sum: (a, b) => a + b,
  min: Math.min,
  max: Math.max,
}

export const expositionFormats = ['text', 'openmetrics'] as const
export type ExpositionFormat = (typeof expositionFormats)[number]

export const expositionTypes: Readonly<Record<ExpositionFormat, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

/** The units that OpenMetrics declares. A metric's name ends in its unit. */
const units = ['seconds', 'bytes', 'ratio'] as const

/** Writes families as text and skips those without samples. `exposition` makes whole pages of such texts. */
export const renderFamilies = (families: readonly Family[], format: ExpositionFormat): string =>
  families.map((family) => renderLines(family, family.samples.map(lineOf(family)).join(''), format)).join('')

/** A page of texts that have no family in common. */
export const exposition = (texts: readonly string[], format: ExpositionFormat): string =>
  [...texts, format === 'openmetrics' ? '# EOF\n' : ''].join('')

type Described = Omit<Family, 'samples'>

/** The name of its samples, in both formats. */
const sampleName = ({ name, type }: Described): string =>
  type === 'counter' ? `${name}_total` : type === 'info' ? `${name}_info` : name

/** Writes the line of a sample of a family, which is the same in both formats. `labelText`: `labelSet`, or `labelTexts`. */
export function lineOf(family: Described, labelText = labelSet): (sample: Sample) => string {
  const name = sampleName(family)
  // Joined, it is one text. A template makes a tree of texts, which takes twice the memory of kept lines.
  return ({ labels, value }) => [name, labelText(labels), ' ', numberText(value), '\n'].join('')
}

/** `labelSet` for the samples of one thing, of which several share one object of labels. */
export function labelTexts(): typeof labelSet {
  const texts = new Map<Labels | undefined, string>()
  return (labels) => entryOf(texts, labels, () => labelSet(labels))
}

/** A family with the lines of its samples; an empty text where it has none. */
export function renderLines(family: Described, lines: string, format: ExpositionFormat): string {
  if (lines === '') return ''
  const { name, type, help } = family
  const unit = units.find((one) => name.endsWith(`_${one}`))
  // The text format has no info type, and names a family after its samples.
  const head =
    format === 'openmetrics'
      ? [
          `# TYPE ${name} ${type}`,
          ...(unit ? [`# UNIT ${name} ${unit}`] : []),
          `# HELP ${name} ${escaped(help, /[\\\n"]/g)}`,
        ]
      : [
          `# HELP ${sampleName(family)} ${escaped(help, /[\\\n]/g)}`,
          `# TYPE ${sampleName(family)} ${type === 'info' ? 'gauge' : type}`,
        ]
  return `${head.join('\n')}\n${lines}`
}

/** `{a="1",b="2"}`, or an empty text. Samples of a family with the same text are the same series. */
export function labelSet(labels: Labels = {}): string {
  let pairs = ''
  for (const name of Object.keys(labels)) {
    const text = labels[name]
    if (text === undefined || text === '') continue
    pairs += `${pairs === '' ? '' : ','}${name}="${special.test(text) ? escaped(text, /[\\\n"]/g) : text}"`
  }
  return pairs === '' ? '' : `{${pairs}}`
}

const special = /[\\\n"]/

const escaped = (text: string, special: RegExp): string =>
  text.replace(special, (character) => (character === '\n' ? '\\n' : `\\${character}`))

const numberText = (value: number): string => {
  if (Number.isNaN(value)) return 'NaN'
  return Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : '-Inf'
}
