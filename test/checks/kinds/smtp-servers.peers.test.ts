import { expect, test } from 'vitest'
import smtp from '../../../src/core/checks/kinds/smtp/index.ts'
import { checked, runKind } from '../../support/engine/run-kind.ts'
import { eximMissing, fullSpool, greylisting, startExim } from '../../support/servers/exim.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const host = '127.0.0.1'

peerSuite(eximMissing, 'smtp with Exim', () => {
  test('a server with room for mail accepts the sender', async () => {
    const exim = await startExim()
    try {
      const results = await runKind(smtp, { host, port: exim.port }, 'Standard')
      expect(checked(results, 'sender')).toMatchObject({ status: 'ok' })
      expect(checked(results, 'sender').message).toContain('"250 OK"')
    } finally {
      await exim.remove()
    }
  })
  test('a full spool is a failure from Standard on, and not greylisting', async () => {
    const exim = await startExim(fullSpool)
    try {
      // A busy machine may take longer than the default limit to start the process that sends the banner.
      const settings = { host, port: exim.port, recipient: 'someone@svc.test', latency: {} }
      for (const mode of ['Standard', 'Advanced'] as const) {
        const results = await runKind(smtp, settings, mode)
        const failed = results.filter(({ status }) => status === 'failed')
        expect(failed.map(({ check }) => check)).toEqual(mode === 'Standard' ? ['sender'] : ['sender', 'recipient'])
        for (const one of failed) {
          expect(one).toMatchObject({ fault: 'data' })
          expect(one.message).toContain('"452 Space shortage, please try later"')
          expect(one.message).not.toContain('greylisting')
        }
      }
    } finally {
      await exim.remove()
    }
  })
  test('greylisting of a recipient is a warning', async () => {
    const exim = await startExim(greylisting)
    try {
      const results = await runKind(smtp, { host, port: exim.port, recipient: 'someone@svc.test' }, 'Advanced')
      expect(checked(results, 'sender').status).toBe('ok')
      expect(checked(results, 'recipient')).toMatchObject({ status: 'warning' })
      expect(checked(results, 'recipient').message).toContain('greylisting')
    } finally {
      await exim.remove()
    }
  })
})
