import * as schedule from '../../src/core/schedule/index.ts'
import type * as Shipped from '../../src/core/states/index.ts'
import { firstSeedOf, type Plant, plantedFolder } from './planted-folder.ts'
import { type Subject, simulate } from './simulated-states.ts'

export const plants: readonly Plant[] = [
  {
    what: 'two bad runs confirm a fault, however close they are',
    file: 'judge.ts',
    from: 'beganAt - since >= holdMs',
    to: 'beganAt > since',
    rule: 'confirmed by time',
  },
  {
    what: 'a healthy run between two bad ones does not begin the doubt anew',
    file: 'judge.ts',
    from: "return { changes: { doubt: undefined, blips: blips + 1 }, effects: [{ type: 'blip', at, level: was, doubt }] }",
    to: "return { changes: { doubt, blips: blips + 1 }, effects: [{ type: 'blip', at, level: was, doubt }] }",
    rule: 'no restart is an outage',
  },
  {
    what: 'one healthy run is a recovery',
    file: 'judge.ts',
    from: 'if (beganAt - since < recoverMs) {',
    to: 'if (beganAt < since) {',
    rule: 'recovery by time',
  },
  {
    what: 'a healthy run heals a fault that only deeper runs show',
    file: 'judge.ts',
    from: 'rank(level) < rank(suspected(state)) && !covers(depth, state.depth)',
    to: 'false && !covers(depth, state.depth) && rank(level) < rank(suspected(state))',
    rule: 'known in time',
  },
  {
    what: 'no run is asked for to confirm a fault',
    file: 'judge.ts',
    from: "    ...tries.map((after): Judgement => ({ type: 'ask', depth, at: from + after })),\n    last,\n",
    to: "    ...tries.slice(0, 0).map((after): Judgement => ({ type: 'ask', depth, at: from + after })),\n    ...(last.type === 'ask' ? [] : [last]),\n",
    rule: 'known in time',
  },
  {
    what: 'a refused sign-in is not repeated to confirm it',
    file: 'judge.ts',
    from: "...(fault === 'auth' ? { repeatsRefused: true } : {})",
    to: '...{}',
    rule: 'known in time',
  },
  {
    what: 'a refusal that is only remembered confirms itself',
    file: 'judge.ts',
    from: 'if (level === undefined) return withoutVerdict(before, verdict, run, rules)',
    to: "if (level === undefined && verdict.reason === 'remembered') return judge(before, { ...verdict, level: 'failed', fault: 'auth' }, run, rules)\n  if (level === undefined) return withoutVerdict(before, verdict, run, rules)",
    rule: 'no transition without a fault',
    seed: 647,
  },
  {
    what: 'a run without a verdict counts as healthy',
    file: 'judge.ts',
    from: 'if (level === undefined) return withoutVerdict(before, verdict, run, rules)',
    to: "if (level === undefined) return judge(before, { ...verdict, level: 'ok' }, run, rules)",
    rule: 'no recovery while it stands',
  },
  {
    what: 'flapping is never noticed',
    file: 'judge.ts',
    from: 'faults.length > most && isPeer ? { ...state, isFlapping: true } : state',
    to: 'faults.length > most * 1e9 && isPeer ? { ...state, isFlapping: true } : state',
    rule: 'flapping is one incident',
  },
  {
    what: 'two faults in an hour are flapping',
    file: 'judge.ts',
    from: 'faults.length > most && isPeer ?',
    to: 'faults.length > 1 && most < 1e9 && isPeer ?',
    rule: 'no flapping without many faults',
  },
  {
    what: 'flapping never ends',
    file: 'judge.ts',
    from: "if (!latest || at - latest.since < (latest.level === 'ok' ? flapCalmMs : flapDownMs)) return state",
    to: 'if (at > 0) return state',
    rule: 'agrees with the truth',
  },
  {
    what: 'a cause in doubt is not waited for',
    file: 'blame.ts',
    from: 'return mayWait && (waits || stale.size > 0) ?',
    to: 'return mayWait && (waits || stale.size > 0) && stale.size < 0 ?',
    rule: 'victims fold',
  },
  {
    what: 'a group fails with its first member',
    file: 'blame.ts',
    from: 'if (first && of.length - down.length < atLeast)',
    to: 'if (first && atLeast > 0)',
    rule: 'no blame without a cause',
  },
  {
    what: 'a group fails with its last member',
    file: 'blame.ts',
    from: 'if (first && of.length - down.length < atLeast)',
    to: 'if (first && down.length === of.length)',
    rule: 'victims fold',
    seed: 100,
  },
  {
    what: 'a victim takes the blame for those behind it',
    file: 'blame.ts',
    from: 'blamed: first ?? cause',
    to: 'blamed: cause ?? first',
    rule: 'the first cause takes the blame',
    seed: 142,
  },
  {
    what: 'a cause that answers takes the blame',
    file: 'blame.ts',
    from: ": level === 'failed' && isUnreachable(fault)",
    to: ": level === 'failed'",
    rule: 'no blame without a cause',
  },
  {
    what: 'a victim stays a victim when its cause is gone',
    file: 'incident.ts',
    from: "if (blame.type === 'victim' || latest === undefined || !parts(state, confirmMs)) return undefined",
    to: "if (blame.type !== 'wait' || latest === undefined) return undefined",
    rule: 'no blame without a cause',
    seed: 59,
  },
  {
    what: 'a victim speaks for itself at once when its cause is gone',
    file: 'incident.ts',
    from: 'latest.at >= incident.freedAt + confirmMs',
    to: 'latest.at >= incident.freedAt - 60_000',
    rule: 'freed when the cause is gone',
  },
  {
    what: 'the id of an incident says only which subject it is of',
    file: 'incident.ts',
    from: 'String(beganAt)]',
    to: 'String(beganAt).slice(0, 0)]',
    rule: 'one incident at a time',
  },
  {
    what: 'an incident that has ended is forgotten without a word',
    file: 'incident.ts',
    from: "return { incident: undefined, what: 'end', at, from: incident.level, to: 'ok', message, of: incident }\n  }\n  const freed",
    to: "return { incident, what: 'change', at, from: incident.level, to: 'ok', message, of: { ...incident, id: String(at) } }\n  }\n  const freed",
    rule: 'agrees with the truth',
  },
  {
    what: 'a removed monitor leaves its incident open',
    file: 'states.ts',
    from: 'for (const place of watched.places.values()) this.#remove(watched, place)\n',
    to: '',
    rule: 'removed',
  },
  {
    what: 'a renamed monitor begins anew',
    file: 'states.ts',
    from: 'if (renamed) this.#rename(renamed, monitor.key)',
    to: 'if (renamed && monitor.key === former) this.#rename(renamed, monitor.key)',
    rule: 'renamed',
  },
  {
    what: 'an item that no longer exists stays',
    file: 'states.ts',
    from: 'if (state.missing + 1 >= missingRuns) this.#remove(watched, place)',
    to: 'if (state.missing + 1 >= 1e9) this.#remove(watched, place)',
    rule: 'removed',
    seed: 18,
  },
  {
    what: 'nothing is restored after a restart',
    file: 'states.ts',
    from: 'this.#place(watched, { ...row }, restored(state, now), true)',
    to: 'if (now < 0) this.#place(watched, { ...row }, restored(state, now), true)',
    rule: 'stands after a kill',
  },
  {
    what: 'an incident that was restored begins with the restart',
    file: 'states.ts',
    from: 'this.#place(watched, { ...row }, restored(state, now), true)',
    to: 'this.#place(watched, { ...row }, restored({ ...state, incident: state.incident && { ...state.incident, beganAt: now } }, now), true)',
    rule: 'stands after a kill',
  },
  {
    what: 'nobody notices for how long svc did not run',
    file: 'states.ts',
    from: 'for (const watched of this.#watched.values()) this.#wasAway(watched)',
    to: '',
    rule: 'unknown after a long absence',
    seed: 52,
  },
  {
    what: 'a long absence of svc is a recovery',
    file: 'states.ts',
    from: 'if (state.incident === undefined || state.unobservedSince !== undefined) continue',
    to: "this.#put(watched, place, { ...place.state, level: 'ok', levelSince: this.#now })\n      this.#advance(watched, place)\n      continue",
    rule: 'no recovery while it stands',
    seed: 52,
  },
  {
    what: 'an end is not stored',
    file: 'ledger.ts',
    from: "const isOver = what === 'end' || ",
    to: 'const isOver = ',
    rule: 'history',
  },
  {
    what: 'what the store did not take is forgotten',
    file: 'ledger.ts',
    from: '    this.#offered = [...names].map((name) => [',
    to: '    queueMicrotask(() => {})\n    if (now % 7 < 1) this.#pending.clear()\n    this.#offered = [...names].map((name) => [',
    rule: 'history',
  },
  {
    what: 'states are stored without what has become healthy',
    file: 'ledger.ts',
    from: 'else this.#states.delete(name)',
    to: '',
    rule: 'stands after a kill',
  },
  {
    what: 'the loss of the own line is the fault of the peers',
    file: 'states.ts',
    from: "const isBlind = this.#line.isolatedSince !== undefined && monitor.runsOn === 'network'\n    return isBlind && ",
    to: 'const isBlind = false\n    return isBlind && ',
    rule: 'no transition without a fault',
  },
  {
    what: 'the witnesses are not tried while a peer cannot be reached',
    file: 'states.ts',
    from: 'if (this.#needsWitness() && this.#now - this.#witnessedAt >= witnessEveryMs) this.#askWitnesses()',
    to: '',
    rule: 'isolated',
  },
  {
    what: 'nobody looks for checks without a verdict',
    file: 'states.ts',
    from: 'for (const watched of this.#watched.values()) this.#scan(watched)\n',
    to: '',
    rule: 'what nobody observes is known',
  },
  {
    what: 'checks behind a failed connection count as unobserved',
    file: 'states.ts',
    from: 'if (isBlind || explaining.length > 0) {',
    to: 'if (isBlind) {',
    rule: 'unobserved only without verdicts',
  },
]

/** Loads the states with a defect. */
export async function planted(plant: Plant): Promise<{ subject: Subject; remove: () => void }> {
  const imports = { '../schedule/index.ts': 'schedule/index.ts' }
  const { index, remove } = await plantedFolder<typeof Shipped>('states', imports, plant)
  const { States, Ledger, StatesTable } = index
  return { subject: { Schedule: schedule.Schedule, States, Ledger, StatesTable }, remove }
}

/** The first seed in which the rule of a defect is broken. */
export const firstSeed = (subject: Subject, plant: Plant, seeds: readonly number[]): number | undefined =>
  firstSeedOf(plant, seeds, (seed) => simulate(subject, seed).violations)
