import { Fault } from '../../base/errors.ts'
import type { LinkOfDrill } from '../../protocol/service/service.ts'
import type { HttpAnswer } from '../answer.ts'
import { orCancelled, ownOrigin, type RequestContext, type ServerContext } from '../context.ts'
import { html, type Markup } from '../html.ts'
import { refuseForeignChange } from '../origins.ts'
import { faultAnswer, plainJson, visibleFault } from '../response.ts'
import type { RequestTarget } from '../routes.ts'
import { plainAnswer } from './page.ts'
import { wholeInstant } from './page-words.ts'

/**
 * The page of the link in a message of a drill (M14). Its button alone confirms that the message arrived: mail gateways,
 * chat previews and monitoring request every link that they see, with GET and HEAD, and prove nothing. Needs no account.
 */
export async function drillPage(
  server: ServerContext,
  context: RequestContext,
  { route }: RequestTarget,
): Promise<HttpAnswer> {
  const token = route.kind === 'own' ? (route.pathValues[0] ?? '') : ''
  const { drillLinks } = server.runtime
  const isPost = context.logFields.method === 'POST'
  try {
    if (isPost) refuseForeignChange(context.request, context.caller, ownOrigin(server, context), server.origins)
    const link = await orCancelled(context, Promise.resolve(drillLinks?.[isPost ? 'confirm' : 'read'](token)))
    if (link === undefined) throw new Fault('NotFound', 'This link is unknown, or older than 7 days')
    // To this page, below whatever prefix a proxy has it: a reload after the button then confirms nothing again.
    return isPost ? { status: 303, headers: ['Location', '?'] } : answerOf(server, context, link)
  } catch (error) {
    const { status, headers } = await faultAnswer(server, context, error, plainJson(server))
    return { ...answerOf(server, context, visibleFault(error).message), status, headers }
  }
}

/** `content`: the link, or why there is none. */
function answerOf(server: ServerContext, context: RequestContext, content: LinkOfDrill | string): HttpAnswer {
  const notice = typeof content === 'string' ? content : undefined
  const main =
    typeof content === 'string'
      ? html`<p>Nothing was confirmed.</p>`
      : linkMarkup(content, server.runtime.facts.timezone)
  return plainAnswer(server, context, main, { title: 'Drill', notice })
}

const linkMarkup = ({ receiver, beganAt, confirmedAt }: LinkOfDrill, zone: string | undefined): Markup => html`<section>
<p>This message belongs to a drill that began on ${wholeInstant(beganAt, { zone })}. Nothing has failed. It was sent through the receiver <b>${receiver}</b>.</p>
${
  confirmedAt === undefined
    ? html`<form method="post"><button class="main">Confirm that the message arrived</button></form>`
    : html`<p role="status">✓ Confirmed on ${wholeInstant(confirmedAt, { zone })}.</p>`
}
</section>
`
