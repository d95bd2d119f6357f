import { hostname } from 'node:os'
import { Fault } from '../../core/base/errors.ts'
import { filesWithin } from '../../core/base/files/index.ts'
import { Secret } from '../../core/base/settings/index.ts'
import { type Notice, openReceiver, type ReceiverConfig, worstFirst } from '../../core/watch/notify/index.ts'
import { packageJson } from '../io/process.ts'

/** The incidents of a preview. */
export type PreviewedIncidents = 'fault' | 'recovery' | 'many'

type Sender = {
  /** `serve.name`; absent: the name of this machine. */
  readonly server: string | undefined
  readonly url: string | undefined
  readonly timezone: string | undefined
  readonly now: Date
}

/**
 * The requests, mails or inputs by which a receiver would tell of incidents, as texts. Connects to nothing, starts nothing
 * and reads no secret: each appears as its reference.
 */
export async function previewOf(
  config: ReceiverConfig,
  what: PreviewedIncidents,
  sender: Sender,
): Promise<readonly string[]> {
  const { server = hostname(), url, now } = sender
  const texts: string[] = []
  const standIns = new Map<string, string>()
  const receiver = await openReceiver(
    // Nothing is trusted, as nothing is connected to.
    { ...config, settings: { ...(withStandIns(config.settings, standIns) as object), caFile: undefined } },
    {
      server,
      url,
      version: packageJson().version,
      files: filesWithin(1_000),
      now: () => now.getTime(),
      warn: () => {},
      show: (text) => void texts.push(text),
    },
  )
  const delivery = await receiver.send(worstFirst(noticesFor(what, { ...sender, server })), AbortSignal.timeout(10_000))
  await receiver.close()
  if (delivery.what !== 'accepted' && texts.length === 0) throw new Fault('Local', delivery.message)
  return texts.map((text) => withReferences(text, standIns))
}

/** Settings in which each secret is a text of its own, that is also a URL. */
function withStandIns(value: unknown, standIns: Map<string, string>): unknown {
  if (value instanceof Secret) {
    const standIn = `https://secret-${standIns.size + 1}.svc.invalid/`
    standIns.set(standIn, value.origin)
    return new Secret(value.origin, async () => await Promise.resolve(standIn))
  }
  if (Array.isArray(value)) return value.map((one: unknown) => withStandIns(one, standIns))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withStandIns(one, standIns)]))
}

function withReferences(text: string, standIns: ReadonlyMap<string, string>): string {
  const decoded = text.replaceAll(/(?<=: Basic )[A-Za-z0-9+/=]+/g, (base64) => Buffer.from(base64, 'base64').toString())
  return [...standIns].reduce(
    (left, [standIn, origin]) =>
      left
        .replaceAll(standIn, origin)
        .replaceAll(encodeURIComponent(standIn), origin)
        .replaceAll(new URL(standIn).host, `the host of ${origin}`),
    decoded,
  )
}

/** PreviewedIncidents that nobody has: of a monitor that svc.yaml need not have. */
function noticesFor(what: PreviewedIncidents, { server = '', url, timezone, now }: Sender): readonly Notice[] {
  const at = now.getTime()
  const fault: Notice = {
    subject: { server, type: 'Sql', monitor: 'postgres orders', check: 'connect' },
    id: 'preview-1',
    what: 'begin',
    level: 'failed',
    incident: 'preview-1',
    beganAt: at - 40_000,
    observedAt: at,
    fault: 'refused',
    text: '10.0.0.7:5432 refused the connection',
    victims: { count: 1, names: ['App/http shop'] },
    tags: [],
    timezone,
    url,
  }
  if (what === 'fault') return [fault]
  const recovery: Notice = { ...fault, id: 'preview-2', what: 'end', endedAt: at, victims: { count: 0, names: [] } }
  if (what === 'recovery') return [recovery]
  const subject = { ...fault.subject, type: 'App', monitor: 'http shop', check: 'certificate' }
  const text = 'the certificate ends in 9 days'
  return [
    { ...fault, victims: recovery.victims },
    { ...fault, id: 'preview-3', incident: 'preview-3', level: 'warning', subject, text, victims: recovery.victims },
    { ...recovery, incident: 'preview-2', subject: { ...fault.subject, monitor: 'postgres billing' } },
  ]
}
