import { request } from 'node:https'
import { describe, expect, test } from 'vitest'
import { cert, key } from './certificate.ts'
import { openSite, question, startSite, withSite } from './site.ts'

describe('starting', () => {
  test('reports the address at which it listens', async () => {
    await withSite({}, async ({ server }) => {
      expect(server.url).toBe(`http://127.0.0.1:${server.port}`)
      expect(server.host).toBe('127.0.0.1')
      expect(server.port).toBeGreaterThan(0)
    })
    const { server } = await openSite({ host: '0.0.0.0' })
    expect(server.url).toBe(`http://127.0.0.1:${server.port}`)
    expect(server.host).toBe('0.0.0.0')
  })

  test('writes an IPv6 address in brackets', async () => {
    await withSite({ host: '::1' }, async ({ server }) => {
      expect(server.url).toBe(`http://[::1]:${server.port}`)
      expect((await fetch(`${server.url}${question}`)).status).toBe(200)
    })
  })

  test('a port in use is a fault that names it', async () => {
    const { port } = await openSite({})
    const second = startSite({ port })
    await expect(second).rejects.toMatchObject({
      name: 'Fault',
      fault: 'Local',
      message: `Cannot listen on 127.0.0.1:${port}: the address is already in use`,
    })
  })

  test('an address of another machine is a fault', async () => {
    await expect(startSite({ host: '192.0.2.1' })).rejects.toMatchObject({
      fault: 'Local',
      message: 'Cannot listen on 192.0.2.1:0: this machine has no such address',
    })
  })

  test('a trusted proxy without a valid address is a fault', async () => {
    await expect(startSite({ options: { trustProxy: ['proxy'] } })).rejects.toMatchObject({ fault: 'Local' })
  })

  test.each([
    ['no certificate', { cert: 'rubbish', key }],
    ['no key', { cert, key: 'rubbish' }],
  ])('%s is a fault that does not repeat the value', async (_what, tls) => {
    const started = startSite({ tls })
    await expect(started).rejects.toMatchObject({ fault: 'Local' })
    await expect(started).rejects.not.toThrow(/rubbish|[A-Za-z\d+/]{40}/)
  })

  test('answers over TLS', async () => {
    const { server } = await openSite({ tls: { cert, key } })
    const status = await new Promise((resolve, reject) => {
      request({ host: '127.0.0.1', port: server.port, path: question, ca: cert, agent: false }, (incoming) =>
        resolve(incoming.resume().statusCode),
      )
        .on('error', reject)
        .end()
    })
    expect(status).toBe(200)
  })
})
