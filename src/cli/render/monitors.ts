import type { KindRow, PlanRow, ProfileRow } from '../../core/plan/index.ts'
import { painter, useColour } from '../terminal.ts'
import { type Cell, table } from './listing.ts'

type Stream = { readonly isTTY?: boolean; readonly columns?: number }
type Plan = { readonly type: string; readonly monitors: readonly PlanRow[] }

const cell = (text: string): Cell => [{ text }]

/** Aligned columns on a terminal; in a pipe one record a line, tab-separated. */
function rows(titles: readonly string[], records: readonly (readonly string[])[], stream: Stream): string {
  if (!stream.isTTY) return records.map((record) => record.join('\t')).join('\n')
  const last = titles.length - 1
  const options = {
    width: stream.columns ?? 80,
    shrink: [
      { columns: [last], least: 24 },
      { columns: titles.map((_, at) => at).slice(0, -1), least: 12 },
    ],
    paint: painter(useColour(stream)),
  }
  const columns = titles.map((title) => ({ title }))
  const drawn = table(
    columns,
    records.map((record) => record.map(cell)),
    options,
  )
  return drawn ? drawn.lines.join('\n') : records.map((record) => record.join('  ')).join('\n')
}

/** What would run for each type at a mode. */
export function renderPlans(plans: readonly Plan[], mode: string, stream: Stream): string {
  const titles = ['MONITOR', 'CHECK', 'FROM', 'LOOKS AT']
  const records = ({ type, monitors }: Plan): readonly (readonly string[])[] =>
    monitors.flatMap((monitor) =>
      monitor.Checks.map((check, at) => {
        const line = [at === 0 || !stream.isTTY ? monitor.MonitorName : '', check.Name, check.Depth, check.Doc]
        return stream.isTTY ? line : [type, ...line]
      }),
    )
  if (!stream.isTTY)
    return plans
      .flatMap(records)
      .map((record) => record.join('\t'))
      .join('\n')
  const paint = painter(useColour(stream))
  return plans
    .map((plan) => `${paint('strong', `${plan.type}, ${mode}`)}\n${rows(titles, records(plan), stream)}`)
    .join('\n\n')
}

/** Every kind that svc.yaml may name. */
export const renderKinds = (kinds: readonly KindRow[], stream: Stream): string =>
  rows(
    ['KIND', 'WHAT IT CHECKS'],
    kinds.map(({ name, title }) => [name, title]),
    stream,
  )

/** One kind: its checks, and what svc.yaml may say. */
export function renderKind(kind: KindRow, stream: Stream): string {
  const checks = rows(
    ['CHECK', 'FROM', 'LOOKS AT'],
    kind.checks.map((check) => [check.name, check.depth, check.doc]),
    stream,
  )
  const settings = rows(
    ['SETTING', 'TYPE', 'DEFAULT', 'MEANING'],
    kind.settings.map(({ name, type, default: value, required, doc }) => [
      name,
      type,
      required ? 'required' : (value ?? ''),
      doc,
    ]),
    stream,
  )
  return stream.isTTY ? `${kind.name}: ${kind.title}\n\n${checks}\n\n${settings}` : `${checks}\n${settings}`
}

/** Every profile that comes with svc. */
export const renderProfiles = (profiles: readonly ProfileRow[], stream: Stream): string =>
  rows(
    ['PROFILE', 'FOR', 'WHAT IT CHECKS'],
    profiles.map(({ name, types, title }) => [name, types.join(', '), title]),
    stream,
  )

/** One profile: its monitors, and what is to be given. */
export function renderProfile(profile: ProfileRow, stream: Stream): string {
  const monitors = rows(
    ['MONITOR', 'KIND', 'FROM'],
    profile.monitors.map(({ name, kind, depth }) => [name, kind, depth]),
    stream,
  )
  const parameters = rows(
    ['PARAMETER', 'TYPE', 'DEFAULT', 'MEANING'],
    profile.parameters.map(({ name, type, default: value, required, doc }) => [
      name,
      type,
      required ? 'required' : (value ?? ''),
      doc,
    ]),
    stream,
  )
  return stream.isTTY
    ? `${profile.name}: ${profile.title}\n${profile.doc}\n\n${monitors}\n\n${parameters}`
    : `${monitors}\n${parameters}`
}
