import type { Raw } from '../../../src/core/base/settings/index.ts'
import { serviceRows, settingsAt } from './service-rows.ts'

/** A place at which a receiver of a test sends, on loopback. */
export type PlantedAt = { readonly origin: string; readonly mail: number }

/** The rows of a kind of receiver in the tables that prove a rule for all kinds. */
export type ReceiverRow = {
  /** Its own settings, complete and without mistakes. */
  readonly settings: Raw
  /** Settings for `planted-secrets.test.ts`, or why it has none there. Each secret is `{env: …}`. */
  readonly planted: ((at: PlantedAt) => readonly Raw[]) | 'no secrets' | 'services.test.ts'
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

/** The keys of services that have some, and otherwise the incidents by which people recognize what belongs together. */
const keysInService = (message: string): readonly string[] => {
  type Body = Readonly<Record<'dedup_key' | 'alias' | 'client' | 'path', string | undefined>> & {
    readonly payload?: Readonly<Labels>
    readonly thread?: { readonly threadKey: string }
  }
  const { dedup_key: dedup, client, payload, thread, path, ...rest } = JSON.parse(message) as Body
  const alias = rest.alias ?? /alerts\/([0-9a-f]+)\/close/.exec(path ?? '')?.[1]
  const { source, component, group, class: check } = payload ?? {}
  const fields = payload ? [JSON.stringify({ source, component, group, check })] : []
  const keys = [dedup, alias, client, thread?.threadKey, ...fields].filter((one) => one !== undefined)
  return keys.length > 0 ? keys : [...message.matchAll(/incident\\*[ -]?([^\s"'\\`]+)/g)].map(([, id = '']) => id)
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
  exec: { settings: { program: '/usr/local/lib/svc/sms', args: ['ops'] }, planted: 'no secrets', keysIn: keysInBody },
  ...Object.fromEntries(
    Object.keys(serviceRows).map((name): [string, ReceiverRow] => [
      name,
      { settings: settingsAt(name, `https://${name}.svc.test`), planted: 'services.test.ts', keysIn: keysInService },
    ]),
  ),
}
