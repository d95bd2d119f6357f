import { isOver, type Notice } from '../receiver.ts'
import type { ReceiverConfig } from '../settings.ts'
import type { ReceiverContext } from './kind.ts'
import { annotationsOf, identityOf, keyOf, labelsOf } from './message.ts'

/** How many alerts one message has. `truncatedAlerts` counts the others. */
const maxAlerts = 1_000

type Labels = Readonly<Record<string, string>>

/** The labels that all alerts have with the same value. */
const commonTo = ([first = {}, ...others]: readonly Labels[]): Labels =>
  Object.fromEntries(Object.entries(first).filter(([name, value]) => others.every((one) => one[name] === value)))

/** The body of Alertmanager's webhooks, version 4. */
export function bodyOf(
  notices: readonly Notice[],
  { name, details }: ReceiverConfig,
  { url = '', isTest }: ReceiverContext,
) {
  const alerts = notices.slice(0, maxAlerts).map((notice) => alertOf(notice, details, isTest === true))
  const isFiring = alerts.some(({ status }) => status === 'firing')
  const groupLabels = commonTo(notices.map(({ subject }) => identityOf(subject)))
  const group = Object.entries(groupLabels).map(([label, value]) => `${label}=${JSON.stringify(value)}`)
  return {
    receiver: name,
    status: isFiring ? 'firing' : 'resolved',
    alerts,
    groupLabels,
    commonLabels: commonTo(alerts.map(({ labels }) => labels)),
    commonAnnotations: commonTo(alerts.map(({ annotations }) => annotations)),
    externalURL: url,
    version: '4',
    groupKey: `{}:{${group.join(', ')}}`,
    truncatedAlerts: notices.length - alerts.length,
  }
}

/** The `endsAt` of an alert that has not ended. */
const never = '0001-01-01T00:00:00Z'

function alertOf(notice: Notice, details: ReceiverConfig['details'], isTest: boolean) {
  const { subject, beganAt, endedAt, observedAt, url = '' } = notice
  const [labels, annotations]: readonly [Labels, Labels] = isTest
    ? [
        { alertname: 'SvcTest', severity: 'none', test: 'true', ...identityOf(subject) },
        { summary: 'Test message of svc notify test: nothing has failed', description: notice.text },
      ]
    : [labelsOf(notice), annotationsOf(notice, details)]
  return {
    status: isOver(notice) ? 'resolved' : 'firing',
    labels,
    annotations,
    startsAt: new Date(beganAt).toISOString(),
    endsAt: isOver(notice) ? new Date(endedAt ?? observedAt).toISOString() : never,
    generatorURL: url,
    // From the identity alone, so that a change of severity concerns the same alert.
    fingerprint: keyOf(subject),
  }
}
