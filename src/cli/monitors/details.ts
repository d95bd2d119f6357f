import type { KindRow, PlanRow, ProfileRow } from '../../core/plan/index.ts'
import { thisMachine } from '../io/process.ts'
import { painter } from '../io/terminal.ts'
import { type ListOutput, record } from '../render/list.ts'
import { paragraph } from '../render/table.ts'
import { kindChecks, kinds, monitorProfiles, parameters, planChecks, profileMonitors, settings } from './lists.ts'

/** The checks that would run for each type in a mode. */
export function renderPlans(
  plans: readonly { readonly type: string; readonly monitors: readonly PlanRow[] }[],
  mode: string,
  { screen, header = true }: Pick<ListOutput, 'screen' | 'header'>,
): string {
  const paint = painter(screen.colour)
  const head = header && !screen.isTTY ? [record(planChecks.fields)] : []
  const parts = plans.map(({ type, monitors }) => {
    const rows = monitors.flatMap(({ MonitorName, Checks }) => Checks.map((check) => ({ MonitorName, ...check })))
    return screen.isTTY
      ? `${paint('strong', `${type}, ${mode}`)}\n${planChecks.table(rows, screen)}`
      : rows.map((row) => planChecks.record(row, { Type: type })).join('\n')
  })
  return [...head, ...parts].join(screen.isTTY ? '\n\n' : '\n')
}

/** One kind: its checks and its settings for svc.yaml. */
export function renderKind(kind: KindRow, output: ListOutput): string {
  const { json, screen } = output
  if (json) return kinds.document([kind], { target: thisMachine })
  if (!screen.isTTY) {
    return [kindChecks.records(kind.checks, {}, output), settings.records(kind.settings, {}, output)].join('\n')
  }
  const tables = [kindChecks.table(kind.checks, screen), settings.table(kind.settings, screen)]
  return [paragraph(`${kind.name}: ${kind.title}`, screen), ...tables].join('\n\n')
}

/** One built-in profile: its monitors and its parameters. */
export function renderProfile(profile: ProfileRow, output: ListOutput): string {
  const { name, title, doc, monitors } = profile
  const { json, screen } = output
  if (json) return monitorProfiles.document([profile], { target: thisMachine })
  if (!screen.isTTY) {
    return [profileMonitors.records(monitors, {}, output), parameters.records(profile.parameters, {}, output)].join(
      '\n',
    )
  }
  const tables = [profileMonitors.table(monitors, screen), parameters.table(profile.parameters, screen)]
  return [[`${name}: ${title}`, doc].map((text) => paragraph(text, screen)).join('\n'), ...tables].join('\n\n')
}
