import { confirmedLink, type DrillRecord, type DrillRows, keptDrills, linkIn, linkMs } from './report.ts'

/** Drills of this process alone: where there is no store, and while it fails. */
export function drillsInMemory(): DrillRows {
  let drills: readonly DrillRecord[] = []
  const replace = (drill: DrillRecord): void => {
    drills = drills.map((one) => (one.id === drill.id ? drill : one))
  }
  return {
    latest: async (n) => drills.slice(0, n),
    find: async (id) => drills.find((one) => one.id === id),
    begin: async (drill, pauseMs) => {
      const [last] = drills
      if (last && drill.beganAt >= last.beganAt && drill.beganAt - last.beganAt < pauseMs) return false
      const { latest, withLinks } = keptDrills
      const linkSince = drill.beganAt - linkMs
      drills = [drill, ...drills].filter((one, at) => at < (one.beganAt < linkSince ? latest : withLinks))
      return true
    },
    update: async (drill) => {
      const stored = drills.find((one) => one.id === drill.id)
      if (stored) replace({ ...drill, tokens: stored.tokens, opened: stored.opened })
    },
    link: async (tokenHash, since) => linkIn(drills, tokenHash, since),
    confirm: async (tokenHash, at, since) => {
      const link = linkIn(drills, tokenHash, since)
      const confirmed = link && confirmedLink(link, at)
      if (confirmed) replace(confirmed.drill)
      return confirmed ?? link
    },
  }
}
