import { sanitize } from '../../../../base/net/text.ts'
import type { Secret, SettingsSpec, Values } from '../../../../base/settings/index.ts'
import { isOver, type Notice } from '../../receiver.ts'
import type { ReceiverConfig } from '../../settings.ts'
import type { ReceiverContext } from '../kind.ts'
import { callbackOf, headlineOf, isDrill, isLink, linesOf, severityOf } from '../message.ts'
import type { HttpAsk } from '../post.ts'

/** How bad the worst of a message is. `info`: a drill or a test. */
export type Severity = 'critical' | 'warning' | 'resolved' | 'info'

export type Link = { readonly title: string; readonly url: string }

/** The message for every service, in texts that are within its limits and inert in its markup. */
export type ServiceMessage = {
  /** One line: the worst of it, what is wrong, and how much more there is. */
  readonly title: string
  /** The lines about each notice. */
  readonly text: string
  readonly links: readonly Link[]
  readonly severity: Severity
  /** The same in each attempt to send the message: hexadecimal digits. */
  readonly id: string
  /** The first notice. The only one at services with a message for each. */
  readonly notice: Notice
  readonly details: ReceiverConfig['details']
  /** `svc notify test` sends it. */
  readonly isTest: boolean
  /** `serve.url`. */
  readonly page: string | undefined
}

/** A request to a service. The path continues its address. */
export type ServiceRequest = {
  readonly method?: HttpAsk['method']
  /** The path and query, or the whole URL, if the settings contain it. */
  readonly path: string | URL
  readonly headers?: Readonly<Record<string, string>>
  /** The body, as JSON or as a form. */
  readonly json?: unknown
  readonly form?: Readonly<Record<string, string | undefined>>
}

/** The shape of a secret, so that one that cannot be right is not sent. */
export type SecretShape = {
  /** Of a URL, the path with the query has this shape. */
  readonly shape: RegExp
  /** An example that shows the shape, without a secret. */
  readonly looksLike: string
  /** Whether it is the URL to post to. */
  readonly isUrl?: true
}

/** Settings whose secrets have been read. */
export type Revealed<V> = { readonly [K in keyof V]: Secret extends V[K] ? Exclude<V[K], Secret> | string : V[K] }

type Spec = { readonly [key: string]: SettingsSpec[string] }

/** A service that shows messages to people, as data: a row of the table in `services.ts`. */
export type ChatService<S extends Spec = Spec, W = unknown> = {
  /** The name of its section in a receiver. */
  readonly name: string
  /** As its maker writes it. */
  readonly title: string
  readonly doc: string
  /** Where people find its secret, and what else the reference says about it. Markdown. */
  readonly secretFrom: string
  /** Where its form is published, and as of when. */
  readonly source: string
  /** Its address, unless the receiver states another. Absent: the receiver states it, or its secret contains it. */
  readonly server?: string
  /** The name of the setting of its address, if that is not `server`. */
  readonly serverSetting?: string
  readonly settings: S
  /** A row for each of its secrets. */
  readonly secrets: { readonly [K in keyof S as S[K] extends { type: 'secret' } ? K : never]: SecretShape }
  /**
   * It has an alert for each check, which svc closes by its key: each notice is a message of its own, and the service repeats
   * by itself. Drills go to a key of their own, which pages nobody.
   */
  readonly alerts?: {
    /** Its own word for one: `event`. */
    readonly each: string
    /** The settings of its key, and of the key for drills. */
    readonly key: string
    readonly drills: string
    /** The part of the service that repeats: `an escalation policy of PagerDuty`. */
    readonly repeatedBy: string
  }
  /** The limits of its texts, counted in characters, or in bytes of UTF-8. What is longer is cut, and says so. */
  readonly limits: {
    readonly title: number
    /** Of the text with its links, unless they have a place of their own. */
    readonly text: number
    readonly linksApart?: true
    readonly unit?: 'bytes'
  }
  /** Makes a text inert: nothing in it is markup, a mention or a link. Default: only mentions and links. */
  readonly literal?: (text: string) => string
  /** The service's words for severities: a color, a priority, a tag. */
  readonly words: Readonly<Record<Severity, W>>
  readonly request: (message: ServiceMessage, values: Revealed<Values<S>>, word: W) => ServiceRequest
  /** The proof that it accepted a message, besides a status of 2xx. */
  readonly accepted: {
    /** The only status that does. */
    readonly status?: number
    /** The whole body. */
    readonly body?: string
    /** A member of the JSON of the body, and its value; without a value, it must be there. */
    readonly member?: string
    readonly is?: unknown
  }
  /** The place where a body says how long to wait, besides `Retry-After`. */
  readonly slower?: { readonly path: readonly string[]; readonly unitMs: number }
  /** Milliseconds to wait after a 429 that does not say how long. */
  readonly leastPauseMs?: number
}

