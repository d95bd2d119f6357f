import { broken, open, well } from '../../prove/leak-row.ts'
import { behindTap } from '../../support/engine/costs.ts'
import type { KindRows } from '../../support/engine/kind-rows.ts'
import { echo, messagesTo, peer, replies, talk } from '../../support/faults/faults.ts'

const host = '127.0.0.1'

export default {
  silent: { mode: 'Standard', settings: (port, host) => ({ host, port, send: 'PING\r\n', expect: '+PONG' }) },
  ended: [
    {
      name: 'tcp at a simulated server',
      opening: ['connect', 'answer'],
      start: () => peer(replies('<Reply><Jobs>3</Jobs></Reply>')),
      settings: (port) => ({ host, port, send: 'jobs', xml: { '/Reply/Jobs': '3' } }),
    },
  ],
  leaks: {
    missing: undefined,
    cost: 'cheap',
    start: async () => {
      const sound = await peer(echo)
      const silent = (port: number) => ({ host, port, send: 'PING {nonce}', expect: 'PING {nonce}' })
      const breaks = await broken(silent, 'PO')
      return {
        cases: [well(silent(sound.port)), ...breaks.cases],
        left: () => [...open('echo', sound), ...breaks.left()],
        stop: async () => {
          await sound.close()
          await breaks.stop()
        },
      }
    },
  },
  costs: {
    start: behindTap(
      () => peer(talk),
      (_, tapped) => {
        const at = { host, port: tapped.port }
        return {
          cases: {
            plain: at,
            send: { ...at, send: 'PING', expect: 'PING' },
            sendHex: { ...at, sendHex: '50 49 4e 47', expect: 'PING' },
            dialogue: {
              ...at,
              dialogue: [
                { send: 'PING 1\r\n', expect: 'PING 1' },
                { send: 'PING 2\r\n', expect: 'PING 2' },
              ],
            },
            protocol: { ...at, protocol: 'imap' },
          },
          counted: () => {
            const sent = tapped.sent()
            return { connections: sent.length, requests: messagesTo(Buffer.concat(sent).toString()) }
          },
        }
      },
    ),
  },
} satisfies KindRows
