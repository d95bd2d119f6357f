import { text as textOf } from 'node:stream/consumers'
import { httpPeer } from '../simulated/http-peer.ts'

/** An alert in the body of a webhook, of svc or of Alertmanager. */
export type ReceivedAlert = {
  readonly status: 'firing' | 'resolved'
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

/** A receiver of webhooks on loopback that accepts everything, and keeps it in the order in which it came. */
export type AlertSink = AsyncDisposable & {
  readonly url: string
  readonly alerts: readonly ReceivedAlert[]
  /** The alerts whose monitor and item, as `tcp peer-1 ` or `svc node-a`, match. */
  readonly of: (status: ReceivedAlert['status'], item: RegExp) => readonly ReceivedAlert[]
}

/** The subject of an alert: the name of its monitor and its item. */
export const itemOf = ({ labels }: ReceivedAlert): string => `${labels.monitor} ${labels.item ?? ''}`

export async function alertSink(): Promise<AlertSink> {
  const alerts: ReceivedAlert[] = []
  const peer = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      alerts.push(...(JSON.parse(body) as { alerts: readonly ReceivedAlert[] }).alerts)
      response.writeHead(204).end()
    })
  })
  return {
    url: `${peer.origin}/hook`,
    alerts,
    of: (status, item) => alerts.filter((one) => one.status === status && item.test(itemOf(one))),
    [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose](),
  }
}
