import { expect, test } from 'vitest'
import { http, peer, replies } from '../support/faults.ts'
import { svcHome } from '../support/svc.ts'

const healthy = http(
  200,
  JSON.stringify({
    Status: 'Success',
    StatusMessage: 'Sql is healthy',
    MonitorSummaries: [{ MonitorName: 'Sql', Status: 'Success' }],
  }),
  {
    'Content-Type': 'application/json',
  },
)

test.each([
  [['--wait', '5s'], true],
  [['--wait', '5s', '--cached'], true],
  [[], true],
  [['--cached'], false],
])('svc health %j requests a run that begins after the command: %s', async (flags, fresh) => {
  const home = svcHome()
  try {
    await using server = await peer(replies(healthy))
    const ran = await home.svc(['health', '-t', 'Sql', '--server', `http://127.0.0.1:${server.port}`, ...flags])
    expect(ran.code).toBe(0)
    expect(/^Cache-Control: no-cache\r$/im.test(server.input())).toBe(fresh)
  } finally {
    home.remove()
  }
})
