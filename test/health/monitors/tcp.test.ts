import { describe, expect, test } from 'vitest'
import tcp from '../../../src/core/health/monitors/tcp.ts'
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
  settled,
  speaks,
} from '../../support/faults.ts'
import { processorMs } from '../../support/processor-time.ts'
import { checked, runKind, withDefaults } from '../../support/run-kind.ts'

const host = '127.0.0.1'
const defaults = withDefaults(tcp.settings, { host, port: 1 })

describe('tcp connect', () => {
  test('a listening port is ok and hears nothing', async () => {
    await using there = await peer(blackHole)
    const findings = await runKind(tcp, { host, port: there.port })
    expect(findings.map((finding) => [finding.check, finding.level])).toEqual([['connect', 'ok']])
    expect(checked(findings, 'connect').address).toBe(`127.0.0.1:${there.port}`)
    expect(there.heard()).toBe('')
  })

  test('a refused port says that the host is up and nothing listens', async () => {
    const port = await refusedPort()
    const finding = checked(await runKind(tcp, { host, port }), 'connect')
    expect(finding).toMatchObject({ level: 'fail', fault: 'refused', address: `127.0.0.1:${port}` })
    expect(finding.message).toMatch(/refused the connection in .*: host up, nothing listens/)
  })

  test('a name that does not resolve is a fault of dns', async () => {
    const resolve = () => Promise.reject(Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' }))
    const finding = checked(await runKind(tcp, { host: 'gone.test', port: 1 }, 'Basic', { resolve }), 'connect')
    expect(finding).toMatchObject({ level: 'fail', fault: 'dns' })
    expect(finding.message).toContain('gone.test:1')
  })

  test('the boundaries of latency belong to the better side', () => {
    const level = (ms: number) => {
      const judged = tcp.judge({ see: 'connect', address: 'a:1', ms }, defaults)
      return 'level' in judged ? judged.level : 'several'
    }
    expect([1_000, 1_000.1, 3_000, 3_000.1].map(level)).toEqual(['ok', 'warn', 'warn', 'fail'])
  })
})

describe('tcp answer', () => {
  const answer = async (behave: Parameters<typeof peer>[0], settings: Partial<typeof defaults>, timeoutMs = 5_000) => {
    await using there = await peer(behave)
    return checked(await runKind(tcp, { host, port: there.port, ...settings }, 'Basic', { timeoutMs }), 'answer')
  }

  test('a banner of several lines is read to the line that is expected', async () => {
    const finding = await answer(speaks('220-Welcome\r\n220-to the\r\n220 Ready\r\n'), { expect: '/^220 /m' })
    expect(finding.level).toBe('ok')
    expect(finding.message).toContain('said "220-Welcome 220-to the 220 Ready" in')
  })

  test('an answer in pieces is put together', async () => {
    const inPieces = (socket: Parameters<Parameters<typeof peer>[0]>[0]) => {
      for (const [index, piece] of ['+PO', 'N', 'G\r\n'].entries()) setTimeout(() => socket.write(piece), index * 20)
    }
    expect((await answer(inPieces, { send: 'PING\r\n', expect: '+PONG' })).level).toBe('ok')
  })

  test('what is sent arrives, and any answer will do without expect', async () => {
    const finding = await answer(
      replies((asked) => `you said ${asked.length} bytes`),
      { send: 'PING\r\n' },
    )
    expect(finding.level).toBe('ok')
    expect(finding.message).toContain('"you said 6 bytes"')
  })

  test('a slow banner warns', async () => {
    const settings = { expect: 'hello', latency: { warn: 50, limit: 2_000 } }
    const finding = await answer(speaks('hello', 120), settings)
    expect(finding.level).toBe('warn')
    expect(finding.message).toContain('(warns above 50 ms)')
  })

  test('a wrong banner says what was said and what was expected', async () => {
    const finding = await answer((socket) => void socket.end('421 Too many connections\r\n'), { expect: '/^220 /m' })
    expect(finding).toMatchObject({ level: 'fail', fault: 'protocol' })
    expect(finding.message).toMatch(/said "421 Too many connections" and hung up, expected "\/\^220 \/m"$/)
  })

  test('a banner cut short is a fault of protocol', async () => {
    const finding = await answer(cutAfter(5, '+PONG\r\n'), { send: 'PING\r\n', expect: '/^\\+PONG\\r\\n/' })
    expect(finding).toMatchObject({ level: 'fail', fault: 'protocol' })
    expect(finding.message).toContain('said "+PONG" and hung up')
  })

  test('a reset says that the peer hung up before it answered', async () => {
    const finding = await answer(reset, { send: 'x', expect: 'y' })
    expect(finding).toMatchObject({ level: 'fail', fault: 'protocol' })
    expect(finding.message).toMatch(/closed the connection after .*, before it answered/)
  })

  test('a black hole ends at its deadline and leaves nothing open', async () => {
    expect(await settled('')).toBe('')
    await using there = await peer(blackHole)
    const start = performance.now()
    const findings = await runKind(tcp, { host, port: there.port, expect: 'x' }, 'Basic', { timeoutMs: 300 })
    expect(performance.now() - start).toBeLessThan(4_500)
    expect(checked(findings, 'connect').level).toBe('ok')
    expect(checked(findings, 'answer')).toMatchObject({ level: 'fail', fault: 'timeout' })
    expect(checked(findings, 'answer').message).toMatch(/accepted the connection and then said nothing for \d+ ms/)
    expect(await settled('TCPServerWrap 1')).toBe('TCPServerWrap 1')
  })

  test('an endless answer is read up to maxAnswer', async () => {
    await using there = await peer(endless('begin '))
    const settings = { host, port: there.port, send: 'x', expect: 'never', maxAnswer: 2048 }
    const finding = checked(await runKind(tcp, settings), 'answer')
    expect(finding).toMatchObject({ level: 'fail', fault: 'protocol' })
    expect(finding.message).toContain('said 2 KiB without "never"')
    expect(finding.message.length).toBeLessThan(400)
  })

  test('what comes after maxAnswer does not count', async () => {
    const finding = await answer(speaks(`${'x'.repeat(100)}needle`), { expect: 'needle', maxAnswer: 64 })
    expect(finding).toMatchObject({ level: 'fail', fault: 'protocol' })
  })

  test('escape sequences of a peer reach no terminal', async () => {
    const finding = await answer((socket) => void socket.end(escapeSequences), { expect: 'x' })
    expect(finding.message).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
    expect(finding.message).toContain('said "red gnp"')
  })

  test('what was sent is not shown, even by a peer that echoes it', async () => {
    const finding = await answer(echo, { send: 'PASS hunter22\r\n', expect: 'OK' }, 300)
    expect(finding.level).toBe('fail')
    expect(finding.message).toContain('said "[what was sent]" and no more')
    expect(JSON.stringify(finding)).not.toContain('hunter22')
  })

  test('a pattern that backtracks is given up and named', async () => {
    const start = processorMs()
    const finding = await answer(speaks(`${'a'.repeat(40)}b`), { expect: '/^(a+)+$/' })
    expect(processorMs() - start).toBeLessThan(3_000)
    expect(finding).toMatchObject({ level: 'fail', fault: 'data' })
    expect(finding.message).toContain('did not end within 250 ms')
  })
})

describe('tcp addresses', () => {
  const resolve = () => Promise.resolve(['127.0.0.2', '127.0.0.1'])

  test('first probes one, all each by itself, any until one accepts', async () => {
    await using there = await peer(blackHole)
    const levels = async (addresses: 'first' | 'all' | 'any' | undefined, mode: 'Basic' | 'Advanced' = 'Basic') => {
      const settings = { host: 'two.test', port: there.port, ...(addresses ? { addresses } : {}) }
      const findings = await runKind(tcp, settings, mode, { resolve })
      return findings.map((finding) => `${finding.address?.split(':')[0]} ${finding.level}`).sort()
    }
    expect(await levels('first')).toEqual(['127.0.0.2 fail'])
    expect(await levels('all')).toEqual(['127.0.0.1 ok', '127.0.0.2 fail'])
    expect(await levels('any')).toEqual(['127.0.0.1 ok', '127.0.0.2 warn'])
    expect(await levels(undefined)).toEqual(['127.0.0.2 fail'])
    expect(await levels(undefined, 'Advanced')).toEqual(['127.0.0.1 ok', '127.0.0.2 fail'])
  })

  test('any fails when no address accepts', async () => {
    const port = await refusedPort()
    const findings = await runKind(tcp, { host: 'two.test', port, addresses: 'any' }, 'Basic', { resolve })
    expect(findings.map((finding) => finding.level)).toEqual(['warn', 'fail'])
  })

  test('a name with very many addresses has the first sixteen probed, and says so', async () => {
    await using there = await peer(blackHole)
    const many = () => Promise.resolve(Array.from({ length: 40 }, () => '127.0.0.1'))
    const findings = await runKind(tcp, { host: 'many.test', port: there.port, addresses: 'all' }, 'Basic', {
      resolve: many,
    })
    expect(findings.filter((finding) => finding.check === 'connect')).toHaveLength(16)
    expect(checked(findings, 'addresses')).toMatchObject({ level: 'warn' })
    expect(checked(findings, 'addresses').message).toContain('40 addresses')
  })
})

describe('tcp xml', () => {
  const ask = async (behave: Parameters<typeof peer>[0], settings: Partial<typeof defaults>) => {
    await using there = await peer(behave)
    const findings = await runKind(tcp, { host, port: there.port, maxAnswer: 1024 * 1024, ...settings }, 'Basic', {
      timeoutMs: 3_000,
    })
    await expect.poll(() => there.open()).toBe(0)
    return { findings, heard: there.heard() }
  }

  test('what leads says the length of what is sent, in bytes', async () => {
    const { heard } = await ask(replies('<a/>'), { lead: 'Frame {length} ', send: '<ä/>', xml: { 'count(/a)': '1' } })
    expect(Buffer.from(heard, 'latin1').toString()).toBe('Frame 5 <ä/>')
  })

  test('a document is whole when its root ends, in however many pieces it comes', async () => {
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
    const { findings } = await ask(inPieces, {
      send: 'x',
      xml: { '/Reply/@ok': 'yes', 'count(/Reply/Row)': '3000' },
      measure,
    })
    expect(findings.map((one) => [one.check, one.level])).toEqual([
      ['connect', 'ok'],
      ['answer', 'ok'],
      ['xml', 'ok'],
      ['measure', 'ok'],
    ])
  })

  test('many patterns that backtrack are given up together', async () => {
    const many = Array.from({ length: 12 }, (_, index) => index)
    const text = `${'a'.repeat(60)}!`
    const reply = `<a>${many.map((n) => `<k${n}>${text}</k${n}>`).join('')}</a>`
    const xml = Object.fromEntries(many.map((n) => [`/a/k${n}`, `/^(\\w+)+${n}$/`]))
    const start = processorMs()
    const { findings } = await ask(replies(reply), { send: 'x', xml })
    // Once 250 ms; each by itself, they take 3 s.
    expect(processorMs() - start).toBeLessThan(1_500)
    expect(checked(findings, 'xml')).toMatchObject({ level: 'fail', fault: 'data' })
    expect(checked(findings, 'xml').message).toMatch(/did not end within 250 ms.* \(and 11 others\)$/)
  })

  test('a wrong value and what is no XML fail', async () => {
    const wrong = await ask(replies('<Reply ok="no"/>'), { send: 'x', xml: { '/Reply/@ok': 'yes' } })
    expect(checked(wrong.findings, 'xml')).toMatchObject({ level: 'fail', fault: 'data' })
    const none = await ask(replies('<Reply><a></Reply>'), { send: 'x', xml: { '/Reply/@ok': 'yes' } })
    expect(checked(none.findings, 'xml')).toMatchObject({ level: 'fail', fault: 'protocol' })
    const text = await ask(replies('no XML at all'), { send: 'x', xml: { '/Reply/@ok': 'yes' } })
    expect(checked(text.findings, 'answer').message).toMatch(/and hung up, expected a whole XML document$/)
  })

  test('settings that cannot be used together are told before anything is asked', async () => {
    const told = async (settings: Partial<typeof defaults>) =>
      checked((await ask(blackHole, settings)).findings, 'settings').message
    expect(await told({ lead: 'x' })).toBe('lead needs send')
    expect(await told({ xml: { a: 'x' } })).toMatch(/is not a path such as/)
    expect(await told({ measure: [{ name: 'm', path: '$.a', value: '.', count: {} }] })).toMatch(
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
    const findings = await runKind(tcp, { host, port: there.port, ...settings }, 'Basic', {
      timeoutMs: 3_000,
      ...options,
    })
    return { findings, heard: there.heard() }
  }
  const asks = { send: 'ECHO {nonce}\n', expect: 'ECHO {nonce}' }

  test('an echo of this connection is ok, and every attempt has another nonce', async () => {
    const { findings, heard } = await round(echo, asks)
    expect(checked(findings, 'answer').level).toBe('ok')
    expect(heard).toMatch(/^ECHO [0-9a-f]{16}\n$/)
    const again = await round(replies('no'), asks, { retries: 2 })
    const sent = again.heard.match(/[0-9a-f]{16}/g)
    expect(new Set(sent).size).toBe(3)
  })

  test.each([
    ['canned', () => 'ECHO 0123456789abcdef\n'],
    ['unfilled', () => 'ECHO {nonce}\n'],
  ])('an answer that is %s fails, and names the nonce that was expected', async (_, answer) => {
    const { findings, heard } = await round(replies(answer), asks)
    const finding = checked(findings, 'answer')
    expect(finding).toMatchObject({ level: 'fail', fault: 'protocol' })
    expect(finding.message).toMatch(/and hung up, expected "ECHO [0-9a-f]{16}"$/)
    expect(finding.message).toContain(`expected "${heard.trim()}"`)
  })

  test('an answer that belongs to the connection before fails', async () => {
    let before = 'ECHO nothing\n'
    const late = replies((asked) => {
      const answer = before
      before = asked
      return answer
    })
    await using there = await peer(late)
    const settings = { host, port: there.port, ...asks }
    const levels = async () => checked(await runKind(tcp, settings), 'answer').level
    expect([await levels(), await levels()]).toEqual(['fail', 'fail'])
  })

  test('in a pattern and in XML the nonce is the one that was sent, and nothing that a pattern could mean', async () => {
    const pattern = await round(echo, { send: '{nonce}.\n', expect: '/^{nonce}\\.$/m' })
    expect(checked(pattern.findings, 'answer').level).toBe('ok')
    const shouts = replies((asked) => asked.toUpperCase())
    expect(checked((await round(shouts, { send: 'a{nonce}', expect: '/^a{nonce}$/' })).findings, 'answer').level).toBe(
      'fail',
    )
    const xml = { send: '<Ask Id="{nonce}"/>', lead: '{length} ', maxAnswer: 1024, xml: { '/Ask/@Id': '{nonce}' } }
    const { findings, heard } = await round(echo, xml)
    expect(checked(findings, 'xml').level).toBe('ok')
    expect(heard).toMatch(/^28 <Ask Id="[0-9a-f]{16}"\/>$/)
    const canned = await round(replies('<Ask Id="0123456789abcdef"/>'), xml)
    expect(checked(canned.findings, 'xml').message).toMatch(
      /\/Ask\/@Id is "0123456789abcdef", expected "[0-9a-f]{16}"$/,
    )
  })

  test('what only looks like it is sent as it is', async () => {
    const { heard } = await round(replies('x'), { send: '\x24{nonce} {Nonce} { nonce } {length}' })
    expect(heard).toBe('\x24{nonce} {Nonce} { nonce } {length}')
  })

  test('a nonce that is expected and not sent is told before anything is asked', async () => {
    const { findings, heard } = await round(echo, { send: 'x', expect: '{nonce}' })
    expect(checked(findings, 'settings').message).toBe('expects {nonce}, which send does not say: put it there too')
    expect(heard).toBe('')
  })
})
