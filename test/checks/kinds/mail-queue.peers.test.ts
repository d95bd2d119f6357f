import { expect, test } from 'vitest'
import { checked } from '../../support/engine/run-kind.ts'
import { eximQueueMissing, postfixQueueMissing, queueResults } from '../../support/servers/mail-queue.ts'
import { peerSuite } from '../../support/suite/peer.ts'

for (const [server, missing] of [
  ['postfix', postfixQueueMissing],
  ['exim', eximQueueMissing],
] as const) {
  peerSuite(missing, `mail-queue with ${server}`, () => {
    test('H10 an account that may not read the queue checks nothing, and svc names the group to join', () => {
      const results = queueResults(server, 'empty', { asOther: true })
      expect(results).toMatchObject([{ check: 'queue', status: 'failed', notChecked: 'permission' }])
      expect(results[0]?.message).toContain('usermod -aG')
    }, 60_000)
  })
}

peerSuite(eximQueueMissing, 'mail-queue with Exim', () => {
  test('a message with a damaged envelope counts as waiting', () => {
    expect(checked(queueResults('exim', 'damaged'), 'queue')).toMatchObject({ status: 'ok', measurement: { value: 3 } })
  }, 60_000)
})
