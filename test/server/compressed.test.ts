import { connect } from 'node:net'
import { constants, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, openSite, raw, type Site, startSite } from './site.ts'

let site: Site
beforeAll(async () => {
  site = await startSite()
})
afterAll(() => site.server.stop())

const body = JSON.stringify({ ExecutionMode: 'Basic', ServerType: 'Sql', unknown: 'ä'.repeat(2_000) })
const post = (encoding: string, bytes: Buffer | string, port = site.port) =>
  ask(port, '/json/reply/HealthCheckRequest', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-encoding': encoding },
    body: bytes,
  })

describe('N10 compressed bodies', () => {
  test.each([
    ['gzip', gzipSync(body)],
    ['GZIP', gzipSync(body)],
    ['x-gzip', gzipSync(body)],
    ['gzip', Buffer.concat([gzipSync(body.slice(0, 50)), gzipSync(body.slice(50))])],
    ['deflate', deflateSync(body)],
    ['deflate', deflateSync(body, { level: constants.Z_NO_COMPRESSION })],
    // Without the zlib header, as .NET's DeflateStream writes it.
    ['deflate', deflateRawSync(body)],
    ['identity', Buffer.from(body)],
  ])('N10 a body in %s is read', async (encoding, bytes) => {
    const before = site.calls.length
    const got = await post(encoding, bytes)
    expect([got.status, got.json.Status]).toEqual([200, 'Success'])
    expect(site.calls[before]?.request).toEqual({ ExecutionMode: 'Basic', ServerType: 'Sql' })
  })

  test('N10 a compressed body is read in a batch, in chunks and byte by byte', async () => {
    const batch = await ask(site.port, '/api/HealthCheckRequest[]', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: gzipSync(`[${body},${body}]`),
    })
    expect([batch.status, batch.headers['x-autobatch-completed']]).toEqual([200, '2'])
    for (const bytes of [gzipSync('{"ServerType":"App"}'), deflateRawSync('{"ServerType":"App"}')]) {
      const encoding = bytes[0] === 0x1f ? 'gzip' : 'deflate'
      const head = `POST /api/HealthCheckRequest?ExecutionMode=Basic HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Encoding: ${encoding}\r\nTransfer-Encoding: chunked\r\n\r\n`
      const chunks = [...bytes].flatMap((byte) => [Buffer.from('1\r\n'), Buffer.from([byte]), Buffer.from('\r\n')])
      const got = await raw(site.port, Buffer.concat([Buffer.from(head), ...chunks, Buffer.from('0\r\n\r\n')]))
      expect(got.text).toMatch(/^HTTP\/1\.1 200 /)
    }
  })

  test('N8 a compressed body without bytes is an empty request', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip', 'content-length': '0' }
    expect((await ask(site.port, '/auth', { method: 'POST', headers })).status).toBe(501)
  })

  test.each(['br', 'zstd', 'compress', 'gzip, gzip', 'gzip, identity', 'deflate,gzip', 'gzip;q=1', '*', 'constructor'])(
    'N10 a body in %s is a 415 that names the accepted encodings',
    async (encoding) => {
      const before = site.calls.length
      const got = await post(encoding, gzipSync(body))
      expect([got.status, got.json.ResponseStatus?.ErrorCode]).toEqual([415, 'UnsupportedMediaType'])
      expect(got.headers['accept-encoding']).toBe('gzip, deflate')
      expect(site.calls).toHaveLength(before)
    },
  )

  test.each([
    ['gzip', 'not gzip', Buffer.from(body)],
    ['gzip', 'cut off', gzipSync(body).subarray(0, -9)],
    ['gzip', 'damaged', Buffer.from(gzipSync(body).map((byte, at, all) => (at === all.length - 6 ? byte ^ 1 : byte)))],
    ['deflate', 'not deflate', Buffer.from([0xff, 0xff, 0xff, 0xff])],
    ['deflate', 'cut off', deflateSync(body).subarray(0, 30)],
  ])('N10 a body in %s that is %s is a 400, and the server keeps serving', async (encoding, _, bytes) => {
    const got = await post(encoding, bytes)
    expect([got.status, got.json.ResponseStatus?.ErrorCode]).toEqual([400, 'SerializationException'])
    expect((await post('gzip', gzipSync(body))).status).toBe(200)
  })

  test('S3 the limit holds for the expanded body: just below it is read, above it is a 413', async () => {
    const { port, calls } = await openSite({ options: { maxBody: 1_000 } })
    const text = (size: number) => `{"ExecutionMode":"Basic","ServerType":"Sql"}`.padEnd(size)
    for (const compress of [gzipSync, deflateSync, deflateRawSync]) {
      const encoding = compress === gzipSync ? 'gzip' : 'deflate'
      expect((await post(encoding, compress(text(1_000)), port)).status).toBe(200)
      const got = await post(encoding, compress(text(1_001)), port)
      expect([got.status, got.json.ResponseStatus?.ErrorCode]).toEqual([413, 'RequestEntityTooLarge'])
    }
    // The compressed form is longer than the limit.
    const stored = gzipSync(text(1_000), { level: constants.Z_NO_COMPRESSION })
    expect((await post('gzip', stored, port)).status).toBe(413)
    expect(calls).toHaveLength(3)
  })

  test('S3 a body of a few bytes that expands to 100 MB is a 413, and nothing is executed', async () => {
    const before = site.calls.length
    const bomb = gzipSync(Buffer.alloc(100 * 1024 * 1024))
    expect(bomb.length).toBeLessThan(128 * 1024)
    const got = await post('gzip', bomb)
    expect([got.status, got.json.ResponseStatus?.ErrorCode]).toEqual([413, 'RequestEntityTooLarge'])
    expect(got.headers.connection).toBe('close')
    expect(site.calls).toHaveLength(before)
  })

  test('S3 a compressed body is refused as soon as it expands beyond the limit, before its end has arrived', async () => {
    const bomb = gzipSync(Buffer.alloc(100 * 1024 * 1024))
    const head = `POST /api/HealthCheckRequest HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`
    const got = await raw(site.port, Buffer.concat([Buffer.from(head), bomb.subarray(0, 8_192)]))
    expect(got.text).toMatch(/^HTTP\/1\.1 413 /)
    expect(got.closed).toBe(true)
  })

  test('S3 an endless compressed body is cut off', async () => {
    const { port, calls } = await openSite({ limits: { lingerBytes: 100_000 } })
    const socket = connect(port, '127.0.0.1')
    const closed = new Promise<void>((resolve) => {
      socket.on('close', () => resolve())
      socket.on('error', () => {})
    })
    socket.resume()
    socket.write(
      'POST /api/HealthCheckRequest HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n',
    )
    // Members of gzip that expand to nothing: only the compressed bytes count.
    const empty = Buffer.concat(Array.from({ length: 2_000 }, () => gzipSync('')))
    let sent = 0
    for (let i = 0; i < 2_000 && socket.writable; i += 1) {
      sent += empty.length
      const chunk = Buffer.concat([Buffer.from(`${empty.length.toString(16)}\r\n`), empty, Buffer.from('\r\n')])
      if (!socket.write(chunk)) await Promise.race([closed, new Promise((resolve) => socket.once('drain', resolve))])
    }
    await closed
    expect(sent).toBeLessThan(64 * 1024 * 1024)
    expect(calls).toEqual([])
  })
})
