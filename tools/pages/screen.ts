import { hostname } from 'node:os'
import type { Stage } from './stage.ts'
import { onTerminal } from './terminal.ts'

/**
 * The screen of `svc health` on a terminal of 100 columns for the svc.yaml of the README, whose worker refuses
 * connections. Addresses and the name of the test machine are replaced by those of the example, and progress is left
 * out.
 */
export async function healthScreen(stage: Stage, config: string): Promise<string> {
  stage.write('~/.config/svc/svc.yaml', config)
  const { output } = await onTerminal('svc health 2>/dev/null', { cwd: stage.work, env: stage.env })
  return output
    .replaceAll(`127.0.0.1:${stage.closedPort}`, '10.0.0.7:9100')
    .replaceAll(new URL(stage.shopUrl).host, 'shop.example.com')
    .replaceAll(hostname(), 'web1')
    .replaceAll(/[ \t]+$/gm, '')
    .replace(/^\n+|\n+$/g, '')
    .concat('\n')
}

/** A page's example as it works here: names of servers that nobody has become those of the stage. */
export const localized = (text: string, stage: Stage): string =>
  text
    .replaceAll('https://shop.example.com', stage.shopUrl)
    .replaceAll('https://svc.example.com', `http://127.0.0.1:${stage.servePort}`)
    .replaceAll('127.0.0.1:8790', `127.0.0.1:${stage.servePort}`)
    .replaceAll('host: worker.internal, port: 9100', `host: 127.0.0.1, port: ${stage.closedPort}`)
