import { createHash } from 'node:crypto'
import { style } from './style.ts'

/** Markup that is safe to send. Only `html` makes it, which escapes every value that is not markup itself. */
export type Markup = { readonly markup: string }

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const encoded = (text: string): string => text.replace(/[&<>"']/g, (character) => entities[character] ?? '')

type Value = string | number | Markup | undefined | readonly (Markup | undefined)[]

const written = (value: Value): string => {
  if (value === undefined) return ''
  if (typeof value === 'string' || typeof value === 'number') return encoded(String(value))
  if ('markup' in value) return value.markup
  return value.map((item) => item?.markup ?? '').join('')
}

/** A template that escapes its values, both for text and for attributes in double quotes. */
export const html = (strings: TemplateStringsArray, ...values: readonly Value[]): Markup => ({
  markup: strings.reduce((made, string, i) => made + written(values[i - 1]) + string),
})

/** Marks constant text as markup, e.g. the style sheet. */
export const trusted = (markup: string): Markup => ({ markup })

const policy = (forms: "'none'" | "'self'"): string =>
  [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    'img-src data:',
    "base-uri 'none'",
    `form-action ${forms}`,
    "frame-ancestors 'none'",
  ].join('; ')

/** Allows exactly this style sheet and inline images for the icon. Nothing else may be loaded, run, sent or framed. */
export const pagePolicy = policy("'none'")
/** The same for a page whose forms go to this server. */
export const formPolicy = policy("'self'")
