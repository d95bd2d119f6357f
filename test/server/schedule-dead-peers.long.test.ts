import { test } from 'vitest'
import { startDeaf, startMuteNameServer, startSilent } from '../support/faults/dead-peers.ts'
import { maxMs, othersStayOnTime } from './scheduled-web.ts'

test(
  'W1 200 dead addresses, 20 hung peers and a dead name server keep none of 760 other monitors waiting',
  async () => {
    const [deaf, silent, mute] = await Promise.all([startDeaf(), startSilent(), startMuteNameServer()])
    await othersStayOnTime([
      ...Array.from({ length: 200 }, (_, at) => `{kind: tcp, name: dead${at}, host: 127.3.0.${1 + at}, port: ${deaf}}`),
      ...Array.from(
        { length: 20 },
        (_, at) => `{kind: http, name: hung${at}, url: 'http://127.4.0.${1 + at}:${silent}/'}`,
      ),
      ...Array.from(
        { length: 20 },
        (_, at) => `{kind: dns, name: mute${at}, query: svc${at}.test, server: '127.0.0.1:${mute}'}`,
      ),
    ])
  },
  maxMs,
)
