import { describe, expect, test } from 'vitest'
import { ping } from '../../../src/core/watch/notify/index.ts'
import { load } from '../../config/given.ts'
import { files } from '../../support/engine/files.ts'
import { signal } from '../../support/notify/notice.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'

/** Requests the URL of `serve.ping`, as a variable has it. */
async function pinged(url: string) {
  const { serve } = await load('serve: {ping: {env: PING_URL}}', { PING_URL: url })
  if (serve.ping === undefined) throw new Error('there is no ping')
  return await ping(serve.ping, { version: '1', files, now: Date.now }, signal())
}

describe("W24 the ping of a dead man's switch", () => {
  test('is a GET of the URL, and its status decides', async () => {
    let status = 200
    await using peer = await httpPeer((_, response) => response.writeHead(status).end('secret-path-1'))
    expect(await pinged(`${peer.origin}/secret-path-1?k=secret-query-2`)).toEqual({ what: 'accepted' })
    expect(peer.requestLines()).toEqual(['GET /secret-path-1?k=secret-query-2'])
    for (status of [302, 404, 429, 500]) {
      const delivery = JSON.stringify(await pinged(`${peer.origin}/secret-path-1?k=secret-query-2`))
      expect(delivery).toContain(`answered ${status}`.replace('answered 302', 'redirects'))
      expect(delivery).not.toMatch(/secret-path-1|secret-query-2/)
    }
  })

  test('leaves this machine only under TLS, and no message shows the URL', async () => {
    const delivery = await pinged('http://ping.example.com/secret-path-1')
    expect(delivery).toMatchObject({ what: 'later', message: expect.stringContaining('needs https://') })
    expect(JSON.stringify(delivery)).not.toContain('secret-path-1')
    expect(await pinged('not a URL secret-path-1')).toMatchObject({
      what: 'later',
      message: expect.not.stringContaining('secret-path-1'),
    })
  })

  test('a switch that is down is told in scheme and host', async () => {
    const closed = await httpPeer(() => {})
    await closed[Symbol.asyncDispose]()
    expect(await pinged(`${closed.origin}/secret-path-1`)).toMatchObject({
      what: 'later',
      message: expect.stringMatching(/^ping: http:\/\/127\.0\.0\.1:\d+ refused/),
    })
  })
})
