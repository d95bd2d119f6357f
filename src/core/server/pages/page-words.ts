import type { ServerType } from '../../protocol/index.ts'
import { html, type Markup } from '../html.ts'

/** A monitor of the page. Without a type it is the machine itself. */
export type MonitorId = { readonly type?: ServerType | undefined; readonly monitor: string }

/** `Sql postgres orders`, `The host`. */
export const monitorName = ({ type, monitor }: MonitorId): string => {
  if (type !== undefined) return `${type} ${monitor}`
  return monitor === 'host' ? 'The host' : monitor
}

/** As a part of a URL: the page reads it back by `monitorIn`. */
export const monitorKey = ({ type, monitor }: MonitorId): string => encodeURIComponent(monitorIdOf({ type, monitor }))

/** The name with a link to the page of the monitor. */
export const monitorLink = (id: MonitorId, text = monitorName(id)): Markup =>
  html`<a href="/?monitor=${monitorKey(id)}">${text}</a>`

/** How long something lasted, for people: `14 s`, `12 min`, `3 h`, `2 d`. */
export function lasted(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`
  return seconds < 48 * 3_600 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`
}

const iso = (ms: number): string => new Date(ms).toISOString()

/** An instant in UTC: `10:42:05 UTC`, and the date in front unless it is that of `now`. Both are milliseconds since 1970. */
export function instantText(at: number, now: number): string {
  const [date = '', time = ''] = iso(at).slice(0, 19).split('T')
  return `${iso(now).startsWith(date) ? '' : `${date} `}${time} UTC`
}

/** The same as an element that programs can read. */
export const instant = (at: number, now: number): Markup =>
  html`<time datetime="${iso(at).slice(0, 19)}Z">${instantText(at, now)}</time>`

/** The id of a monitor in maps: `Sql/postgres orders`, `/host`. */
export const monitorIdOf = ({ type, monitor }: MonitorId): string => `${type ?? ''}/${monitor}`
