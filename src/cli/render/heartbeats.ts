import type { ReportHeartbeatResponse } from '../../core/protocol/index.ts'
import type { HeartbeatFacts } from '../../core/service.ts'
import { aside, headline, listing, moment, pairs, type Screen, type Shown, showDuration, tabbed } from './listing.ts'

const ageMs = ({ at }: HeartbeatFacts, now: Date): number => Math.max(0, now.getTime() - at.getTime())

/** As `--json` shows a heartbeat. */
export const heartbeatJson = (one: HeartbeatFacts, now: Date) => ({
  name: one.name,
  status: one.status,
  message: one.message ?? null,
  version: one.version ?? null,
  at: one.at.toISOString(),
  ageSeconds: Math.floor(ageMs(one, now) / 1_000),
  intervalSeconds: one.intervalMs === undefined ? null : one.intervalMs / 1_000,
  backlog: one.backlog ?? null,
  diskFreePercent: one.diskFreePercent ?? null,
  clockSkewMs: one.skewMs ?? null,
  by: one.who,
})

/** In a pipe: Store, Name, Status, At, AgeSeconds, Version, Backlog, By, Message. */
export function renderHeartbeats(
  heartbeats: readonly HeartbeatFacts[],
  store: string,
  now: Date,
  screen: Screen,
): string {
  if (!screen.isTTY) {
    return heartbeats
      .map((one) =>
        tabbed([
          store,
          one.name,
          one.status,
          one.at.toISOString(),
          String(Math.floor(ageMs(one, now) / 1_000)),
          one.version ?? '',
          one.backlog === undefined ? '' : String(one.backlog),
          one.who,
          one.message ?? '',
        ]),
      )
      .join('\n')
  }
  if (heartbeats.length === 0) {
    return `${headline('warn', 'No agent has reported', screen)}\n${aside(store, screen)}\n\n  One does with:   svc heartbeat NAME`
  }
  const rows = heartbeats.map((one): Shown[] => [
    one.name,
    one.status === 'Ok' ? one.status : { text: one.status, style: 'caution' },
    showDuration(ageMs(one, now)),
    one.version ?? '',
    one.backlog === undefined ? '' : String(one.backlog),
    one.message ?? '',
  ])
  return [
    headline('ok', heartbeats.length === 1 ? '1 agent' : `${heartbeats.length} agents`, screen),
    aside(store, screen),
    '',
    listing({ titles: ['AGENT', 'STATUS', 'AGE', 'VERSION', 'BACKLOG', 'MESSAGE'], yielding: [5, 0, 3] }, rows, screen),
  ].join('\n')
}

/** As `--json` shows what the server said of a heartbeat. */
export const receivedJson = ({ Name, ReceivedAt, ClockSkew }: ReportHeartbeatResponse) => ({
  Name,
  ReceivedAt: ReceivedAt?.toISOString(),
  ClockSkewMs: ClockSkew,
})

/** In a pipe: Target, Name, ReceivedAt. */
export function renderReceived(answer: ReportHeartbeatResponse, target: string, screen: Screen): string {
  const { Name = '', ReceivedAt, ClockSkew = 0 } = answer
  if (!screen.isTTY) return tabbed([target, Name, ReceivedAt?.toISOString() ?? ''])
  const lines: readonly (readonly [string, Shown])[] = [
    ['Target', target],
    ['Received', ReceivedAt === undefined ? '' : moment(ReceivedAt)],
    ['Clock', Math.abs(ClockSkew) < 2_000 ? '' : { text: skewed(ClockSkew), style: 'caution' }],
  ]
  return `${headline('ok', `The heartbeat of ${Name} is received`, screen)}\n${pairs(lines, screen)}`
}

const skewed = (ms: number): string => `${showDuration(Math.abs(ms))} ${ms > 0 ? 'ahead of' : 'behind'} the server's`

export const renderForgotten = (name: string, store: string, screen: Screen): string =>
  screen.isTTY
    ? `${headline('ok', `${name} is forgotten until it reports again`, screen)}\n${pairs([['Store', store]], screen)}`
    : tabbed([store, name, 'removed'])
