/** Markup that is safe to send: made only by `html`, which escapes every value that is not markup itself. */
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

/** A template whose values are escaped, for text and for attribute values in double quotes. */
export const html = (strings: TemplateStringsArray, ...values: readonly Value[]): Markup => ({
  markup: strings.reduce((made, string, i) => made + written(values[i - 1]) + string),
})

/** Text of ours that is markup already, e.g. the style sheet. */
export const trusted = (markup: string): Markup => ({ markup })
