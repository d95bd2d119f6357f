import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import tcp, { evaluateConnect } from '../../../src/core/checks/kinds/tcp.ts'
import { checked, runKind, withDefaults } from '../../support/engine/run-kind.ts'
import {
  blackHole,
  cutAfter,
  echo,
  endless,
  escapeSequences,
  peer,
  refusedPort,
  replies,
  reset,
  speaks,
} from '../../support/faults/faults.ts'
import { givenUp } from '../../support/hostile/given-up.ts'
import { measureWork } from '../../support/suite/processor-time.ts'
import { farMs } from '../../support/suite/until.ts'

const host = '127.0.0.1'
const defaults = withDefaults(tcp.settings, { host, port: 1 })

/** A listener that is frozen, and whose queue of connections is full: the kernel drops every further one. */
async function fullListener() {
  const script =
    "require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () { console.log(this.address().port) })"
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const port = Number(line.toString())
  child.kill('SIGSTOP')
  const waiting = Array.from({ length: 8 }, () => connect(port, host).on('error', () => {}))
  await Promise.race(waiting.slice(0, 2).map((socket) => once(socket, 'connect')))
  onTestFinished(() => {
    for (const socket of waiting) socket.destroy()
    child.kill('SIGKILL')
  })
  return port
}

describe('a port that is to be closed', () => {
  const states = ['closed', 'closedOrFiltered'] as const
  const look = async (settings: object, options: object = {}) => {
    const results = await runKind(tcp, { host, ...settings }, 'Basic', options)
    return results.map(({ status, fault, message }) => [status, fault, message] as const)
  }

  test.each(states)('H76 %s holds where the address refuses', async (state) => {
    const port = await refusedPort()
    const [only, ...others] = await look({ port, state })
    expect(others).toEqual([])
    expect(only).toEqual(['ok', undefined, expect.stringMatching(/^127\.0\.0\.1:\d+ refuses connections/)])
  })

  test.each(states)('H76 %s fails where a port accepts connections, and nothing is sent', async (state) => {
    await using there = await peer(speaks('hello'))
    const [only, ...others] = await look({ port: there.port, state })
    expect(others).toEqual([])
    expect(only).toEqual(['failed', 'data', expect.stringContaining(`accepts connections, and \`state: ${state}\``)])
    expect(there.input()).toBe('')
  })

  test.each(states)(
    'H76 %s fails where one of the addresses of a name accepts connections, in every mode',
    async (state) => {
      await using there = await peer(blackHole)
      const resolve = () => Promise.resolve(['127.0.0.2', '127.0.0.1'])
      for (const mode of ['Basic', 'Standard', 'Advanced'] as const) {
        const results = await runKind(tcp, { host: 'two.test', port: there.port, state }, mode, { resolve })
        expect(results.map(({ status, address }) => `${status} ${address}`).sort()).toEqual([
          `failed 127.0.0.1:${there.port}`,
          `ok 127.0.0.2:${there.port}`,
        ])
      }
    },
  )

  test.skipIf(process.platform !== 'linux')(
    'H76 a port that does not answer is not closed, but closed or filtered',
    async () => {
      const port = await fullListener()
      expect(await look({ port, state: 'closed' }, { timeoutMs: 700 })).toEqual([
        ['failed', 'timeout', expect.any(String)],
      ])
      expect(await look({ port, state: 'closedOrFiltered' }, { timeoutMs: 700 })).toEqual([
        ['ok', undefined, expect.stringContaining('does not answer within')],
      ])
    },
  )

  test.each(states)('H76 %s fails with the cause where nothing is seen of the port', async (state) => {
    const gone = () => Promise.reject(Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' }))
    expect(await look({ host: 'gone.test', port: 1, state }, { resolve: gone })).toEqual([
      ['failed', 'dns', expect.stringContaining('gone.test')],
    ])
    // TCP has no route to a broadcast address, and sends nothing.
    const [only] = await look({ host: '255.255.255.255', port: 1, state })
    expect(only).toEqual(['failed', 'refused', expect.stringMatching(/no route|unreachable/)])
  })

  test.each([
    [{ send: 'PING' }, 'state and send exclude each other'],
    [{ expect: 'PONG' }, 'state and expect exclude each other'],
    [{ samples: 3 }, 'state and samples exclude each other'],
    [{ addresses: 'any' }, 'state needs addresses: all'],
  ] as const)('H76 it is refused beside %j', (settings, message) => {
    expect(tcp.validate?.({ ...defaults, state: 'closed', ...settings })).toContain(message)
  })
})

describe('tcp connect', () => {
  test('a listening port is ok and receives nothing', async () => {
    await using there = await peer(blackHole)
    const results = await runKind(tcp, { host, port: there.port })
    expect(results.map((result) => [result.check, result.status])).toEqual([['connect', 'ok']])
    expect(checked(results, 'connect').address).toBe(`127.0.0.1:${there.port}`)
    expect(there.input()).toBe('')
  })

  test('a peer that accepts and closes at once is a warning in Standard, and one that speaks or waits is ok', async () => {
    const open = async (behave: Parameters<typeof peer>[0], settings: Partial<typeof defaults> = {}) => {
      await using there = await peer(behave)
      const results = await runKind(tcp, { host, port: there.port, ...settings }, 'Standard')
      return results.find(({ check }) => check === 'open')
    }
    const closed = await open((socket) => void socket.end())
    expect(closed).toMatchObject({ status: 'warning' })
    expect(closed?.message).toMatch(/accepted the connection and closed it after .* without sending anything$/)
    expect(await open(blackHole)).toMatchObject({ status: 'ok' })
    expect(await open((socket) => void socket.end('bye'))).toMatchObject({ status: 'ok' })
    expect(await open(speaks('hello'), { expect: 'hello' })).toBeUndefined()
  })

  test('a refused port is reported as a host that is up without a listener', async () => {
    const port = await refusedPort()
    const result = checked(await runKind(tcp, { host, port }), 'connect')
    expect(result).toMatchObject({ status: 'failed', fault: 'refused', address: `127.0.0.1:${port}` })
    expect(result.message).toMatch(/refused the connection in .*: host up, nothing listens/)
  })

  test('a name that does not resolve is a dns fault', async () => {
    const resolve = () => Promise.reject(Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' }))
    const result = checked(await runKind(tcp, { host: 'gone.test', port: 1 }, 'Basic', { resolve }), 'connect')
    expect(result).toMatchObject({ status: 'failed', fault: 'dns' })
    expect(result.message).toContain('gone.test:1')
  })

  test('values at the boundaries of latency are ok', () => {
    const status = (ms: number) =>
      evaluateConnect({ connection: { address: 'a:1' }, ms }, { latency: { warn: 1_000, limit: 3_000 } }).status
    expect([1_000, 1_000.1, 3_000, 3_000.1].map(status)).toEqual(['ok', 'warning', 'warning', 'failed'])
  })
})

describe('tcp answer', () => {
  const answer = async (behave: Parameters<typeof peer>[0], settings: Partial<typeof defaults>, timeoutMs = 5_000) => {
    await using there = await peer(behave)
    return checked(await runKind(tcp, { host, port: there.port, ...settings }, 'Basic', { timeoutMs }), 'answer')
  }

  test('a banner of several lines is read to the expected line', async () => {
    const result = await answer(speaks('220-Welcome\r\n220-to the\r\n220 Ready\r\n'), { expect: '/^220 /m' })
    expect(result.status).toBe('ok')
    expect(result.message).toContain('sent "220-Welcome 220-to the 220 Ready" in')
  })

  test('an answer in pieces is joined', async () => {
    const inPieces = (socket: Parameters<Parameters<typeof peer>[0]>[0]) => {
      for (const [index, piece] of ['+PO', 'N', 'G\r\n'].entries()) setTimeout(() => socket.write(piece), index * 20)
    }
    expect((await answer(inPieces, { send: 'PING\r\n', expect: '+PONG' })).status).toBe('ok')
  })

  test('the configured text is sent, and any answer is ok without expect', async () => {
    const result = await answer(
      replies((requests) => `you said ${requests.length} bytes`),
      { send: 'PING\r\n' },
    )
    expect(result.status).toBe('ok')
    expect(result.message).toContain('"you said 6 bytes"')
  })

  test('a slow banner warns', async () => {
    const settings = { expect: 'hello', latency: { warn: 50, limit: farMs } }
    const result = await answer(speaks('hello', 120), settings)
    expect(result.status).toBe('warning')
    expect(result.message).toContain('(warn 50 ms, fail 2 min)')
  })

  test('a wrong banner is reported with the expected one', async () => {
    const result = await answer((socket) => void socket.end('421 Too many connections\r\n'), { expect: '/^220 /m' })
    expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
    expect(result.message).toMatch(/sent "421 Too many connections" and closed the connection, expected "\/\^220 \/m"$/)
  })

  test('an incomplete banner is a protocol fault', async () => {
    const result = await answer(cutAfter(5, '+PONG\r\n'), { send: 'PING\r\n', expect: '/^\\+PONG\\r\\n/' })
    expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
    expect(result.message).toContain('sent "+PONG" and closed the connection')
  })

  test('a reset is reported as a peer that hung up before it answered', async () => {
    const result = await answer(reset, { send: 'x', expect: 'y' })
    expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
    expect(result.message).toMatch(/closed the connection after .*, before it answered/)
  })

  test('an endless answer is read up to maxAnswer', async () => {
    await using there = await peer(endless('begin '))
    const settings = { host, port: there.port, send: 'x', expect: 'never', maxAnswer: 2048 }
    const result = checked(await runKind(tcp, settings), 'answer')
    expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
    expect(result.message).toContain('sent 2 KiB without "never"')
    expect(result.message.length).toBeLessThan(400)
  })

  test('bytes after maxAnswer do not count', async () => {
    const result = await answer(speaks(`${'x'.repeat(100)}needle`), { expect: 'needle', maxAnswer: 64 })
    expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
  })

  test('escape sequences of a peer never reach a terminal', async () => {
    const result = await answer((socket) => void socket.end(escapeSequences), { expect: 'x' })
    expect(result.message).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
    expect(result.message).toContain('sent "redgnp"')
  })

  test('the text that was sent is not shown, even by a peer that echoes it', async () => {
    const result = await answer(echo, { send: 'PASS hunter22\r\n', expect: 'OK' }, 300)
    expect(result.status).toBe('failed')
    expect(result.message).toContain('sent "[what was sent]" and nothing more')
    expect(JSON.stringify(result)).not.toContain('hunter22')
  })

  test('a pattern that backtracks is abandoned and named', async () => {
    const spent = measureWork()
    const result = await answer(speaks(`${'a'.repeat(40)}b`), { expect: '/^(?=a)(a+)+$/' })
    expect(spent()).toBeLessThan(3_000)
    expect(result).toMatchObject({ status: 'failed', fault: 'data' })
    expect(result.message).toMatch(new RegExp(givenUp))
  })
})

test.each([
  ['SSH-2.0-OpenSSH_9.2p1\r\n', 'next: expect: "SSH"'],
  ['220 mx.example.org ESMTP\r\n', 'next: expect: "220"'],
  [undefined, 'next: use the kind of its server, or send and expect'],
])('H55 Advanced says that only the port was tested, and what to add for the greeting %j', async (greeting, next) => {
  await using there = await peer((socket) => void (greeting && socket.write(greeting)))
  const open = async (mode: 'Standard' | 'Advanced') =>
    checked(await runKind(tcp, { host, port: there.port }, mode), 'open')
  expect(await open('Advanced')).toMatchObject({ status: 'ok', details: [next] })
  expect((await open('Advanced')).message).toContain('only the port is tested')
  expect((await open('Standard')).details ?? []).toEqual([])
})

describe('tcp addresses', () => {
  const resolve = () => Promise.resolve(['127.0.0.2', '127.0.0.1'])

  test('first probes one, all probes each separately, any until one accepts', async () => {
    await using there = await peer(blackHole)
    const levels = async (addresses: 'first' | 'all' | 'any' | undefined, mode: 'Basic' | 'Advanced' = 'Basic') => {
      const settings = { host: 'two.test', port: there.port, ...(addresses ? { addresses } : {}) }
      const results = await runKind(tcp, settings, mode, { resolve })
      return results.map((result) => `${result.address?.split(':')[0]} ${result.status}`).sort()
    }
    expect(await levels('first')).toEqual(['127.0.0.2 failed'])
    expect(await levels('all')).toEqual(['127.0.0.1 ok', '127.0.0.2 failed'])
    expect(await levels('any')).toEqual(['127.0.0.1 ok', '127.0.0.2 warning'])
    expect(await levels(undefined)).toEqual(['127.0.0.1 ok', '127.0.0.2 warning'])
    // The connection, and that it stays open.
    expect(await levels(undefined, 'Advanced')).toEqual(['127.0.0.1 ok', '127.0.0.1 ok', '127.0.0.2 failed'])
  })

  test('any fails when no address accepts', async () => {
    const port = await refusedPort()
    const results = await runKind(tcp, { host: 'two.test', port, addresses: 'any' }, 'Basic', { resolve })
    expect(results.map((result) => result.status)).toEqual(['warning', 'failed'])
  })

  test('of a name with very many addresses, the first sixteen are tested, and the result reports the rest', async () => {
    await using there = await peer(blackHole)
    const many = () => Promise.resolve(Array.from({ length: 40 }, () => '127.0.0.1'))
    const results = await runKind(tcp, { host: 'many.test', port: there.port, addresses: 'all' }, 'Basic', {
      resolve: many,
    })
    expect(results.filter((result) => result.check === 'connect')).toHaveLength(16)
    expect(checked(results, 'addresses')).toMatchObject({ status: 'warning' })
    expect(checked(results, 'addresses').message).toContain('40 addresses')
  })
})

describe('tcp xml', () => {
  const ask = async (behave: Parameters<typeof peer>[0], settings: Partial<typeof defaults>) => {
    await using there = await peer(behave)
    const results = await runKind(tcp, { host, port: there.port, maxAnswer: 1024 * 1024, ...settings }, 'Basic', {
      timeoutMs: 3_000,
    })
    await expect.poll(() => there.open()).toBe(0)
    return { results, input: there.input() }
  }

  test('lead contains the length of the text that is sent, in bytes', async () => {
    const { input } = await ask(replies('<a/>'), { lead: 'Frame {length} ', send: '<ä/>', xml: { 'count(/a)': '1' } })
    expect(Buffer.from(input, 'latin1').toString()).toBe('Frame 5 <ä/>')
  })

  test('H63 sendHex sends its bytes, which no text could', async () => {
    const sslRequest = '00000008 04D2 162f'
    const { results, input } = await ask(replies('N'), { sendHex: sslRequest, expect: '/^[SN]/' })
    expect(checked(results, 'answer')).toMatchObject({ status: 'ok' })
    expect(Buffer.from(input, 'latin1').toString('hex')).toBe('0000000804d2162f')
  })

  test('a document is complete when its root ends, in however many pieces it arrives', async () => {
    const rows = Array.from({ length: 3_000 }, (_, n) => `<Row n="${n}"/>`).join('')
    const whole = `Frame 1 <Reply ok="yes">${rows}</Reply>`
    const inPieces: Parameters<typeof peer>[0] = (socket) => {
      let at = 0
      const more = (): void => {
        socket.write(whole.slice(at, at + 500))
        at += 500
        if (at < whole.length) setImmediate(more)
      }
      socket.once('data', more)
    }
    const measure = [{ name: 'rows', path: '/Reply/Row', value: '.', count: { limit: 5_000 } }]
    const { results } = await ask(inPieces, {
      send: 'x',
      xml: { '/Reply/@ok': 'yes', 'count(/Reply/Row)': '3000' },
      measure,
    })
    expect(results.map((one) => [one.check, one.status])).toEqual([
      ['connect', 'ok'],
      ['answer', 'ok'],
      ['xml', 'ok'],
      ['measure', 'ok'],
    ])
  })

  test('a wrong value and invalid XML fail', async () => {
    const invalid = await ask(replies('<Reply ok="no"/>'), { send: 'x', xml: { '/Reply/@ok': 'yes' } })
    expect(checked(invalid.results, 'xml')).toMatchObject({ status: 'failed', fault: 'data' })
    const none = await ask(replies('<Reply><a></Reply>'), { send: 'x', xml: { '/Reply/@ok': 'yes' } })
    expect(checked(none.results, 'xml')).toMatchObject({ status: 'failed', fault: 'protocol' })
    const text = await ask(replies('no XML at all'), { send: 'x', xml: { '/Reply/@ok': 'yes' } })
    expect(checked(text.results, 'answer').message).toMatch(/and closed the connection, expected a whole XML document$/)
  })

  test('settings that exclude each other are reported before any connection', async () => {
    const problemOf = async (settings: Partial<typeof defaults>) =>
      checked((await ask(blackHole, settings)).results, 'settings').message
    expect(await problemOf({ lead: 'x' })).toBe('lead requires send')
    expect(await problemOf({ lead: 'x', sendHex: '00' })).toBe('lead requires send')
    expect(await problemOf({ send: 'x', sendHex: '00' })).toMatch(/^send and sendHex exclude each other/)
    expect(await problemOf({ measure: [{ name: 'm', path: '$.a', value: '.', count: {} }] })).toMatch(
      /the answer is read as XML/,
    )
  })
})

describe('tcp nonce', () => {
  const round = async (
    behave: Parameters<typeof peer>[0],
    settings: Partial<typeof defaults>,
    options: Parameters<typeof runKind>[3] = {},
  ) => {
    await using there = await peer(behave)
    const results = await runKind(tcp, { host, port: there.port, ...settings }, 'Basic', {
      timeoutMs: 3_000,
      ...options,
    })
    return { results, input: there.input() }
  }
  const asks = { send: 'ECHO {nonce}\n', expect: 'ECHO {nonce}' }

  test('an echo of this connection is ok, and each attempt has another nonce', async () => {
    const { results, input } = await round(echo, asks)
    expect(checked(results, 'answer').status).toBe('ok')
    expect(input).toMatch(/^ECHO [0-9a-f]{16}\n$/)
    const again = await round(replies('no'), asks, { retries: 2 })
    const sent = again.input.match(/[0-9a-f]{16}/g)
    expect(new Set(sent).size).toBe(3)
  })

  test.each([
    ['canned', () => 'ECHO 0123456789abcdef\n'],
    ['unfilled', () => 'ECHO {nonce}\n'],
  ])('an answer that is %s fails, and names the nonce that was expected', async (_, answer) => {
    const { results, input } = await round(replies(answer), asks)
    const result = checked(results, 'answer')
    expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
    expect(result.message).toMatch(/and closed the connection, expected "ECHO [0-9a-f]{16}"$/)
    expect(result.message).toContain(`expected "${input.trim()}"`)
  })

  test('an answer to the previous connection fails', async () => {
    let before = 'ECHO nothing\n'
    const late = replies((request) => {
      const answer = before
      before = request
      return answer
    })
    await using there = await peer(late)
    const settings = { host, port: there.port, ...asks }
    const levels = async () => checked(await runKind(tcp, settings), 'answer').status
    expect([await levels(), await levels()]).toEqual(['failed', 'failed'])
  })

  test('in a pattern and in XML the nonce is literal text', async () => {
    const pattern = await round(echo, { send: '{nonce}.\n', expect: '/^{nonce}\\.$/m' })
    expect(checked(pattern.results, 'answer').status).toBe('ok')
    const shouts = replies((request) => request.toUpperCase())
    expect(checked((await round(shouts, { send: 'a{nonce}', expect: '/^a{nonce}$/' })).results, 'answer').status).toBe(
      'failed',
    )
    const xml = { send: '<Ask Id="{nonce}"/>', lead: '{length} ', maxAnswer: 1024, xml: { '/Ask/@Id': '{nonce}' } }
    const { results, input } = await round(echo, xml)
    expect(checked(results, 'xml').status).toBe('ok')
    expect(input).toMatch(/^28 <Ask Id="[0-9a-f]{16}"\/>$/)
    const canned = await round(replies('<Ask Id="0123456789abcdef"/>'), xml)
    expect(checked(canned.results, 'xml').message).toMatch(/\/Ask\/@Id is "0123456789abcdef", expected "[0-9a-f]{16}"$/)
  })

  test('text that only resembles the placeholder is sent unchanged', async () => {
    const { input } = await round(replies('x'), { send: '\x24{nonce} {Nonce} { nonce } {length}' })
    expect(input).toBe('\x24{nonce} {Nonce} { nonce } {length}')
  })

  test('a nonce that is expected and not sent is reported before any connection', async () => {
    const { results, input } = await round(echo, { send: 'x', expect: '{nonce}' })
    expect(checked(results, 'settings').message).toBe('expects {nonce}, which send does not contain: add it there')
    expect(input).toBe('')
  })
})
