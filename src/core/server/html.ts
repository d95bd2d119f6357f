import { createHash } from 'node:crypto'

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

/** The complete style of the pages. They load no fonts, images or scripts. */
export const style = `
:root { color-scheme: light dark; --back: #f5f6f8; --card: #fff; --text: #17191c; --quiet: #596069; --line: #dfe2e6;
  --ok: #176b3a; --ok-back: #e2f4e8; --warn: #7a5200; --warn-back: #fdf0d0; --fail: #a3161b; --fail-back: #fde4e4;
  --link: #0b57b0; }
@media (prefers-color-scheme: dark) {
  :root { --back: #111316; --card: #1a1d21; --text: #e9ebee; --quiet: #a2aab4; --line: #2e333a;
    --ok: #7fdca2; --ok-back: #14301f; --warn: #f2c766; --warn-back: #362a0c; --fail: #ff9d9d; --fail-back: #421a1c;
    --link: #8fbfff; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1rem; background: var(--back); color: var(--text);
  font: 1rem/1.45 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; overflow-wrap: anywhere; }
a { color: var(--link); }
h1 { margin: .25rem 0; font-size: 1.5rem; line-height: 1.2; }
h2 { margin: 0; font-size: 1.15rem; }
p { margin: .35rem 0; }
code, pre { font-family: ui-monospace, 'Cascadia Mono', Menlo, Consolas, monospace; font-size: .85rem; }
pre { margin: .35rem 0; padding: .6rem .75rem; background: var(--back); border: 1px solid var(--line);
  border-radius: .4rem; white-space: pre-wrap; }
.quiet { color: var(--quiet); font-size: .9rem; }
header, section, footer { margin-bottom: 1rem; }
header { padding: .9rem 1rem; border-radius: .6rem; background: var(--card); border: 1px solid var(--line);
  border-left: .5rem solid var(--quiet); }
header.ok { border-left-color: var(--ok); }
header.warn, header.unchecked { border-left-color: var(--warn); }
header.fail { border-left-color: var(--fail); }
.types { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 30rem), 1fr));
  align-items: start; margin-bottom: 1rem; }
section { padding: .9rem 1rem; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
.top { display: flex; gap: .75rem; align-items: center; justify-content: space-between; }
.state { display: inline-block; padding: .05rem .55rem; border-radius: 1rem; font-size: .9rem; font-weight: 600;
  white-space: nowrap; color: var(--quiet); background: var(--back); }
.state.ok { color: var(--ok); background: var(--ok-back); }
.state.warn, .state.unchecked { color: var(--warn); background: var(--warn-back); }
.state.fail { color: var(--fail); background: var(--fail-back); }
.causes { margin: .5rem 0; padding: 0; list-style: none; }
.causes li { padding: .35rem .6rem; border-left: .25rem solid var(--line); margin-bottom: .35rem; }
.causes .fail { border-color: var(--fail); }
.causes .warn, .causes .unchecked { border-color: var(--warn); }
table { width: 100%; border-collapse: collapse; margin: .5rem 0; font-size: .95rem; }
th, td { padding: .45rem .4rem .45rem 0; text-align: left; vertical-align: baseline; border-top: 1px solid var(--line); }
th { width: 6rem; font-weight: 600; white-space: nowrap; }
.when { display: inline-block; text-indent: 0; color: var(--quiet); white-space: nowrap; }
td.ask { width: 1%; text-align: right; padding-right: 0; white-space: nowrap; }
button { min-width: 4.5rem; padding: .3rem .75rem; border: 1px solid var(--line); border-radius: .4rem; cursor: pointer;
  background: var(--back); color: var(--link); font: inherit; font-size: .9rem; }
button:hover { border-color: var(--link); }
:is(a, button, summary):focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
@media (max-width: 27rem) {
  h1 { font-size: 1.2rem; } .figures :is(th, td):last-child { display: none; }
  body { padding: .5rem; } section { padding: .75rem; }
  th { width: auto; } .when { white-space: normal; } button { min-width: 0; padding: .3rem .55rem; }
}
.refusal { padding: .6rem .9rem; border: 1px solid var(--fail); border-radius: .6rem; color: var(--fail);
  background: var(--fail-back); }
article { padding: .55rem .75rem; margin: .6rem 0; border: 1px solid var(--line); border-left: .3rem solid var(--warn);
  border-radius: .4rem; }
article.fail { border-left-color: var(--fail); }
article h3 { margin: 0; font-size: 1.02rem; }
.fault { margin: .4rem 0 0; }
.fault b { margin-right: .2rem; }
.fault.fail b { color: var(--fail); }
.fault.warn b { color: var(--warn); }
.fault + .quiet { margin: 0 0 .4rem; }
.victims, .ended { margin: .35rem 0; padding: 0; list-style: none; font-size: .92rem; }
.victims { columns: 20rem; column-gap: 2rem; }
.victims li, .ended li { padding: .2rem 0; break-inside: avoid; }
.victims .when, .ended .when { white-space: normal; }
.availability th, .figures th { width: auto; }
.availability td.fail b { color: var(--fail); }
.availability td.ok b { color: var(--ok); }
.figures th { font-weight: 400; white-space: normal; }
.figures th[scope=col], .availability th[scope=col] { font-weight: 600; color: var(--quiet); font-size: .85rem; }
svg { display: block; width: 100%; height: 2.2rem; }
.bars .ok { fill: #1f9d55; }
.bars .warn { fill: #d99100; }
.bars .fail { fill: #d92d33; }
.bars .none { fill: var(--line); }
.course { width: 8rem; max-width: 25vw; height: 1.6rem; }
.course polyline { fill: none; stroke: var(--link); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
input { padding: .3rem .5rem; border: 1px solid var(--line); border-radius: .4rem; background: var(--back);
  color: var(--text); font: inherit; max-width: 100%; }
label { display: block; font-weight: 600; margin-bottom: .25rem; }
details { border-top: 1px solid var(--line); padding: .35rem 0; }
summary { cursor: pointer; padding: .2rem 0; }
details[open] > summary { font-weight: 600; }
h3 { margin: .6rem 0 .1rem; font-size: .95rem; }
details h3 { padding-left: 1.4rem; text-indent: -1.4rem; }
h3 .when { margin-left: .4rem; font-weight: 400; }
.checks b { font-weight: 600; margin-right: .3rem; }
.checks { margin: 0; padding: 0; list-style: none; font-size: .92rem; }
.checks li { padding: .2rem 0 .2rem 1.4rem; text-indent: -1.4rem; }
.checks .detail { display: block; text-indent: 0; color: var(--quiet); white-space: pre-wrap; }
.mark { display: inline-block; width: 1.4rem; text-indent: 0; font-weight: 700; }
.mark.ok { color: var(--ok); }
.mark.warn, .mark.unchecked { color: var(--warn); }
.mark.fail { color: var(--fail); }
.many { columns: 26rem; column-gap: 2rem; }
.many { margin-top: .5rem; }
.many > div { break-inside: avoid; margin-bottom: .6rem; }
.many > div > :first-child { margin-top: 0; }
nav a { display: inline-block; padding: .3rem .8rem .3rem 0; }
section[id] { scroll-margin-top: 1rem; margin-bottom: 1rem; }
.types section[id] { margin-bottom: 0; }
.paths { margin: .5rem 0; padding: 0; list-style: none; }
.paths li { padding: .15rem 0; }
.verb { display: inline-block; min-width: 3.6rem; margin-right: .35rem; font-size: .8rem; font-weight: 600;
  color: var(--quiet); }
.fields th { width: 45%; font-weight: 400; white-space: normal; }
.fields td:last-child { padding-right: 0; }
footer a { display: inline-block; padding: .3rem .6rem .3rem 0; }
`

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
