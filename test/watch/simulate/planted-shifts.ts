import { readFileSync } from 'node:fs'
import type * as Outbox from '../../../src/core/watch/outbox/index.ts'
import type * as States from '../../../src/core/watch/states/index.ts'
import { type Plant, plantedFolder } from './planted-folder.ts'

/** Where instants move with the line that people read: each `move` or `correct` of these functions is one. */
const places = [
  { folder: 'outbox', file: 'outbox.ts', from: '  shift(shift: Shift)', to: '\n  }\n' },
  { folder: 'outbox', file: 'row.ts', from: 'export function shiftedWord', to: '\n}\n' },
  { folder: 'outbox', file: 'row.ts', from: 'export function shiftedRow', to: '\n}\n' },
  { folder: 'states', file: 'states.ts', from: '  shift(shift: Shift)', to: '\n  }\n' },
  { folder: 'states', file: 'shifted.ts', from: 'function shiftedIncident', to: '\n}\n' },
  { folder: 'states', file: 'shifted.ts', from: 'function shiftedDoubt', to: '\n}\n' },
  { folder: 'states', file: 'shifted.ts', from: 'export function shiftedState', to: '\n}\n' },
  { folder: 'states', file: 'line.ts', from: 'export function shiftedLine', to: '\n}\n' },
] as const

export type PlantedShift = Plant & { readonly folder: 'outbox' | 'states' }

/** Every instant that moves with the line, each forgotten once. */
export const forgottenShifts: readonly PlantedShift[] = places.flatMap(({ folder, file, from, to }) => {
  const source = readFileSync(new URL(`../../../src/core/watch/${folder}/${file}`, import.meta.url), 'utf8')
  const begin = source.indexOf(from)
  const text = source.slice(begin, source.indexOf(to, begin) + to.length)
  if (begin < 0) throw new Error(`${file} has no ${from}`)
  return [...text.matchAll(/\b(?:move|correct|moved)\(([\w.]+)\)|\.map\(move\)/g)].map(
    ({ 0: call, 1: instant, index }): PlantedShift => {
      const left = instant ?? '.map((at) => at)'
      const forgotten = `${text.slice(0, index)}${left}${text.slice(index + call.length)}`
      const name = from.replace(/^.*function |\(.*$/g, '').trim()
      return {
        folder,
        file,
        what: `${name} of ${file} forgets ${instant ?? 'a list'}`,
        from: text,
        to: forgotten,
        rule: '',
      }
    },
  )
})

/** Loads a folder in which one instant stays where it is. */
export async function plantedShift(plant: PlantedShift): Promise<{
  readonly index: typeof Outbox & typeof States
  readonly remove: () => void
}> {
  return await plantedFolder<typeof Outbox & typeof States>(plant.folder, plant)
}

/** The instants of which none of the first fourteen scenarios shows that they move. Each begins or ends within moments that hardly ever shift. */
export const unseen: ReadonlySet<string> = new Set([
  'shift of outbox.ts forgets address.pendingSince',
  'shift of states.ts forgets watched.since',
  'shift of states.ts forgets watched.watchedUntil',
  'shift of states.ts forgets place.partsAt',
  'shiftedIncident of shifted.ts forgets freedAt',
  'shiftedDoubt of shifted.ts forgets answered.at',
  'shiftedDoubt of shifted.ts forgets hiddenAt',
  'shiftedDoubt of shifted.ts forgets repeatsAt',
  'shiftedState of shifted.ts forgets turning.since',
  'shiftedState of shifted.ts forgets unobservedSince',
  'shiftedLine of line.ts forgets silentAt',
])
