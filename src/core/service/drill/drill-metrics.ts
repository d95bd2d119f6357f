import type { Family } from '../../protocol/service/family.ts'
import { type DrillRecord, type Hop, resultOf, withOpened } from '../../watch/drill/index.ts'

/** The families of /metrics about drills. */
export function drillMetrics({
  last,
  overdueSince,
  hasSchedule,
}: {
  /** The latest drill. */
  readonly last: DrillRecord | undefined
  readonly overdueSince: number | undefined
  readonly hasSchedule: boolean
}): readonly Family[] {
  const hops = last?.endedAt === undefined ? [] : withOpened(last.hops, last.opened)
  // Readers of /metrics may not see the hosts of instances: the instances of a receiver count together.
  const grouped = [...Map.groupBy(hops, ({ receiver = '', hop }) => JSON.stringify([receiver, hop])).values()]
  const sample = (of: (group: readonly Hop[]) => number | undefined) =>
    grouped.flatMap((group) => {
      const [first] = group
      const value = of(group)
      if (first === undefined || value === undefined) return []
      return [{ labels: { receiver: first.receiver ?? '', hop: first.hop }, value }]
    })
  const overdue: Family = {
    name: 'svc_drill_overdue',
    type: 'gauge',
    help: '1 if the drill of svc.yaml is overdue by more than 2 days.',
    samples: [{ value: Number(overdueSince !== undefined) }],
  }
  if (last?.endedAt === undefined) return hasSchedule ? [overdue] : []
  return [
    ...(hasSchedule ? [overdue] : []),
    {
      name: 'svc_drill_last_timestamp_seconds',
      type: 'gauge',
      help: 'When the last drill ended.',
      samples: [{ value: Math.floor(last.endedAt / 1_000) }],
    },
    {
      name: 'svc_drill_failed',
      type: 'gauge',
      help: '1 if a hop of the last drill failed.',
      samples: [{ value: Number(resultOf(hops) === 'failed') }],
    },
    {
      name: 'svc_drill_hop_failed',
      type: 'gauge',
      help: '1 if the hop of the last drill failed.',
      samples: sample((group) => Number(group.some(({ result }) => result === 'failed'))),
    },
    {
      name: 'svc_drill_hop_proven',
      type: 'gauge',
      help: '1 if the last drill proved the hop.',
      samples: sample((group) => Number(group.every(({ result }) => result === 'proven'))),
    },
    {
      name: 'svc_drill_hop_seconds',
      type: 'gauge',
      help: 'How long the hop of the last drill took.',
      together: 'max',
      samples: sample((group) => {
        const times = group.flatMap(({ ms }) => ms ?? [])
        return times.length === 0 ? undefined : Math.max(...times) / 1_000
      }),
    },
  ]
}
