/** How often svc looks whether its configuration has changed. Milliseconds, like all times here. */
export const lookEveryMs = 2_000
/** For how long nothing may have changed before a change is read: an editor may save twice, and a copy takes time. */
export const settledMs = 5_000
/** For how long a change may wait before that is an incident. */
export const mayWaitMs = 600_000

/** The files of a configuration: for each question to the file system, a digest of its answer. */
export type Stamp = ReadonlyMap<string, string>

/** The files of the configuration in force, and those that were seen since. `now` everywhere: monotonic. */
export type ConfigWatch = {
  /** As the load of the configuration in force read them. */
  readonly inForce: Stamp
  /** As the last look found them, with those that only a newer svc.yaml includes. */
  readonly latest: Stamp
  /** Since when nothing has changed. */
  readonly since: number
  /** The change that was read and must not be put into force by itself. */
  readonly waiting?: { readonly files: Stamp; readonly since: number; readonly reason: string } | undefined
}

/** The watch over the files that a load has just read and put into force. */
export const newConfigWatch = (inForce: Stamp, now: number): ConfigWatch => ({ inForce, latest: inForce, since: now })

/** Whether one stamp says everything that the other one does. */
const says = (stamp: Stamp, other: Stamp): boolean =>
  [...other].every(([question, answer]) => stamp.get(question) === answer)

/** `latest`: the files of `watch.latest` as they are now. */
export const afterLook = (watch: ConfigWatch, latest: Stamp, now: number): ConfigWatch =>
  says(latest, watch.latest) ? watch : { ...watch, latest, since: now }

/** Whether there is a change to read. */
export const isToRead = ({ inForce, latest, since, waiting }: ConfigWatch, now: number): boolean =>
  now - since >= settledMs && !says(latest, waiting?.files ?? inForce)

/** Whether a load has read only files that had settled. If not, nothing may follow from it. */
export const isSettled = ({ latest }: ConfigWatch, read: Stamp): boolean => says(latest, read)

/** Adds the files that a load found and no look before it: they have to settle, too. */
export const afterNewFiles = (watch: ConfigWatch, read: Stamp, now: number): ConfigWatch => ({
  ...watch,
  latest: new Map([...watch.latest, ...read]),
  since: now,
})

/** The change was read, and has to wait. The time of one that waited before it goes on. */
export const afterRefusal = (watch: ConfigWatch, reason: string, now: number): ConfigWatch => ({
  ...watch,
  waiting: { files: watch.latest, since: watch.waiting?.since ?? now, reason },
})

/** Why svc.yaml has not been in force for too long. Undefined: it has not waited for so long. */
export const overdue = ({ waiting }: ConfigWatch, now: number): string | undefined =>
  waiting && now - waiting.since >= mayWaitMs ? waiting.reason : undefined

/** The consequences of a change that a mistake in the file could have as well. */
export type Consequences = {
  /** The files before and after it, if another one takes the place of svc.yaml. */
  readonly replaces?: { readonly before: string; readonly after: string } | undefined
  /** `Type/MonitorName` of the monitors that it removes, without those that go on under another name. */
  readonly removed: readonly string[]
  /** How many monitors there are. */
  readonly of: number
  /** The monitors with an open incident that it ends. */
  readonly ends: readonly string[]
  /** The receivers that it removes. */
  readonly receivers: readonly string[]
}

/** Names beyond these say no more. */
const maxNames = 5
const names = (all: readonly string[]): string =>
  [...all.slice(0, maxNames), ...(all.length > maxNames ? [`… and ${all.length - maxNames} more`] : [])].join(', ')

/** Why a valid change is not put into force by itself. Undefined: it is. */
export function reasonToWait({ replaces, removed, of, ends, receivers }: Consequences): string | undefined {
  const why = [
    ...(replaces ? [`${replaces.after} takes the place of ${replaces.before}`] : []),
    ...(ends.length > 0 ? [`it ends the open incident of ${names(ends)}`] : []),
    ...(removed.length > of / 10 ? [`it removes ${removed.length} of ${of} monitors: ${names(removed)}`] : []),
    ...(receivers.length > 0 ? [`it removes the receiver ${names(receivers)}`] : []),
  ]
  return why.length === 0 ? undefined : `${why.join('; ')} (if this is intended: svc serve reload)`
}
