import type * as Shipped from '../../../src/core/watch/outbox/index.ts'
import { firstSeedOf, type Plant, plantedFolder } from './planted-folder.ts'
import { type Subject, simulate } from './simulated-outbox.ts'

export const plants: readonly Plant[] = [
  {
    what: 'what was sent without the store is lost with the process',
    file: 'sent-without-store.ts',
    from: 'return { rows, passedOver: rest.length - lines.length }',
    to: 'return { rows: rows.slice(rows.length), passedOver: 0 }',
    rule: 'each end is told',
  },
  {
    what: 'what is new goes into a message without an answer that is sent again',
    file: 'outbox.ts',
    from: 'if (!first || (isAgain && added.length > 0)) return { lines: added }\n    const [id, lines] = first',
    to: 'if (!first) return { lines: added }\n    const [id] = first\n    const lines = [...first[1], ...added.filter((one) => !first[1].some((other) => other.id === one.id))]',
    rule: 'one id for the same lines',
  },
  {
    what: 'a message that is sent again has another id',
    file: 'outbox.ts',
    from: 'const message = again ??',
    to: 'const message =',
    rule: 'one id for the same lines',
  },
  {
    what: 'what did not hold for a while is part of the same message again',
    file: 'outbox.ts',
    from: 'if (!contained.has(id)) this',
    to: 'if (contained.size === 0) this',
    rule: 'one id for the same lines',
  },
  {
    what: 'the next message follows one without an answer at once',
    file: 'outbox.ts',
    from: 'if (delivery.isPerhapsReceived) address.messageAt',
    to: 'if (address.rows.size < 0) address.messageAt',
    rule: 'one message a minute',
  },
  {
    what: 'a receiver that was only tried does not get the end',
    file: 'row.ts',
    from: '  attempt ?? last ?? need\n',
    to: '  last ?? (need && attempt ? undefined : need)\n',
    rule: 'each end is told',
    seed: 40,
  },
  {
    what: 'a message rests on any verdict',
    file: 'row.ts',
    from: 'return now - latest.at <= freshMs &&',
    to: 'return now >= latest.at &&',
    rule: 'young verdicts',
  },
  {
    what: 'no run is asked for when the verdict is old',
    file: 'outbox.ts',
    from: "this.#effects.push({ type: 'ask', key: present.subject.key, depth: present.state.depth })",
    to: '',
    rule: 'young verdicts',
  },
  {
    what: 'victims speak for themselves',
    file: 'row.ts',
    from: 'if (!incident || incident.cause !== undefined) return undefined',
    to: 'if (!incident) return undefined',
    rule: 'victims fold',
    seed: 3,
  },
  {
    what: 'a silence stops nothing',
    file: 'row.ts',
    from: 'if (present.isSilenced && !receiver.ignoresSilences) return undefined',
    to: '',
    rule: 'silences',
  },
  {
    what: 'each incident has a message of its own, however many there are',
    file: 'outbox.ts',
    from: 'address.messageAt + messageEveryMs)',
    to: 'address.readySince)',
    rule: 'one message a minute',
  },
  {
    what: 'the pauses between attempts do not grow',
    file: 'outbox.ts',
    from: 'firstPauseMs * 2 ** Math.min(address.failures, 16)',
    to: 'firstPauseMs',
    rule: 'pauses',
  },
  {
    what: 'nobody waits as long as the receiver says',
    file: 'outbox.ts',
    from: 'this.#now + Math.max(pauseMs, demandedMs)',
    to: 'this.#now + pauseMs',
    rule: 'pauses',
  },
  {
    what: 'ends are told however old they are',
    file: 'row.ts',
    from: 'ends: row.ends.filter(({ endedAt }) => now - endedAt <= giveUpMs)',
    to: 'ends: row.ends.slice()',
    rule: 'given up by age',
    seed: 200,
  },
  {
    what: 'what began and ended while a receiver was away is forgotten',
    file: 'row.ts',
    from: '  attempt ?? last ?? need\n',
    to: '  attempt ?? last\n',
    rule: 'nothing is lost',
  },
  {
    what: 'nothing is restored after a restart',
    file: 'outbox.ts',
    from: 'own.set(id, since ?',
    to: 'if (now < 0) own.set(id, since ?',
    rule: 'each end is told',
  },
  {
    what: 'an incident that a kill has lost never ends',
    file: 'row.ts',
    from: 'return latest.at - Math.max(latest.since, sinceAt) >= wellMs',
    to: 'return latest.at < latest.since - wellMs',
    rule: 'each end is told',
    seed: 19,
  },
  {
    what: 'a receiver that fails is nobody else’s business',
    file: 'outbox.ts',
    from: 'this.watch(this.#receiverSubject(rules.name))\n',
    to: '',
    rule: 'a broken receiver is told',
  },
  {
    what: 'a receiver that works again stays broken for the others',
    file: 'outbox.ts',
    from: 'address.brokenSince = undefined\n    if (failingSince',
    to: 'if (failingSince',
    rule: 'nothing twice',
  },
  {
    what: 'a fault that stands is told once',
    file: 'row.ts',
    from: 'if (now - last.at < receiver.remindMs) return undefined',
    to: 'if (now > 0) return undefined',
    rule: 'reminded',
  },
  {
    what: 'what stands is told before what is over',
    file: 'outbox.ts',
    from: 'return [...over, item]',
    to: 'return [item, ...over]',
    rule: 'order',
  },
  {
    what: 'a subject of which nothing is known yet is forgotten',
    file: 'outbox.ts',
    from: "(present !== 'unknown' && present.state.incident === undefined)",
    to: "present === 'unknown' || present.state.incident === undefined",
    rule: 'what stands is told',
  },
  {
    what: 'an incident whose end is lost goes on as the next one',
    file: 'outbox.ts',
    from: 'if (current) return withLostEnd(row, current)',
    to: `if (current) {
      const of = <T>(one: T | undefined) => one && { ...one, incident: current.id }
      return { ...row, last: of(row.last), attempt: of(row.attempt), need: of(row.need) }
    }`,
    rule: 'each end is told',
    seed: 6,
  },
  {
    what: 'a lost answer counts as not received',
    file: 'row.ts',
    from: 'if (isPerhapsReceived) return row',
    to: '',
    rule: 'right level',
    seed: 15,
  },
  {
    what: 'an answer revives an incident that ended meanwhile',
    file: 'row.ts',
    from: 'if (word === undefined || aboutIn(row)?.incident !== word.incident) return',
    to: 'if (word === undefined) return',
    rule: 'nothing twice',
    seed: 39,
  },
  {
    what: 'an attempt is stored only after its answer',
    file: 'outbox.ts',
    from: 'const rows = keys.flatMap((key) => this.#changes.get(key) ?? [])',
    to: 'const rows: StoredRow[] = []',
    rule: 'stored before it is sent',
  },
  {
    what: 'an acknowledged fault that gets worse or changes is told to nobody who knew it',
    file: 'row.ts',
    from: 'lapsedAcks.some((id) => !earlier.includes(id))',
    to: 'lapsedAcks.some((id) => earlier.includes(id) && false)',
    rule: 'what was not acknowledged is told',
    seed: 4,
  },
  {
    what: 'a fault that is no longer the acknowledged one is told again and again',
    file: 'row.ts',
    from: 'lapsedAcks.some((id) => !earlier.includes(id))',
    to: 'lapsedAcks.length > 0 || earlier.includes("")',
    rule: 'nothing without a reason',
    seed: 2,
  },
]

/** Loads the outbox with a defect. */
export async function planted(plant: Plant): Promise<{ subject: Subject; remove: () => void }> {
  const { index, remove } = await plantedFolder<typeof Shipped>('outbox', plant)
  return { subject: index, remove }
}

/** The first seed in which the rule of a defect is broken. */
export const firstSeed = (subject: Subject, plant: Plant, seeds: readonly number[]): number | undefined =>
  firstSeedOf(plant, seeds, (seed) => simulate(subject, seed).violations)
