import { humanTime } from '../../base/zone.ts'
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

/** When a page is read, and on the clock of which zone. */
export type PageClock = {
  /** Milliseconds since 1970. */
  readonly now: number
  /** `serve.timezone`. Absent: that of the machine. */
  readonly zone?: string | undefined
}

/**
 * An instant on the clock of the page: `11:42:05 +01:00`, and the date in front unless it is today. Milliseconds since
 * 1970.
 */
export const instantText = (at: number, { now, zone }: PageClock): string => humanTime(at, { now, zone })

/** The same as an element that programs can read, in UTC. */
export const instant = (at: number, clock: PageClock): Markup => timeElement(at, instantText(at, clock))

/** The same with its date, whatever day it is. */
export const wholeInstant = (at: number, { zone }: Pick<PageClock, 'zone'>): Markup =>
  timeElement(at, humanTime(at, { zone }))

const timeElement = (at: number, text: string): Markup =>
  html`<time datetime="${new Date(at).toISOString().slice(0, 19)}Z">${text}</time>`

/** The id of a monitor in maps: `Sql/postgres orders`, `/host`. */
export const monitorIdOf = ({ type, monitor }: MonitorId): string => `${type ?? ''}/${monitor}`
