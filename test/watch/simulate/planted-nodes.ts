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
  /** Found where the store is away for minutes. */
  readonly losesStore?: true
}
export const plants: readonly NodesPlant[] = [
  {
    what: 'a node takes the lease although another one renews it',
    folder: 'nodes',
    file: 'lease.ts',
    from: '? now - since >= extraMs : now - since >= takeMs + extraMs',
    to: '? now - since >= extraMs : now - since >= extraMs',
    rule: 'no early takeover',
  },
  {
    what: 'a process takes the lease back in the epoch that it had',
    folder: 'nodes',
    file: 'lease.ts',
    from: 'Math.max(highest, row?.epoch ?? 0) + 1',
    to: 'Math.max(highest, row?.epoch ?? 0, 1)',
    rule: 'one holder stores',
  },
  {
    what: 'a new holder begins without what is stored',
    folder: 'nodes',
    file: 'member.ts',
    from: 'const keys = new Set([...(part.isKnown ? [] : configured),',
    to: 'const keys = new Set([...(part.isKnown ? [] : []),',
    rule: 'memory and store agree',
  },
  {
    what: 'an isolated node keeps the lease',
    folder: 'nodes',
    file: 'member.ts',
    from: 'return isAlone || this.#isolatedSince === undefined || this.#keepsIsolated(now)',
    to: 'return isAlone || now >= 0',
    rule: 'somebody runs it',
    seed: 2,
  },
  {
    what: 'what a node told by itself is forgotten',
    folder: 'nodes',
    file: 'member.ts',
    from: 'this.#news = [...this.#news, ...news]',
    to: 'this.#news = [...this.#news]',
    rule: 'each incident ends',
  },
  {
    what: 'a monitor that only other nodes know is removed',
    folder: 'nodes',
    file: 'member.ts',
    from: 'return this.#differSince === undefined || now - this.#differSince >= rolloutMs',
    to: 'return this.#differSince === undefined || now >= 0',
    rule: 'no end while it stands',
    seed: 12,
  },
  {
    what: 'a node that could not reach the store is out',
    folder: 'nodes',
    file: 'report.ts',
    from: 'if (isOut && memberMs >= reportedOutMs)',
    to: 'if (isOut && memberMs >= 0)',
    rule: 'nothing false',
  },
  {
    what: 'a node asks one that is isolated',
    folder: 'nodes',
    file: 'member.ts',
    from: 'const names = this.#others(({ isIsolated }) => !isIsolated)',
    to: 'const names = this.#others(() => true)',
    rule: 'isolated nodes are not asked',
  },
  {
    what: 'a node does not receive the answers of others',
    folder: 'nodes',
    file: 'member.ts',
    from: "if (answers.length > 0) this.#effects.push({ type: 'crossChecks', answers })",
    to: "if (answers.length < 0) this.#effects.push({ type: 'crossChecks', answers })",
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
    from: 'beatMs = 2_000',
    to: 'beatMs = 9_000',
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
    seed: 38,
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
    what: 'a node speaks although another one says that it does',
    folder: 'nodes',
    file: 'speakers.ts',
    from: 'now - at < answerHoldsMs ? [node] : []',
    to: 'now < at ? [node] : []',
    rule: 'nobody speaks who should be silent',
    losesStore: true,
  },
  {
    what: 'nodes without the store know no holder that comes first',
    folder: 'nodes',
    file: 'speakers.ts',
    from: 'one === holder || (other !== holder && one < other)',
    to: 'one === holder',
    rule: 'nobody speaks who should be silent',
    losesStore: true,
  },
  {
    what: 'an answer keeps a node silent for 20 min',
    folder: 'nodes',
    file: 'policy.ts',
    from: 'answerHoldsMs = 12_000',
    to: 'answerHoldsMs = 1_200_000',
    rule: 'no fault untold',
    losesStore: true,
  },
  {
    what: 'each node is silent for every other one',
    folder: 'nodes',
    file: 'speakers.ts',
    from: '(one === holder || (other !== holder && one < other))',
    to: '(one === holder || one < other || one > other)',
    rule: 'no fault untold',
    losesStore: true,
  },
  {
    what: 'an isolated node says that it speaks',
    folder: 'nodes',
    file: 'speakers.ts',
    from: 'withoutStoreMs >= askFromMs && !isIsolated && speaks',
    to: 'withoutStoreMs >= askFromMs && speaks',
    rule: 'no fault untold',
    losesStore: true,
  },
  {
    what: 'a node whose schedule does not keep up says that it speaks',
    folder: 'nodes',
    file: 'member.ts',
    from: 'return keepsUp && !this.#hasLeft && maySpeakFor',
    to: 'return (keepsUp || now >= 0) && !this.#hasLeft && maySpeakFor',
    rule: 'no fault untold',
    seed: 72,
    losesStore: true,
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
  firstSeedOf(plant, seeds, (seed) => simulate(subject, seed, false, plant).violations)