/** A service whose settings only itself knows. */
export type AnyService = Omit<ChatService, 'secrets' | 'words' | 'request'> & {
  readonly secrets: Readonly<Record<string, SecretShape>>
  readonly words: Readonly<Record<Severity, unknown>>
  readonly request: (message: ServiceMessage, values: never, word: never) => ServiceRequest
}

/** Declares a service. */
export const service = <const S extends Spec, const W>(row: ChatService<S, W>): AnyService =>
  row as unknown as AnyService

/** A mention or a link of a peer must not look like one of ours, and must call nobody: U+200B takes it apart. */
const inert = (text: string): string => text.replaceAll('@', '@\u200B').replaceAll('://', ':\u200B//')

/** Characters of a link, and of the markup around it. */
const maxLink = 500
const maxLinkMarkup = 8
/** Without the characters that end a link in the markup of a service. */
const linkTo = (url: string): string =>
  sanitize(
    url.replace(/[()<>|]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`),
    maxLink,
  )
const marked = '…'

/** The text, inert and escaped, within a limit; what was cut is marked, at the end of a line if there is one near. */
function within(text: string, max: number, { limits: { unit }, literal = String }: AnyService): string {
  const sizeOf = (one: string): number => (unit === 'bytes' ? Buffer.byteLength(one) : one.length)
  // No literal form is shorter than its text, of which there may be much more.
  const beginning = text.slice(0, max + 1)
  const whole = literal(inert(beginning))
  if (beginning === text && sizeOf(whole) <= max) return whole
  const cutAt = (length: number): string => `${literal(inert(beginning.slice(0, length).toWellFormed()))}${marked}`
  let [least, most] = [0, beginning.length]
  while (least < most) {
    const middle = Math.ceil((least + most) / 2)
    if (sizeOf(cutAt(middle)) <= max) least = middle
    else most = middle - 1
  }
  const line = beginning.lastIndexOf('\n', least)
  return cutAt(line > least / 2 ? line + 1 : least)
}

/** The worst severity of a message. */
export const severityIn = (notices: readonly Notice[], isTest: boolean): Severity => {
  if (isTest || isDrill(...notices)) return 'info'
  const open = notices.filter((one) => !isOver(one)).map(severityOf)
  if (open.length === 0) return 'resolved'
  return open.includes('critical') ? 'critical' : 'warning'
}

/** The message about notices, the worst of which is the first. `id`: the same in each attempt. */
export function messageOf(
  notices: readonly [Notice, ...Notice[]],
  { details }: Pick<ReceiverConfig, 'details'>,
  row: AnyService,
  id: string,
  { server, url: page, isTest = false }: Pick<ReceiverContext, 'server' | 'url' | 'isTest'>,
): ServiceMessage {
  const [notice] = notices
  const title = isTest ? 'TEST of svc notify test: nothing has failed' : headlineOf(notices, details)
  const lines = (one: Notice, index: number): string =>
    [
      // The title has said it of the first.
      ...linesOf(one, details, { isTitled: index > 0, hasLinks: false }).filter(
        (line) => index > 0 || !title.includes(line.trim()),
      ),
      // Where a recovery closes nothing, people recognize by it what has recovered.
      ...(row.alerts !== undefined || isDrill(one) ? [] : [`  incident ${sanitize(one.incident, 128)}`]),
    ].join('\n')
  const text = isTest ? notice.text : notices.map(lines).join('\n\n')
  const links = isTest ? [] : linksOf(notices)
  const linksLength = links.reduce((sum, link) => sum + Buffer.byteLength(link.title + link.url) + maxLinkMarkup, 0)
  return {
    title: within(`[${server}] ${title}`, row.limits.title, row),
    text: within(text, row.limits.text - (row.limits.linksApart === true ? 0 : linksLength), row),
    links,
    severity: severityIn(notices, isTest),
    id,
    notice,
    details,
    isTest,
    page,
  }
}

/** Links that svc has made or svc.yaml contains. Those of several notices: the first of each title. */
function linksOf(notices: readonly Notice[]): readonly Link[] {
  const all = notices.flatMap((notice): readonly Link[] => {
    const { runbook, url } = notice
    const callback = callbackOf(notice)
    return [
      ...(callback === undefined ? [] : [{ title: 'Confirm that the drill arrived', url: callback }]),
      ...(runbook === undefined || !isLink(runbook) ? [] : [{ title: 'Runbook', url: linkTo(runbook) }]),
      ...(url === undefined ? [] : [{ title: 'Status page', url: linkTo(url) }]),
    ]
  })
  return all.filter(({ title }, index) => all.findIndex((one) => one.title === title) === index)
}
