import { type DriverName, type DriverSearch, driverNames, driverSearch, findDriver } from '../checks/drivers/index.ts'
import type { TypeConfig, Types } from './types.ts'

/** The monitors that need each driver, as `Sql/sqlserver orders`. */
export function driverNeeds(types: Types): Readonly<Record<DriverName, readonly string[]>> {
  const all = Object.entries(types).flatMap(([type, { monitors }]: [string, TypeConfig]) =>
    monitors.map(({ kind, name }) => ({ driver: kind.driver, name: `${type}/${name}` })),
  )
  const of = (driver: DriverName) => all.flatMap((one) => (one.driver === driver ? [one.name] : []))
  return Object.fromEntries(driverNames.map((driver) => [driver, of(driver)])) as Record<DriverName, string[]>
}

/** How many monitors a warning names. */
const maxNamed = 3

/** A warning for each driver that monitors need and svc cannot load. */
export function driverWarnings(types: Types, { env, home }: Pick<DriverSearch, 'env' | 'home'>): readonly string[] {
  const needs = driverNeeds(types)
  return driverNames.flatMap((name) => {
    const monitors = needs[name]
    if (monitors.length === 0) return []
    const { lack } = findDriver(name, driverSearch(env, home))
    if (!lack) return []
    const more = monitors.length > maxNamed ? ` and ${monitors.length - maxNamed} more` : ''
    const monitorNames = `${monitors.slice(0, maxNamed).join(', ')}${more}`
    const cures = lack.state === 'missing' ? [] : lack.cures
    return [[`the driver for ${name} ${lack.reason}`, ...cures, `not checked: ${monitorNames}`].join('; ')]
  })
}
