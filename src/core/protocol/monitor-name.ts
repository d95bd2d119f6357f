/** A monitor by its names. `type`: absent for the monitors of the machine, which belong to none. */
type MonitorNames = { readonly type?: string | undefined; readonly name: string }

/** The own name in a MonitorName: what follows the kind. A monitor that has none is called like its kind. */
export const ownNameIn = (name: string): string => name.slice(name.indexOf(' ') + 1)

/** A name as svc writes it: the MonitorName, after the type if the monitor has one. */
export const writeNamed = ({ type, name }: MonitorNames): string => (type === undefined ? name : `${type}/${name}`)

/** The monitors of a list with this MonitorName, else those with this own name. */
export function namedIn<M extends MonitorNames>(written: string, all: readonly M[]): readonly M[] {
  const full = all.filter(({ name }) => name === written)
  return full.length > 0 ? full : all.filter(({ name }) => ownNameIn(name) === written)
}

/**
 * The monitors that a person means: by the MonitorName or by the own name, each also after the type. A name without a type
 * comes first, because names may contain slashes. `all` may have any letter case; `written` is compared as it is.
 *
 * @example
 * ```ts
 * const all = [{ type: 'Ftp', name: 'tcp t13' }]
 * monitorsNamed('t13', all) // [{ type: 'Ftp', name: 'tcp t13' }]
 * monitorsNamed('Ftp/t13', all) // [{ type: 'Ftp', name: 'tcp t13' }]
 * monitorsNamed('Sql/t13', all) // []
 * ```
 */
export function monitorsNamed<M extends MonitorNames>(written: string, all: readonly M[]): readonly M[] {
  const slash = written.indexOf('/')
  const plain = namedIn(written, all)
  if (plain.length > 0 || slash < 0) return plain
  const type = written.slice(0, slash)
  return namedIn(
    written.slice(slash + 1),
    all.filter((one) => one.type === type),
  )
}
