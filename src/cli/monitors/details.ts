import type { KindRow, PlanRow, ProfileRow } from '../../core/plan/index.ts'
import type { Screen } from '../io/io.ts'
import { painter } from '../io/terminal.ts'
import type { ListOutput, RecordList } from '../render/list.ts'
import { paragraph } from '../render/table.ts'
import { kindChecks, parameters, planChecks, profileMonitors, settings } from './lists.ts'

const records = <Row>(list: RecordList<Row, never>, rows: readonly Row[]): string =>
  rows.map((row) => list.record(row, {})).join('\n')

/** The checks that would run for each type in a mode. */
export function renderPlans(
  plans: readonly { readonly type: string; readonly monitors: readonly PlanRow[] }[],
  mode: string,
  screen: Screen,
): string {
  const paint = painter(screen.colour)
  return plans
    .map(({ type, monitors }) => {
      const rows = monitors.flatMap(({ MonitorName, Checks }) => Checks.map((check) => ({ MonitorName, ...check })))
      return screen.isTTY
        ? `${paint('strong', `${type}, ${mode}`)}\n${planChecks.table(rows, screen)}`
        : rows.map((row) => planChecks.record(row, { Type: type })).join('\n')
    })
    .join(screen.isTTY ? '\n\n' : '\n')
}

/** One kind: its checks and its settings for svc.yaml. */
export function renderKind(kind: KindRow, { json, screen }: ListOutput): string {
  if (json) return JSON.stringify(kind)
  if (!screen.isTTY) return [records(kindChecks, kind.checks), records(settings, kind.settings)].join('\n')
  const tables = [kindChecks.table(kind.checks, screen), settings.table(kind.settings, screen)]
  return [paragraph(`${kind.name}: ${kind.title}`, screen), ...tables].join('\n\n')
}

/** One built-in profile: its monitors and its parameters. */
export function renderProfile(profile: ProfileRow, { json, screen }: ListOutput): string {
  const { name, title, doc, monitors } = profile
  if (json) return JSON.stringify(profile)
  if (!screen.isTTY) return [records(profileMonitors, monitors), records(parameters, profile.parameters)].join('\n')
  const tables = [profileMonitors.table(monitors, screen), parameters.table(profile.parameters, screen)]
  return [[`${name}: ${title}`, doc].map((text) => paragraph(text, screen)).join('\n'), ...tables].join('\n\n')
}
