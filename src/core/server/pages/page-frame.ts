import type { Level } from '../../checks/reports/index.ts'
import { html, type Markup, trusted } from '../html.ts'
import { style } from '../style.ts'
import { wholeInstant } from './page-words.ts'

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

/** The sign of a level, with its word for readers who do not see it. */
export const markOf = (level: Level): Markup =>
  html`<span class="mark ${classOf(level)}" role="img" aria-label="${words[level].slice(2)}">${marks[level]}</span>`

/** A level as a label: `✗ unhealthy`. */
export const stateOf = (level: Level | undefined): Markup =>
  html`<span class="state ${classOf(level)}">${level ? words[level] : 'not checked yet'}</span>`

/** A page, and the value of its `Refresh` header: when it loads itself again, and what. Undefined: it does not. */
export type Page = Markup & { readonly refresh: string | undefined }

/** Another node that runs the monitors of the network. */
export type Holder = {
  /** Undefined: unknown, or not for this reader. */
  readonly node: string | undefined
  /** Where its page is. */
  readonly url: string | undefined
}

/** The first line of a page of a node that stands by. */
export function holderLine({ node, url }: Holder, path: '/' | '/board'): Markup {
  if (node === undefined) return html`<p>Other nodes run the monitors of the network.</p>`
  const there = url === undefined ? undefined : new URL(path, url)
  return html`<p>${there ? html`<a href="${there.href}">${node}</a>` : node} runs the monitors of the network.</p>`
}

/** Who reads a page. */
export type PageReader = {
  /** The signed-in user, and how the user signed in. */
  readonly user: string | undefined
  /** Where to sign in, with the way back to this page. Undefined where nobody can. */
  readonly signInHref?: string | undefined
}

/** The frame around the content of a page. */
export type Frame = PageReader & {
  readonly title: string
  /** The title as the page shows it. Absent: its text. */
  readonly heading?: Markup | undefined
  /** The content below the title. */
  readonly summary?: Markup | undefined
  /** Undefined before the first run, and on pages without a state. */
  readonly level: Level | undefined
  readonly base: string
  readonly at: Date
  /** The zone of the times for people: `serve.timezone`. Absent: that of the machine. */
  readonly zone?: string | undefined
  /** Seconds until the page reloads itself, unless `isStill`. Undefined: a page that does not change. */
  readonly reloadEvery: number | undefined
  readonly isStill?: boolean | undefined
  /** The same page without reloads, for readers whom they disturb. */
  readonly stillHref?: string | undefined
  /** The address that a reload shows. Absent: the same page. */
  readonly reloadAs?: string | undefined
  /** Why a form did nothing, or the page cannot show what was requested. */
  readonly notice?: string | undefined
  /** The node that runs the monitors of the network, as far as the reader may know it. Absent: this one. */
  readonly holder?: Holder | undefined
  /** The page of the menu that this is. */
  readonly place?: '/' | '/board' | '/sign-in' | undefined
}

/**
 * The part of the frame that a page about the state of svc takes from the request. The rest follows from what it shows.
 */
export type FrameOfRequest = Omit<
  Frame,
  'title' | 'heading' | 'summary' | 'level' | 'reloadEvery' | 'stillHref' | 'place'
>

/** A whole page. Its policy of referrers lets the browser say that a form comes from this page. */
export function framed(main: Markup, frame: Frame): Page {
  const { title, heading, summary, level, base, at, reloadEvery, isStill = false, notice, place, holder } = frame
  const { stillHref = '/?reload=off' } = frame
  const time = wholeInstant(at.getTime(), frame)
  const reloads = isStill
    ? html` · does not reload`
    : html` · reloads every ${reloadEvery ?? 0} s <a href="${stillHref}">stop<span class="hidden"> reloading this page</span></a>`
  const { markup } = html`${headOf(title, level)}
<body>
<a class="skip" href="#main">Skip to the content</a>
${menu(frame, place)}
<header class="${classOf(level) || 'none'}">
${holder && holderLine(holder, '/')}
<h1>${heading ?? html`${title}`}</h1>
${summary}
<p class="muted">${base} · ${time}${reloadEvery === undefined ? undefined : reloads}</p>
</header>
<main id="main">
${notice === undefined ? undefined : html`<p class="refusal" role="alert">${notice}</p>`}
${main}
${reloadEvery === undefined ? undefined : html`<p class="stale">This page is stale: it is of ${time}. <a href="${frame.reloadAs ?? '/'}">Reload</a></p>`}
</main>
<footer class="muted">
<a href="/livez">liveness</a> <a href="/readyz">readiness</a> <a href="/metrics">metrics</a> <a href="/metadata">interface</a>
</footer>
</body>
</html>
`
  return { markup, refresh: isStill ? undefined : refreshOf(reloadEvery, frame.reloadAs) }
}

/**
 * The value of `Refresh`. A header, because pages of errors and answers to forms reload themselves, too, whatever they
 * contain.
 */
export const refreshOf = (seconds: number | undefined, target: string | undefined): string | undefined =>
  seconds === undefined ? undefined : `${seconds}${target === undefined ? '' : `; url=${target}`}`

/** The head of a page. */
export const headOf = (title: string, level: Level | undefined): Markup => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="same-origin">
<title>${title} · svc</title>
<link rel="icon" href="${icon(level)}">
<style>${trusted(style)}</style>
</head>`

const menu = (
  { user, signInHref }: PageReader,
  place: Frame['place'],
): Markup => html`<nav class="bar" aria-label="Pages">
<b>svc</b> ${menuLink('/', 'Status', place)} ${menuLink('/board', 'Board', place)}
<div class="who">${user === undefined ? (signInHref && place !== '/sign-in' ? html`<a href="${signInHref}">Sign in</a>` : undefined) : html`<span>signed in as ${user}</span> <form method="post" action="/sign-in"><input type="hidden" name="provider" value="logout"><button>Sign out</button></form>`}</div>
</nav>`

const menuLink = (href: string, text: string, place: Frame['place']): Markup =>
  html`<a href="${href}"${trusted(place === href ? ' aria-current="page"' : '')}>${text}</a>`

const colours: Record<Level, string> = { ok: '#1f9d55', warn: '#d99100', 'not checked': '#d99100', fail: '#d92d33' }

/** The favicon: a dot in the color of the level. */
const icon = (level: Level | undefined): string =>
  `data:image/svg+xml,${encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="${level ? colours[level] : '#8a929c'}"/></svg>`,
  )}`
