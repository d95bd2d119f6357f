import { readCron, readCronOnce, usualZone } from '../../core/base/cron.ts'
import type { Config } from '../../core/config/index.ts'

const shownTimes = 5

/**
 * The next five times of everything in svc.yaml that follows a cron expression, one line each: `silences: Sql/*: Sun
 * 2026-03-29 03:00 +02:00, …, Europe/Berlin`. Loads croner. `now`: milliseconds since 1970.
 */
export function nextTimes({ silences = [], drill, types }: Config, now: number): readonly string[] {
  const lines = silences.map(({ monitors, when, timezone }) =>
    lineOf(`silences: ${monitors.join(', ')}`, readCronOnce(when, timezone), timezone, now),
  )
  if (drill?.when !== undefined)
    lines.push(lineOf('drill', readCronOnce(drill.when, drill.timezone), drill.timezone, now))
  for (const { name, settings } of Object.values(types).flatMap(({ monitors }) => monitors)) {
    const { schedule, timezone = usualZone } = settings as { readonly schedule?: unknown; readonly timezone?: string }
    if (typeof schedule === 'string') lines.push(lineOf(name, readCron(schedule, timezone), timezone, now))
  }
  return lines
}

function lineOf(name: string, cron: ReturnType<typeof readCron>, timezone: string, now: number): string {
  const format = new Intl.DateTimeFormat('en', {
    timeZone: timezone,
    timeZoneName: 'longOffset',
    hourCycle: 'h23',
    weekday: 'short',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  })
  const textOf = (time: number): string => {
    const part = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, value]))
    const offset = part['timeZoneName']?.replace('GMT', '') || '+00:00'
    return `${part['weekday']} ${part['year']}-${part['month']}-${part['day']} ${part['hour']}:${part['minute']} ${offset}`
  }
  const times: string[] = []
  for (let time = cron.after(now); time !== undefined && times.length < shownTimes; time = cron.after(time))
    times.push(textOf(time))
  return `${name}: ${times.join(', ')}, ${timezone}`
}
