import type { Trial } from '../../core/service.ts'
import type { Tried } from '../trial-run.ts'
import { showDuration } from './duration.ts'
import { headline, listing, type Screen, type Shown, tabbed } from './listing.ts'
import { type Mark, styles, words } from './marks.ts'

/** The worst of what was found. */
export const levelOf = ({ findings }: Trial): Mark =>
  findings.some(({ level }) => level === 'fail')
    ? 'fail'
    : findings.some(({ level }) => level === 'warn')
      ? 'warn'
      : 'ok'

export const trialJson = ({ type, monitor, mode, trial }: Tried) => ({
  MonitorName: monitor,
  ServerType: type,
  ExecutionMode: mode,
  DurationMs: Math.round(trial.durationMs * 10) / 10,
  Attempts: trial.attempts,
  Findings: trial.findings.map((finding) => ({
    MonitoringName: finding.check,
    Level: finding.level,
    Message: finding.message,
    Details: finding.details ?? [],
    Fault: finding.fault ?? null,
    Observed: finding.observed ?? null,
    Unit: finding.unit ?? null,
    Limit: finding.limit ?? null,
    Address: finding.address ?? null,
  })),
})

const said: Record<Mark, string> = { ok: 'is well', warn: 'is well, with warnings', fail: 'failed' }

/** In a pipe: Type, Monitor, Check, Level, Fault, Message. */
export function renderTrial(tried: Tried, screen: Screen): string {
  const { type, monitor, mode, trial } = tried
  if (!screen.isTTY) {
    return trial.findings
      .map(({ check, level, fault = '', message }) => tabbed([type, monitor, check, level, fault, message]))
      .join('\n')
  }
  const level = levelOf(trial)
  const rows = trial.findings.flatMap((finding): Shown[][] => [
    [finding.check, { text: words[finding.level], style: styles[finding.level] }, finding.fault ?? '', finding.message],
    ...(finding.details ?? []).map((detail): Shown[] => ['', '', '', { text: detail, style: 'dim' }]),
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
