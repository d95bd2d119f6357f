/**
 * The only writer of Prometheus' exposition formats: the text format 0.0.4 and OpenMetrics 1.0. Callers describe their
 * values as families; only this module knows how each format writes names, comments and escapes.
 */

export type Labels = Readonly<Record<string, string | undefined>>
export type Sample = {
  /** Undefined and empty labels are left out: to Prometheus both are the same. */
  readonly labels?: Labels
  readonly value: number
}

export type Family = {
  /** Without the suffix that the format adds for its type: `_total` for a counter, `_info` for an info. */
  readonly name: string
  readonly type: 'gauge' | 'counter' | 'info'
  /** One line. */
  readonly help: string
  readonly samples: readonly Sample[]
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
export function renderFamilies(families: readonly Family[], format: ExpositionFormat): string {
  const filled = families.filter(({ samples }) => samples.length > 0)
  return filled.map((family) => render(family, format)).join('')
}

/** A page of texts that have no family in common. */
export const exposition = (texts: readonly string[], format: ExpositionFormat): string =>
  [...texts, format === 'openmetrics' ? '# EOF\n' : ''].join('')

function render({ name, type, help, samples }: Family, format: ExpositionFormat): string {
  const sample = type === 'counter' ? `${name}_total` : type === 'info' ? `${name}_info` : name
  const unit = units.find((one) => name.endsWith(`_${one}`))
  // The text format has no info type, and names a family after its samples.
  const head =
    format === 'openmetrics'
      ? [
          `# TYPE ${name} ${type}`,
          ...(unit ? [`# UNIT ${name} ${unit}`] : []),
          `# HELP ${name} ${escaped(help, /[\\\n"]/g)}`,
        ]
      : [`# HELP ${sample} ${escaped(help, /[\\\n]/g)}`, `# TYPE ${sample} ${type === 'info' ? 'gauge' : type}`]
  const lines = samples.map(({ labels, value }) => `${sample}${labelSet(labels)} ${numberText(value)}`)
  return `${[...head, ...lines].join('\n')}\n`
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
