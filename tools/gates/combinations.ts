import {
  type Choice,
  type Combination,
  choices,
  files,
  formats,
  isSimple,
  requirements,
  servers,
  types,
} from './dimensions.ts'
import { type Place, placeOf } from './rules.ts'

const choicesAt = (at: Place['at']): readonly Choice[] => choices.filter((choice) => placeOf(choice).at === at)

type Dimensions = {
  readonly choice: readonly Choice[]
  readonly requirement: Combination['requirement'][]
  readonly type: Combination['type'][]
  readonly format: Combination['format'][]
  readonly waits: boolean[]
  readonly file?: readonly Combination['file'][]
  readonly server?: readonly Combination['server'][]
}
type Name = keyof Dimensions

const ofEveryCall = { requirement: [...requirements], type: [...types], format: [...formats], waits: [false, true] }
const atServers = (choice: readonly Choice[]): Dimensions => ({ choice, ...ofEveryCall, server: servers })
const here = (choice: readonly Choice[]): Dimensions => ({ choice, ...ofEveryCall, file: files })
const nowhere = (choice: readonly Choice[]): Dimensions => ({ choice, ...ofEveryCall })

/** Every combination of at most one flag and one variable for the place with everything else. */
export function* everyCombination(): Generator<Combination> {
  yield* product(atServers(choicesAt('server').filter(isSimple)))
  yield* product(here(choicesAt('this machine').filter(isSimple)))
}

/** A selection in which every three values of different dimensions meet, of the same choices. */
export function everyThree(): readonly Combination[] {
  return [atServers(choicesAt('server').filter(isSimple)), here(choicesAt('this machine').filter(isSimple))].flatMap(
    (dimensions) => covering(dimensions, threesOf(Object.keys(dimensions) as Name[])),
  )
}

const threesOf = (names: readonly Name[]): readonly (readonly Name[])[] =>
  names.flatMap((one, at) =>
    names.slice(at + 1).flatMap((two, next) => names.slice(at + next + 2).map((three) => [one, two, three])),
  )

/**
 * A selection that contains each server and each file with every requirement and way to name types, with and without `--wait`,
 * and with every format, and each choice of a place with every way to name types. Choices of two flags or variables occur
 * once each. The slow tier has `everyThree` of the other choices, and `npm run prove` every combination of them.
 */
export function selection(): readonly Combination[] {
  const others = (at: Place['at']) => choicesAt(at).filter((choice) => !isSimple(choice))
  const simple = (at: Place['at']) => choicesAt(at).filter(isSimple)
  return [
    ...covering(atServers(simple('server')), [
      ['server', 'requirement', 'type'],
      ['server', 'waits'],
      ['server', 'format'],
      ['choice', 'type'],
      ['format', 'requirement'],
    ]),
    ...covering(here(simple('this machine')), [
      ['file', 'requirement', 'type'],
      ['file', 'waits'],
      ['file', 'format'],
      ['choice', 'type'],
    ]),
    ...covering(atServers(others('server')), [['choice']]),
    ...covering(here(others('this machine')), [['choice']]),
    ...covering(nowhere(others('nowhere')), [['choice'], ['format', 'requirement'], ['format', 'waits']]),
  ]
}

function* product(dimensions: Dimensions): Generator<Combination> {
  const names = Object.keys(dimensions) as Name[]
  for (const tuple of tuples(dimensions, names)) yield combinationOf(tuple)
}

/** Values by the name of their dimension, as their place in it. */
type Tuple = Readonly<Partial<Record<Name, unknown>>>

function* tuples(dimensions: Dimensions, names: readonly Name[]): Generator<Tuple> {
  const [name, ...rest] = names
  if (name === undefined) {
    yield {}
    return
  }
  for (const tail of tuples(dimensions, rest))
    for (const value of dimensions[name] ?? []) yield { ...tail, [name]: value }
}

const combinationOf = (tuple: Tuple): Combination => tuple as Combination

/**
 * Combinations that contain each tuple of the named dimensions at least once. What a tuple leaves open takes the next
 * value of its dimension, so that most tuples of the later groups occur before it is their turn.
 */
function covering(dimensions: Dimensions, groups: readonly (readonly Name[])[]): readonly Combination[] {
  const names = Object.keys(dimensions) as Name[]
  const chosen: Combination[] = []
  const covered = new Set<string>()
  const keyOf = (group: readonly Name[], tuple: Tuple): string => JSON.stringify(group.map((name) => tuple[name]))
  const turns = new Map<Name, number>()
  const next = (name: Name): unknown => {
    const turn = turns.get(name) ?? 0
    turns.set(name, turn + 1)
    const values = dimensions[name] ?? []
    return values[turn % values.length]
  }
  for (const group of groups) {
    for (const tuple of tuples(dimensions, group)) {
      if (covered.has(keyOf(group, tuple))) continue
      const open = names.filter((name) => !(name in tuple))
      const combination = { ...Object.fromEntries(open.map((name) => [name, next(name)])), ...tuple }
      for (const each of groups) covered.add(keyOf(each, combination))
      chosen.push(combinationOf(combination))
    }
  }
  return chosen
}
