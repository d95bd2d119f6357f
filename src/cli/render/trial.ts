import type { Trial } from '../../core/service.ts'
import type { Tried } from '../trial-run.ts'
import { showDuration } from './duration.ts'
import { headline, listing, type Screen, type Shown, tabbed } from './listing.ts'
import { type Mark, styles, words } from './marks.ts'

/** The worst of what was found. */
export const levelOf = ({ results }: Trial): Mark =>
  results.some(({ level }) => level === 'fail') ? 'fail' : results.some(({ level }) => level === 'warn') ? 'warn' : 'ok'

export const trialJson = ({ type, monitor, mode, trial }: Tried) => ({
  MonitorName: monitor,
  ServerType: type,
  ExecutionMode: mode,
  DurationMs: Math.round(trial.durationMs * 10) / 10,
  Attempts: trial.attempts,
  Findings: trial.results.map((result) => ({
    MonitoringName: result.check,
    Level: result.level,
    Message: result.message,
    Details: result.details ?? [],
    Fault: result.fault ?? null,
    Observed: result.observed ?? null,
    Unit: result.unit ?? null,
    Limit: result.limit ?? null,
    Address: result.address ?? null,
  })),
})

const said: Record<Mark, string> = { ok: 'is well', warn: 'is well, with warnings', fail: 'failed' }

/** In a pipe: Type, Monitor, Check, Level, Fault, Message. */
export function renderTrial(tried: Tried, screen: Screen): string {
  const { type, monitor, mode, trial } = tried
  if (!screen.isTTY) {
    return trial.results
      .map(({ check, level, fault = '', message }) => tabbed([type, monitor, check, level, fault, message]))
      .join('\n')
  }
  const level = levelOf(trial)
  const rows = trial.results.flatMap((result): Shown[][] => [
    [result.check, { text: words[result.level], style: styles[result.level] }, result.fault ?? '', result.message],
    ...(result.details ?? []).map((detail): Shown[] => ['', '', '', { text: detail, style: 'dim' }]),
  ])
  const attempts = trial.attempts > 1 ? `, attempt ${trial.attempts}` : ''
  return [
    headline(
      level,
      `${monitor} ${said[level]}: ${type}, ${mode}, ${showDuration(trial.durationMs)}${attempts}`,
      screen,
    ),
    '',
    listing({ titles: ['CHECK', 'RESULT', 'FAULT', 'SAW'], yielding: [3, 0] }, rows, screen),
  ].join('\n')
}
