import { AcknowledgeFault, type Dto, EndSilence, type NotSilenced, SilenceMonitors } from '../../protocol/index.ts'
import { merge, readBody, requireFields } from '../../protocol/wire/index.ts'
import type { HttpAnswer } from '../answer.ts'
import { orCancelled, ownOrigin, type RequestContext, type ServerContext } from '../context.ts'
import { html } from '../html.ts'
import { refuseForeignChange } from '../origins.ts'
import { receive } from '../receive.ts'
import { faultAnswer, plainJson, visibleFault } from '../response.ts'
import type { RequestTarget } from '../routes.ts'
import { plainAnswer } from './page.ts'
import { callerOf } from './page-data.ts'
import { safeTarget } from './sign-in-page.ts'

/** The forms of the page of a monitor: the schema of each, and the operation that it calls. */
const forms = {
  silenceMonitors: SilenceMonitors,
  acknowledge: AcknowledgeFault,
  endSilence: EndSilence,
} as const satisfies Record<string, Dto>

/**
 * Answers a form of the page of a monitor: carries out its operation and redirects to the page that `continue` names.
 * The Service authorizes the caller.
 */
export const silenceForm =
  (operation: keyof typeof forms) =>
  async (server: ServerContext, context: RequestContext, { pairs }: RequestTarget): Promise<HttpAnswer> => {
    const target = safeTarget(pairs.find(([name]) => name === 'continue')?.[1])
    const redirect: HttpAnswer = { status: 303, headers: ['Location', target] }
    if (context.logFields.method !== 'POST') {
      return answerOf(server, context, target, 'The form for this is on the page of each monitor.')
    }
    try {
      const { NotSilenced = [] } = await change(server, context, operation)
      return NotSilenced.length === 0 ? redirect : notSilenced(server, context, target, NotSilenced)
    } catch (error) {
      const { status, headers } = await faultAnswer(server, context, error, plainJson(server))
      const notice = `Nothing has changed: ${visibleFault(error).message}`
      return { ...answerOf(server, context, target, notice), status, headers }
    }
  }

type Changed = { readonly NotSilenced?: readonly NotSilenced[] | undefined }

/** Throws Forbidden if another site's page sent the form (T6). */
async function change(server: ServerContext, context: RequestContext, operation: keyof typeof forms): Promise<Changed> {
  const { request } = context
  const schema = forms[operation]
  refuseForeignChange(request, context.caller, ownOrigin(server, context), server.origins)
  const bytes = await orCancelled(context, receive(context, server.options.maxBody))
  const values = merge(await readBody(schema, request.headers['content-type'], bytes))
  requireFields(schema, values)
  const { service } = server
  const answer: Promise<Changed> = service[operation](values, callerOf(context))
  return await orCancelled(context, answer)
}

const notSilenced = (
  server: ServerContext,
  context: RequestContext,
  target: string,
  places: readonly NotSilenced[],
): HttpAnswer => {
  const lines = places.map(({ Receiver, Place, Message }) => `${Receiver ?? ''} at ${Place ?? ''}: ${Message ?? ''}`)
  const notice = `It is silenced, but not everywhere. These go on sending what fires: ${lines.join('; ')}`
  return answerOf(server, context, target, notice)
}

const answerOf = (server: ServerContext, context: RequestContext, target: string, notice: string): HttpAnswer =>
  plainAnswer(server, context, html`<p><a href="${target}">Go on</a></p>`, { title: 'Notifications', notice })
