import type * as Nodes from '../../../src/core/watch/nodes/index.ts'
import type * as Outbox from '../../../src/core/watch/outbox/index.ts'
import type * as States from '../../../src/core/watch/states/index.ts'
import { firstSeedOf, type Plant, plantedFolder } from './planted-folder.ts'
import { type Subject, shipped, simulate } from './simulated-nodes.ts'

/** `folder`: of `src/core/watch`. */
type NodesPlant = Plant & {
  readonly folder: 'nodes' | 'states' | 'outbox'
  /** Found where nodes lose routes to single peers. */
  readonly losesRoutes?: true
}
export const plants: readonly NodesPlant[] = [
  {
    what: 'each node takes over what others own',
    folder: 'nodes',
    file: 'table.ts',
    from: 'return [...keys].filter((key) => ownerOf(key) === node)',
    to: 'return [...keys].filter((key) => ownerOf(key) !== undefined)',
    rule: 'memory and store agree',
  },
  {
    what: 'an epoch that is over may write',
    folder: 'nodes',
    file: 'table.ts',
    from: 'return row?.epoch === epoch && this.#isLive(row, now) && row.writes >= acknowledged',
    to: 'return row !== undefined && row.writes >= acknowledged && now > epoch',
    rule: 'late epochs',
    seed: 111,
  },
  {
    what: 'a node keeps its epoch although its row has expired',
    folder: 'nodes',
    file: 'table.ts',
    from: 'goesOn && this.#isLive(before, now)\n',
    to: 'goesOn\n',
    rule: 'late epochs',
  },
  {
    what: 'a late renewal ends the epoch of its sender',
    folder: 'nodes',
    file: 'table.ts',
    from: '(before.epoch === epoch || before.epoch > latestEpoch)',
    to: 'before.epoch === epoch',
    rule: 'late epochs',
  },
  {
    what: 'a late renewal brings back a node that has left',
    folder: 'nodes',
    file: 'table.ts',
    from: ' || (isOwn && before.leftAt !== undefined)',
    to: '',
    rule: 'late epochs',
    seed: 670,
  },
  {
    what: 'nobody compares stamps',
    folder: 'nodes',
    file: 'table.ts',
    from: 'filter((key) => this.#stamps.get(key) !== fence.epoch)',
    to: 'filter((key) => !this.#stamps.has(key))',
    rule: 'one owner stores',
  },
  {
    what: 'a new owner begins without what is stored',
    folder: 'nodes',
    file: 'member.ts',
    from: "if (keys.size > 0)\n      this.#effects.push({\n        type: 'adopt',",
    to: "if (keys.size < 0)\n      this.#effects.push({\n        type: 'adopt',",
    rule: 'memory and store agree',
  },
  {
    what: 'what is given up stays in memory',
    folder: 'nodes',
    file: 'member.ts',
    from: 'for (const key of keys) this.#keys.delete(key)\n',
    to: '',
    rule: 'one node runs it',
  },
  {
    what: 'a lease begins with the answer',
    folder: 'nodes',
    file: 'member.ts',
    from: 'this.#lease = afterRenewal(this.#lease, answer, request.sentAt)',
    to: 'this.#lease = afterRenewal(this.#lease, answer, now)',
    rule: 'a lease ends in time',
  },
  {
    what: 'an isolated node keeps what it runs',
    folder: 'nodes',
    file: 'owner.ts',
    from: 'const connected = rows.filter(({ isIsolated }) => !isIsolated)',
    to: 'const connected = rows',
    rule: 'somebody runs it',
    seed: 6,
  },
  {
    what: 'what a node told by itself is forgotten',
    folder: 'nodes',
    file: 'member.ts',
    from: 'this.#news = [...this.#news, ...news]',
    to: '',
    rule: 'each incident ends',
    seed: 15,
  },
  {
    what: 'nobody notices that the store has gone back',
    folder: 'nodes',
    file: 'member.ts',
    from: 'answer.writes < request.acknowledged) this.#wentBack(answer.writes)',
    to: 'answer.writes < request.acknowledged) this.#acknowledged = answer.writes',
    rule: 'memory and store agree',
    seed: 5,
  },
  {
    what: 'a write counts although the store lacks the one before',
    folder: 'nodes',
    file: 'table.ts',
    from: ' && row.writes >= acknowledged\n',
    to: ' && acknowledged >= 0\n',
    rule: 'memory and store agree',
    seed: 23,
  },
  {
    what: 'a monitor that only other nodes know is removed',
    folder: 'nodes',
    file: 'member.ts',
    from: 'return !this.#keys.has(key) || isByItself(this.#mode)',
    to: 'return isByItself(this.#mode)',
    rule: 'no end while it stands',
  },
  {
    what: 'two nodes share monitors that depend on each other',
    folder: 'nodes',
    file: 'owner.ts',
    from: 'const group = first.groups.get(key) ?? first.formerly.get(key) ?? key',
    to: 'const group = first.formerly.get(key) ?? key',
    rule: 'one node has a group',
  },
  {
    what: 'a node that could not reach the store is out',
    folder: 'nodes',
    file: 'report.ts',
    from: 'if (isOut && memberMs >= reportedOutMs)',
    to: 'if (isOut && memberMs >= 0)',
    rule: 'nothing false',
    seed: 416,
  },
  {
    what: 'receivers get a renamed incident under the new name',
    folder: 'states',
    file: 'states.ts',
    from: 'const state = withFormerName(place.state, place.row)',
    to: 'const state = place.state',
    rule: 'one name',
    seed: 6,
  },
  {
    what: 'what receivers know does not follow a renamed incident',
    folder: 'outbox',
    file: 'outbox.ts',
    from: 'this.#joinFormer(new Map(open))',
    to: '',
    rule: 'one name',
    seed: 6,
  },
  {
    what: 'a renamed incident is lost where the new name is known already',
    folder: 'states',
    file: 'states.ts',
    from: 'if (other && (other.state.incident || !place.state.incident)) {\n        this.#remove(renamed, place)\n        continue\n      }',
    to: "if (other) {\n        this.#effects.push({ type: 'store', row: place.row, state: undefined })\n        continue\n      }",
    rule: 'memory and store agree',
    seed: 6,
  },
  {
    what: 'what a second node sent of the same fault by itself is forgotten',
    folder: 'nodes',
    file: 'table.ts',
    from: 'const row = one.row && (before ? withNews(before, one.row) : withoutSentEnds(one.row))',
    to: 'const row = before ?? one.row',
    rule: 'each incident ends',
    seed: 1,
  },
  {
    what: 'what a node drops with a svc.yaml that comes without the store is forgotten',
    folder: 'nodes',
    file: 'member.ts',
    from: 'if (row && this.#droppedKeys.has(one.subject.key)) return [one]',
    to: '',
    rule: 'each incident ends',
    seed: 6127,
  },
  {
    what: 'a renamed monitor is read again under one of its names only',
    folder: 'nodes',
    file: 'member.ts',
    from: 'const keys = new Set([...some, ...this.#otherNamesOf(some)])',
    to: 'const keys = new Set(some)',
    rule: 'memory and store agree',
    seed: 1171,
  },
  {
    what: 'a failure that another node contests counts as a failure',
    folder: 'states',
    file: 'states.ts',
    from: "? { ...verdict, level: 'warning', message",
    to: '? { ...verdict, message',
    rule: 'no page for what nodes do not agree on',
    losesRoutes: true,
  },
  {
    what: 'a failure waits for an answer for ever',
    folder: 'states',
    file: 'states.ts',
    from: 'if (this.#now >= (place.crossCheck?.question?.until ?? Number.POSITIVE_INFINITY))',
    to: 'if (this.#now > Number.MAX_VALUE)',
    rule: 'confirmed in time',
    losesRoutes: true,
  },
  {
    what: 'a node asks one that is isolated',
    folder: 'nodes',
    file: 'owner.ts',
    from: 'isLive && !isIsolated && facts?.crossChecks',
    to: '(isLive || isIsolated) && facts?.crossChecks',
    rule: 'isolated nodes are not asked',
  },
  {
    what: 'a node does not receive the answers of others',
    folder: 'nodes',
    file: 'member.ts',
    from: "if (answers.length > 0) this.#effects.push({ type: 'crossChecks', answers })",
    to: '',
    rule: 'nodes that do not agree warn',
    losesRoutes: true,
  },
  {
    what: 'a node without the store sends alone after 20 s',
    folder: 'nodes',
    file: 'policy.ts',
    from: 'aloneMs = 60_000',
    to: 'aloneMs = 20_000',
    rule: 'alone after a minute',
    seed: 1,
  },
  {
    what: 'a lease is renewed every 9 s',
    folder: 'nodes',
    file: 'policy.ts',
    from: 'renewEveryMs = 3_000',
    to: 'renewEveryMs = 9_000',
    rule: 'a lease is renewed',
    seed: 1,
  },
  {
    what: 'a standstill of 9.5 s is not noticed',
    folder: 'nodes',
    file: 'policy.ts',
    from: 'standstillMs = 5_000',
    to: 'standstillMs = 9_500',
    rule: 'a standstill is noticed',
    seed: 8,
  },
]

/** Loads the folder that has the defect. */
export async function planted(plant: NodesPlant): Promise<{ readonly subject: Subject; readonly remove: () => void }> {
  const load = <T>() => plantedFolder<T>(plant.folder, plant)
  if (plant.folder === 'nodes') {
    const { index, remove } = await load<typeof Nodes>()
    return { subject: { ...shipped, nodes: index }, remove }
  }
  if (plant.folder === 'outbox') {
    const { index, remove } = await load<typeof Outbox>()
    return { subject: { ...shipped, outbox: index }, remove }
  }
  const { index, remove } = await load<typeof States>()
  return { subject: { ...shipped, states: index }, remove }
}

/** The first seed in which the rule of a defect is broken. */
export const firstSeed = (subject: Subject, plant: NodesPlant, seeds: readonly number[]): number | undefined =>
  firstSeedOf(plant, seeds, (seed) => simulate(subject, seed, false, plant.losesRoutes === true).violations)
