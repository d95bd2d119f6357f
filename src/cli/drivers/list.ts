import {
  addCommand,
  type DriverName,
  driverNames,
  driverSearch,
  drivers,
  findDriver,
  shippedDriver,
} from '../../core/checks/drivers/index.ts'
import { type LoadedConfig, loadDriverNeeds } from '../../core/config/index.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { homeOf, thisMachine } from '../io/process.ts'
import { document, flag, oneOf, orNull, string, strings } from '../render/document.ts'
import { list } from '../render/list.ts'
import { type CellText, names } from '../render/table.ts'

const states = ['ready', 'other version', 'not trusted', 'missing'] as const

/** A driver as the list shows it. */
export type DriverRow = {
  readonly name: DriverName
  readonly package: string
  readonly state: (typeof states)[number]
  readonly version: string | undefined
  /** The version that `svc drivers add` installs. */
  readonly shippedVersion: string | undefined
  readonly path: string | undefined
  /** The monitors of svc.yaml that need it. */
  readonly monitors: readonly string[]
  /** The problem, in a sentence. */
  readonly problem: string | undefined
  /** The command that mends that. */
  readonly next: string | undefined
}

/** All drivers, with the monitors of a configuration that need them. */
export async function listDrivers(
  { types }: Pick<LoadedConfig, 'types'>,
  env: ProcessEnvironment,
): Promise<readonly DriverRow[]> {
  const { driverNeeds } = await loadDriverNeeds()
  const needs = driverNeeds(types)
  const search = driverSearch(env, homeOf(env))
  return driverNames.map((name) => {
    const shipped = shippedDriver(name)
    const { driver, lack } = findDriver(name, search)
    const row = { name, package: drivers[name], monitors: needs[name], shippedVersion: shipped?.version }
    if (!driver) {
      const { state, reason, cures } = lack
      const problem = `the driver for ${name} ${reason}`
      return { ...row, state, version: undefined, path: undefined, problem, next: cures[0] }
    }
    const { version, path, folder } = driver
    const isOther = folder !== undefined && shipped !== undefined && !folder.endsWith(shipped.folder)
    if (!isOther) return { ...row, state: 'ready', version, path, problem: undefined, next: undefined }
    const problem = `the driver for ${name} is that of another version of svc: ${drivers[name]} ${version}, and this svc was tested with ${shipped.version}`
    return { ...row, state: 'other version', version, path, problem, next: addCommand(name) }
  })
}

const stateStyles = { ready: undefined, 'other version': 'caution', 'not trusted': 'bad', missing: undefined } as const

function stateCell({ state, monitors }: DriverRow): CellText {
  const style = state === 'missing' && monitors.length > 0 ? 'bad' : stateStyles[state]
  return style === undefined ? state : { text: state, style }
}

export const driverList = list<DriverRow>()({
  documentOnly: { target: string },
  rows: 'drivers',
  headline: ['driver', 'drivers'],
  columns: [
    { key: 'name', is: string, title: 'DRIVER' },
    { key: 'package', is: string },
    { key: 'state', is: oneOf(...states), title: 'STATE', cell: stateCell },
    { key: 'version', is: orNull(string), title: 'VERSION' },
    { key: 'shippedVersion', is: orNull(string) },
    { key: 'path', is: orNull(string), title: 'PLACE', shrink: 1, least: 20 },
    {
      key: 'monitors',
      is: strings,
      title: 'NEEDED BY',
      cell: ({ monitors }) => names(monitors),
      shrink: 2,
    },
    { key: 'problem', is: orNull(string) },
    { key: 'next', is: orNull(string), title: 'NEXT', optional: true },
  ],
})

/** The result of `svc drivers add`. */
export type AddedDriver = {
  readonly name: DriverName
  readonly version: string
  readonly path: string
  /** False if it was there already. */
  readonly added: boolean
}

export const addedDrivers = document<AddedDriver>()({
  around: { target: string },
  rows: 'drivers',
  members: { name: string, version: string, path: string, added: flag },
})

export function renderAdded(added: AddedDriver, json: boolean): string {
  if (json) return addedDrivers.text({ target: thisMachine }, [added])
  const { name, version, path, added: isNew } = added
  return isNew
    ? `The driver for ${name} is installed: ${drivers[name]} ${version} in ${path}`
    : `The driver for ${name} is there already: ${drivers[name]} ${version} in ${path}`
}
