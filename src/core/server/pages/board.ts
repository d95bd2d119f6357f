import { Fault } from '../../base/errors.ts'
import type { ServerType } from '../../protocol/index.ts'
import type { HttpAnswer } from '../answer.ts'
import type { RequestContext, ServerContext } from '../context.ts'
import { checkedTypes } from '../health.ts'
import { html } from '../html.ts'
import type { RequestTarget } from '../routes.ts'
import { boardMarkup } from './board-markup.ts'
import { headersOf, pageAnswer, plainAnswer } from './page.ts'
import { pageData } from './page-data.ts'

/**
 * The wallboard at `/board`. `?type=` limits it to these types; a type that is not checked here is a BadRequest,
 * because a board without it would look healthy.
 */
export async function boardPage(
  server: ServerContext,
  context: RequestContext,
  { pairs }: RequestTarget,
): Promise<HttpAnswer> {
  const names = pairs.flatMap(([name, value]) => (name === 'type' ? value.split(',') : []))
  const types = typesIn(names, checkedTypes(server.runtime.facts))
  const data = await pageData(server, context)
  if (types instanceof Fault) {
    const main = html`<p><a href="/board">The board of all types</a></p>`
    const frame = { title: 'No board', notice: types.message, user: data.user, signInHref: data.signInHref }
    return { ...plainAnswer(server, context, main, frame), status: types.status }
  }
  const page = boardMarkup(data.cards, { ...data, types, target: context.request.url ?? '/board' })
  return { ...pageAnswer(page), headers: headersOf(server, context, page, data.user) }
}

/** The types that the query names. Undefined: all. A fault for one that is not checked here. */
function typesIn(names: readonly string[], checked: readonly ServerType[]): readonly ServerType[] | Fault | undefined {
  const trimmed = names.map((name) => name.trim()).filter((name) => name !== '')
  if (trimmed.length === 0) return undefined
  const matches = trimmed.map((name) => checked.find((type) => type.toLowerCase() === name.toLowerCase()))
  const types = matches.flatMap((type) => type ?? [])
  if (types.length === matches.length) return types
  const all = checked.length === 0 ? 'no type' : checked.join(', ')
  return new Fault('BadRequest', `?type= names a type that is not checked here. This server checks ${all}.`)
}
