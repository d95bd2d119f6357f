import type { Level } from '../reports/index.ts'
import { html, type Markup, style, trusted } from './html.ts'

export const words: Record<Level, string> = {
  ok: '✓ healthy',
  warn: '! warning',
  'not checked': '? not fully checked',
  fail: '✗ unhealthy',
}
export const marks: Record<Level, string> = { ok: '✓', warn: '!', 'not checked': '?', fail: '✗' }
/** CSS classes. */
const classes: Record<Level, string> = { ok: 'ok', warn: 'warn', 'not checked': 'unchecked', fail: 'fail' }
export const classOf = (level: Level | undefined): string => (level ? classes[level] : '')

/** What stands around everything that the page shows. */
export type Frame = {
  readonly title: string
  /** Undefined before the first run. */
  readonly level: Level | undefined
  readonly base: string
  /** The signed-in user, and how the user signed in. */
  readonly user: string | undefined
  readonly at: Date
  /** Seconds until the page reloads itself, unless `isStill`. */
  readonly reloadEvery: number
  readonly isStill?: boolean | undefined
  /** The same page without reloads, for readers whom they disturb. */
  readonly stillHref?: string | undefined
  /** What it then shows. Absent: the same. */
  readonly reloadAs?: string | undefined
  /** Why a form did nothing, or the page cannot show what was requested. */
  readonly notice?: string | undefined
}

/** A whole page. Its policy of referrers lets the browser say that a form comes from this page. */
export function framed(main: Markup, frame: Frame): Markup {
  const { title, level, base, user, at, reloadEvery, reloadAs, notice, isStill = false } = frame
  const { stillHref = '/?reload=off' } = frame
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="same-origin">
${isStill ? undefined : html`<meta http-equiv="refresh" content="${reloadEvery}${reloadAs === undefined ? '' : `; url=${reloadAs}`}">`}
<title>${title} · svc</title>
<link rel="icon" href="${icon(level)}">
<style>${trusted(style)}</style>
</head>
<body>
<header class="${classOf(level) || 'none'}">
<h1>${title}</h1>
<p class="quiet">${base} · ${at.toISOString().slice(0, 19).replace('T', ' ')} UTC · ${isStill ? html`does not reload` : html`reloads every ${reloadEvery} s <a href="${stillHref}">stop</a>`}${user === undefined ? '' : ` · signed in as ${user}`}</p>
</header>
<main>
${notice === undefined ? undefined : html`<p class="refusal" role="alert">${notice}</p>`}
${main}
</main>
<footer class="quiet">
<a href="/livez">liveness</a> <a href="/readyz">readiness</a> <a href="/metrics">metrics</a> <a href="/metadata">interface</a>
</footer>
</body>
</html>
`
}

const colours: Record<Level, string> = { ok: '#1f9d55', warn: '#d99100', 'not checked': '#d99100', fail: '#d92d33' }

/** The favicon: a dot in the color of the level. */
const icon = (level: Level | undefined): string =>
  `data:image/svg+xml,${encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="${level ? colours[level] : '#8a929c'}"/></svg>`,
  )}`
