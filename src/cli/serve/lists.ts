import { integer, orNull, string, strings } from '../render/document.ts'
import { type ListOutput, list } from '../render/list.ts'
import { headline } from '../render/table.ts'
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
  const { url, configuration, added, removed, changed } = reloaded
  const counts = `${added.length} added, ${removed.length} removed, ${changed.length} changed`
  const where = configuration === undefined ? '' : ` ${configuration}`
  return headline('ok', `The svc serve at ${url} has reloaded${where}: ${counts}`, output.screen)
}
