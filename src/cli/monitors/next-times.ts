import { readCron, readCronOnce } from '../../core/base/cron.ts'
import { usualZone } from '../../core/base/zone.ts'
import type { Config } from '../../core/config/index.ts'

const shownTimes = 5

/**
 * The next five times of everything in svc.yaml that follows a cron expression, one line each: `silences: Sql/*: Sun
 * 2026-03-29 03:00 +02:00, …, Europe/Berlin`. Loads croner. `now`: milliseconds since 1970.
 */
export function nextTimes(config: Config, now: number): readonly string[] {
  const { drill } = config
  const ofDrill =
    drill?.when === undefined ? [] : [lineOf('drill', readCronOnce(drill.when, drill.timezone), drill.timezone, now)]
  return [...silenceTimes(config, now), ...ofDrill, ...heartbeatTimes(config, now)]
}

/** Those of `silences:`. */
export const silenceTimes = ({ silences = [] }: Pick<Config, 'silences'>, now: number): readonly string[] =>
  silences.map(({ monitors, when, timezone }) =>
    lineOf(`silences: ${monitors.join(', ')}`, readCronOnce(when, timezone), timezone, now),
  )

/** Those of the monitors of heartbeats with a `schedule`. */
export const heartbeatTimes = ({ types }: Pick<Config, 'types'>, now: number): readonly string[] =>
  Object.values(types)
    .flatMap(({ monitors }) => monitors)
    .flatMap(({ name, settings }) => {
      const { schedule, timezone = usualZone } = settings as { readonly schedule?: unknown; readonly timezone?: string }
      return typeof schedule === 'string' ? [lineOf(name, readCron(schedule, timezone), timezone, now)] : []
    })

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
