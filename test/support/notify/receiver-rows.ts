import type { Raw } from '../../../src/core/base/settings/index.ts'

/** A place at which a receiver of a test sends, on loopback. */
export type PlantedAt = { readonly origin: string; readonly mail: number }

/** The rows of a kind of receiver in the tables that prove a rule for all kinds. */
export type ReceiverRow = {
  /** Its own settings, complete and without mistakes. */
  readonly settings: Raw
  /** Settings for `planted-secrets.test.ts`, or that the kind has no secrets. Each secret is `{env: …}`. */
  readonly planted: ((at: PlantedAt) => readonly Raw[]) | 'no secrets'
  /** Everything in a message by which its receiver recognizes what belongs together. */
  readonly keysIn: (message: string) => readonly string[]
}

type Labels = Readonly<Record<string, string>>
/** Labels without those that change with the level. */
const identityIn = ({ alertname: _, severity: __, ...labels }: Labels): string => JSON.stringify(labels)
const keysInBody = (message: string): readonly string[] => {
  type Body = {
    readonly groupKey: string
    readonly groupLabels: Labels
    readonly alerts: readonly { readonly fingerprint: string; readonly labels: Labels }[]
  }
  const { groupKey, groupLabels, alerts } = JSON.parse(message) as Body
  const ofAlerts = alerts.flatMap(({ fingerprint, labels }) => [fingerprint, identityIn(labels)])
  return [groupKey, identityIn(groupLabels), ...ofAlerts]
}

const account = { username: 'svc', password: { env: 'BASIC' } }

/** By the name of the kind: a test demands one of each kind. */
export const receiverRows: Readonly<Record<string, ReceiverRow>> = {
  alertmanager: {
    settings: { urls: ['https://am1:9093', 'https://am2:9093/prefix'], token: { env: 'TOKEN' }, ca: 'am-ca.pem' },
    planted: ({ origin }) => [
      { urls: [`${origin}/plant18-Zq8nT3`], token: { env: 'TOKEN' } },
      { urls: [origin], ...account },
    ],
    keysIn: (message) => (JSON.parse(message) as { labels: Labels }[]).map(({ labels }) => identityIn(labels)),
  },
  webhook: {
    settings: { url: 'https://chat.example.com/hooks/a1b2c3d4', secret: { env: 'KEY' } },
    planted: ({ origin }) => [
      { url: { env: 'HOOK' }, secret: { env: 'KEY' } },
      { url: `${origin}/plant08-Zq8nT3?key=plant09-Zq8nT3` },
    ],
    keysIn: keysInBody,
  },
  email: {
    settings: { server: 'smtps://mail.internal', ...account, from: 'svc@example.com', to: ['ops@example.com'] },
    planted: ({ mail }) => [
      {
        server: `smtp://127.0.0.1:${mail}`,
        from: 'svc@svc.test',
        to: ['accepted@svc.test'],
        username: 'monitor',
        password: { env: 'MAIL' },
      },
    ],
    keysIn: (message) => [/^References: (.*)$/im, /^In-Reply-To: (.*)$/im].map((one) => one.exec(message)?.[1] ?? ''),
  },
  pagerduty: {
    settings: { routingKey: { env: 'PD_KEY' }, drillRoutingKey: { env: 'PD_DRILL' } },
    planted: ({ origin }) => [{ url: origin, routingKey: { env: 'PD_KEY' }, drillRoutingKey: { env: 'PD_DRILL' } }],
    keysIn: (message) => {
      type Event = { readonly dedup_key: string; readonly client: string; readonly payload?: Readonly<Labels> }
      const { dedup_key: key, client, payload } = JSON.parse(message) as Event
      const { source, component, group, class: check } = payload ?? {}
      return [key, client, ...(payload ? [JSON.stringify({ source, component, group, check })] : [])]
    },
  },
  exec: { settings: { program: '/usr/local/lib/svc/sms', args: ['ops'] }, planted: 'no secrets', keysIn: keysInBody },
}
