import { integer, orNull, string, strings } from '../render/document.ts'
import { type ListOutput, list } from '../render/list.ts'
import { aside, headline } from '../render/table.ts'
import type { Reloaded } from './request-reload.ts'

/** A server that has reloaded its configuration: a list with one row. */
export const reloads = list<Reloaded>()({
  around: ['target'],
  rows: 'servers',
  columns: [
    { key: 'pid', is: integer },
    { key: 'url', is: string },
    { key: 'configuration', is: orNull(string) },
    { key: 'added', is: strings },
    { key: 'removed', is: strings },
    { key: 'changed', is: strings },
    { key: 'warnings', is: strings, field: false },
  ],
})

/** A reload as JSON, as a record in a pipe, and in sentences on a terminal. */
export function reloadText(reloaded: Reloaded, target: string, output: ListOutput): string {
  if (output.json || !output.screen.isTTY) return reloads.render([reloaded], { target }, output)
  const { screen } = output
  const { url, configuration, added, removed, changed } = reloaded
  const counts = `${added.length} added, ${removed.length} removed, ${changed.length} changed`
  const where = configuration === undefined ? '' : ` ${configuration}`
  return [
    headline('ok', `The svc serve at ${url} has reloaded${where}: ${counts}`, screen),
    ...Object.entries({ added, removed, changed }).flatMap(([what, names]) =>
      names.length === 0 ? [] : [aside(`${what}: ${shortened(names)}`, screen)],
    ),
  ].join('\n')
}

/** More names would scroll the counts off the screen. */
const maxNames = 20

const shortened = (names: readonly string[]): string =>
  [...names.slice(0, maxNames), ...(names.length > maxNames ? [`and ${names.length - maxNames} more`] : [])].join(', ')
