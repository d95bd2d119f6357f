import type { ConfiguredFiles } from '../../../base/files/index.ts'
import { sanitizeText } from '../../../base/sanitize.ts'
import { Secret, type Template } from '../../../base/settings/index.ts'
import { humanTime } from '../../../base/zone.ts'
import { isOver, type Notice } from '../receiver.ts'
import type { ReceiverConfig } from '../settings.ts'
import type { ReceiverContext } from './kind.ts'
import { boundedText, detailOf, identityOf, isDrill, monitorText, severityOf, summaryOf } from './message.ts'

/** Everything that the texts of a template may be made of. */
type Facts = {
  /** The worst of the message is the first. */
  readonly notices: readonly [Notice, ...Notice[]]
  readonly config: Pick<ReceiverConfig, 'details'>
  readonly context: Pick<ReceiverContext, 'isTest'>
}

/** The placeholders, and their values: those of the worst notice, besides `summary` and `count`. */
const placeholders = {
  summary: ({ notices, context }) =>
    context.isTest === true ? 'TEST of svc notify test: nothing has failed' : notices.map(summaryOf).join('; '),
  count: ({ notices }) => String(notices.length),
  status: ({ notices }) => (notices.every(isOver) ? 'resolved' : 'firing'),
  severity: ({ notices: [first], context }) =>
    context.isTest === true || isDrill(first) ? 'info' : isOver(first) ? 'ok' : severityOf(first),
  server: ({ notices: [{ subject }] }) => identityOf(subject)['server'] ?? '',
  type: ({ notices: [{ subject }] }) => identityOf(subject)['type'] ?? 'host',
  monitor: ({ notices: [{ subject }] }) => monitorText(subject),
  check: ({ notices: [{ subject }] }) => identityOf(subject)['check'] ?? '',
  message: ({ notices: [first], config, context }) =>
    context.isTest === true || isDrill(first) ? first.text : detailOf(first, config.details),
  since: ({ notices: [{ beganAt, timezone }] }) => humanTime(beganAt, { zone: timezone }),
  link: ({ notices: [{ url = '' }] }) => url,
  incident: ({ notices: [{ incident }] }) => incident,
} as const satisfies Readonly<Record<string, (facts: Facts) => string>>
type Placeholder = keyof typeof placeholders

const names = Object.keys(placeholders)
const marks = /\{([A-Za-z]\w*)\}/g
const isPlaceholder = (name: string): name is Placeholder => Object.hasOwn(placeholders, name)

/** Why a text of a template can never be right, or undefined: the message completes its path. */
export function templateMistake(text: string): string | undefined {
  const other = [...text.matchAll(marks)].map(([, name = '']) => name).find((name) => !isPlaceholder(name))
  return other === undefined
    ? undefined
    : `contains {${other}}, which stands for nothing: use ${names.map((name) => `{${name}}`).join(', ')}`
}

/**
 * The template with its placeholders replaced and its secrets read. Values are put in after the template was parsed, and
 * one is never read again, so that no text of a peer adds to its structure or names a placeholder. Rejects with a
 * ProbeError that names a secret which cannot be read.
 */
export async function filled(
  template: Template,
  facts: Facts,
  files: ConfiguredFiles,
  secrets: string[],
): Promise<unknown> {
  if (template instanceof Secret) {
    const secret = (await template.reveal(files)).trim()
    secrets.push(secret)
    return secret
  }
  if (typeof template === 'string') {
    return template.replaceAll(marks, (whole, name: string) =>
      isPlaceholder(name) ? boundedText(sanitizeText(placeholders[name](facts))) : whole,
    )
  }
  if (typeof template !== 'object' || template === null) return template
  if (isList(template)) return await Promise.all(template.map(async (one) => await filled(one, facts, files, secrets)))
  const entries = Object.entries(template).map(
    async ([key, value]) => [key, await filled(value, facts, files, secrets)] as const,
  )
  return Object.fromEntries(await Promise.all(entries))
}

const isList = (template: Template): template is readonly Template[] => Array.isArray(template)
