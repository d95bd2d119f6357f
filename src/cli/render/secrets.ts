import { hostAndPort } from '../../core/settings/index.ts'
import type { SecretFacts } from '../secrets.ts'
import { headline, listing, type Screen, type Shown, tabbed } from './listing.ts'

export const secretJson = ({ name, host, port }: SecretFacts) => ({ name, for: hostAndPort(host, port) })

/** In a pipe: Name, For. */
export function renderSecrets(secrets: readonly SecretFacts[], screen: Screen): string {
  if (!screen.isTTY) return secrets.map(({ name, host, port }) => tabbed([name, hostAndPort(host, port)])).join('\n')
  if (secrets.length === 0) {
    return `${headline('warn', 'No secret was set here', screen)}\n\n  One for svc.yaml:   svc secrets set NAME --for HOST:PORT`
  }
  const rows = secrets.map(({ name, host, port }): Shown[] => [name, hostAndPort(host, port), `{keychain: ${name}}`])
  return [
    headline('ok', secrets.length === 1 ? '1 secret' : `${secrets.length} secrets`, screen),
    '',
    listing({ titles: ['NAME', 'SENT ONLY TO', 'IN svc.yaml'], yielding: [2, 1, 0] }, rows, screen),
  ].join('\n')
}
