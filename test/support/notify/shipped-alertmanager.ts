import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const shipped = readFileSync(
  fileURLToPath(new URL('../../../deploy/alertmanager/alertmanager.yml', import.meta.url)),
  'utf8',
)

/**
 * The configuration of Alertmanager that svc ships, which sends to one server, by a path for each receiver (`/ops`, `/oncall`,
 * `/ping`), and waits a second where it waits minutes before it sends. `pingEvery`: how often it repeats the watchdog, instead of
 * each minute.
 */
export const shippedConfiguration = (
  origin: string,
  { pingEvery = '1m' }: { readonly pingEvery?: string } = {},
): string =>
  shipped
    .replace('https://chat.example.com/hooks/ops', `${origin}/ops`)
    .replace('https://oncall.example.com/hooks/svc', `${origin}/oncall`)
    .replace('https://ping.example.com/svc', `${origin}/ping`)
    .replaceAll(/group_wait: \S+/g, 'group_wait: 1s')
    .replaceAll(/group_interval: \S+/g, 'group_interval: 1s')
    .replace('repeat_interval: 1m', `repeat_interval: ${pingEvery}`)
