import { connect } from 'node:net'
import { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import { converse } from '../../../src/core/checks/assert/talk.ts'
import tcp from '../../../src/core/checks/kinds/tcp.ts'
import tls from '../../../src/core/checks/kinds/tls.ts'
import { checked, problemsOf, runKind } from '../../support/engine/run-kind.ts'
import { type Behaviour, blackHole, peer } from '../../support/faults/faults.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { suiteWith } from '../../support/suite/peer.ts'

const host = '127.0.0.1'
const password = 'correct horse'

/** A server that greets, and answers each line that one of the answers begins with. */
const answering =
  (greeting: string, answers: Readonly<Record<string, string>> = {}): Behaviour =>
  (socket) => {
    socket.write(greeting)
    socket.on('data', (data) => {
      for (const [begin, answer] of Object.entries(answers)) if (String(data).startsWith(begin)) socket.write(answer)
    })
  }

function settingsOf(kind: typeof tcp | typeof tls, raw: object) {
  const { values, problems } = readSettings(
    kind.settings,
    { host, port: 1, ...raw },
    { env: { WORD: password }, folder: '/' },
  )
  const mistakes = problems.map(({ path, message }) => `${path.join('.')} ${message}`)
  return { values, mistake: mistakes[0] ?? kind.validate?.(values as never) }
}

async function talk(behave: Behaviour, raw: object, options: Parameters<typeof runKind>[3] = { timeoutMs: 2_000 }) {
  await using there = await peer(behave)
  const { values, mistake } = settingsOf(tcp, { ...raw, port: there.port })
  expect(mistake).toBe(undefined)
  return { results: await runKind(tcp, values as never, 'Standard', options), input: there.input() }
}

const values = { password: { env: 'WORD' } }
const signIn = `PASS \${password}\r\n`

describe('dialogues over TCP (simulated peers)', () => {
  test('H81 a captured value goes into a later step, and lines before the expected one are skipped', async () => {
    const behave = answering('hello\r\nPING :abc\r\n', { 'PONG abc': 'noise\r\n:irc 001 you\r\n' })
    const dialogue = [
      { expect: '/^PING :(\\S+)/', capture: ['token'] },
      { send: `PONG \${token}\r\n`, expect: '/^:\\S+ 001/' },
    ]
    const { results, input } = await talk(behave, { dialogue })
    expect(problemsOf(results)).toEqual([])
    expect(input).toBe('PONG abc\r\n')
    expect(checked(results, 'dialogue').message).toMatch(/answered as expected in 2 steps in/)
  })

  test('H81 lines that arrive together count one step after the other', async () => {
    const { results } = await talk(answering('one\r\ntwo\r\n'), {
      dialogue: [{ expect: 'one' }, { expect: '/^two$/' }],
    })
    expect(problemsOf(results)).toEqual([])
  })

  test('H81 the first failure names the step, and those after it as not reached', async () => {
    const dialogue = [{ expect: 'hello' }, { send: 'x\r\n', expect: 'world' }, { expect: 'more' }, { expect: 'end' }]
    const { results } = await talk(answering('hello\r\n', { x: 'nonsense\r\n' }), { dialogue })
    const [failed, ...others] = results.filter(({ status }) => status !== 'ok')
    expect(others).toEqual([])
    expect(failed).toMatchObject({ check: 'dialogue', fault: 'timeout', details: ['not reached: step 3 to 4'] })
    expect(failed?.message).toMatch(/sent "nonsense" and nothing more, expected "world" \(step 2 of 4\)$/)
  })

  test('H81 a secret goes to loopback without TLS, and no message shows it or a captured value', async () => {
    const behave = answering('hello id-4711\r\n', { PASS: `wrong ${password} id-4711\r\n` })
    const dialogue = [
      { expect: '/hello (\\S+)/', capture: 'id' },
      { send: signIn, expect: 'welcome' },
    ]
    const { results, input } = await talk(behave, { values, dialogue })
    expect(input).toBe(`PASS ${password}\r\n`)
    expect(checked(results, 'dialogue').message).toContain('sent "wrong [secret] [secret]"')
    expect(JSON.stringify(results)).not.toMatch(/correct horse|4711/)
  })

  test('H81 a secret does not go to another machine without TLS', async () => {
    await using there = await peer(blackHole)
    const socket = connect(there.port, host)
    const { values: settings } = settingsOf(tcp, { values, dialogue: [{ send: signIn }] })
    const connection = {
      address: '192.0.2.1:1',
      ip: '192.0.2.1',
      socket,
      nonce: () => '',
      usable: true,
      close: () => {},
    }
    const spoken = converse(connection, settings as never, { msLeft: () => 2_000 } as never)
    await expect(spoken).rejects.toThrow(
      'secrets are not sent to 192.0.2.1:1 without TLS: use tls: true, or a step with',
    )
    socket.destroy()
    expect(there.input()).toBe('')
  })

  test.each([
    ['longer than 256 bytes', 'x'.repeat(257), /sent a value for id that has 257 bytes, more than 256/],
    ['with a NUL', 'a\0b', /sent a value for id that contains a line break or NUL/],
  ])('H81 a captured value %s is refused, and is not sent', async (_, value, message) => {
    const dialogue = [{ expect: '/^is (.*)/', capture: 'id' }, { send: `\${id}\r\n` }]
    const { results, input } = await talk(answering(`is ${value}\r\n`), { dialogue })
    expect(checked(results, 'dialogue')).toMatchObject({ status: 'failed', message: expect.stringMatching(message) })
    expect(input).toBe('')
  })

  test.each([
    [
      'zookeeper',
      'This ZooKeeper instance is not currently serving requests\n',
      /it does not serve zookeeper \(step 1 of 1\)$/,
    ],
    ['kafka', Buffer.from('0000000600000001002300', 'hex').toString('latin1'), /it does not serve kafka/],
    ['amqp', 'AMQP\0\0\x09\x01', /answered "AMQP/],
    ['imap', '* BYE overloaded\r\n', /answered "\* BYE overloaded": it does not serve imap \(step 1 of 3\)$/],
  ])('H81 protocol: %s (simulated): a server that answers and does not serve', async (protocol, answer, message) => {
    const behave: Behaviour = (socket) => {
      if (protocol === 'imap') socket.write(answer)
      else socket.once('data', () => socket.write(answer, 'latin1'))
    }
    const { results } = await talk(behave, { protocol })
    expect(checked(results, 'dialogue')).toMatchObject({ fault: 'protocol', message: expect.stringMatching(message) })
  })

  test.each([
    ['zookeeper', 'Zookeeper version: 3.8.0\nLatency min/avg/max: 0/0/0\nMode: standalone\n'],
    ['kafka', Buffer.from('000000060000000100000000', 'hex').toString('latin1')],
    ['amqp', Buffer.from('01000000000200000a000a', 'hex').toString('latin1')],
  ])('H81 protocol: %s (simulated): a server that serves', async (protocol, answer) => {
    const behave: Behaviour = (socket) => void socket.once('data', () => socket.write(answer, 'latin1'))
    expect(problemsOf((await talk(behave, { protocol })).results)).toEqual([])
  })
})

describe('settings of a dialogue', () => {
  test.each([
    [{ dialogue: [{ expect: 'a' }], expect: 'b' }, 'dialogue takes the place of expect: remove one of them'],
    [{ dialogue: [{ expect: 'a' }], protocol: 'imap' }, 'dialogue and protocol exclude each other: remove one of them'],
    [{ dialogue: [] }, 'dialogue needs 1 to 32 steps'],
    [{ values }, 'values needs dialogue'],
    [{ dialogue: [{}] }, 'dialogue: step 1 has neither send, expect nor starttls'],
    [{ dialogue: [{ send: `\${x}` }] }, `dialogue: step 1 sends \${x}, which is neither in values nor captured before`],
    [
      { dialogue: [{ expect: '/(/' }] },
      'dialogue: step 1 expects /(/ is not a regular expression (Unterminated group)',
    ],
    [{ dialogue: [{ expect: 'a\nb' }] }, 'dialogue: step 1 expects several lines: write a step for each'],
    [
      { dialogue: [{ expect: '/a/', capture: 'x' }] },
      'dialogue: step 1 captures 1, but expect has 0 groups: write it like /^PING :(\\S+)/',
    ],
    [{ dialogue: [{ starttls: true }, { starttls: true }] }, 'dialogue: step 2 begins TLS, which has begun before'],
    [{ tls: true, dialogue: [{ starttls: true }] }, 'dialogue: step 1 begins TLS, which has begun before'],
    [{ caFile: '/a.pem' }, 'caFile needs tls: true'],
    [
      { values: { password: 'word' }, dialogue: [{ send: 'x' }] },
      'values.password must refer to a secret, not contain it: write {env: NAME}, {file: /path} or {keychain: name}',
    ],
  ])('H81 %j is a mistake', (raw, message) => {
    expect(settingsOf(tcp, raw).mistake).toBe(message)
  })

  test('H82 starttls without the port of its protocol is a mistake', () => {
    expect(settingsOf(tls, { port: 443, starttls: 'smtp' }).mistake).toBe('starttls needs the port of its protocol')
  })
})

suiteWith(opensslMissing(), 'dialogues over TLS (simulated peers)', () => {
  let made: Certificates
  beforeAll(() => {
    made = makeCertificates()
  })
  afterAll(() => made.remove())

  /** A server that greets, waits for STARTTLS, and answers `after` to what it gets within TLS. */
  const upgrading =
    (certificate: 'good' | 'otherHost', inTls: string[]): Behaviour =>
    (socket) => {
      socket.write('220 hello\r\n')
      socket.once('data', () => {
        socket.write('220 go ahead\r\n')
        const secure = new TLSSocket(socket, { isServer: true, ...made[certificate] })
        secure.on('error', () => {})
        secure.on('data', (data) => {
          inTls.push(String(data))
          secure.write('250 welcome\r\n')
        })
      })
    }
  const dialogue = [
    { expect: '220' },
    { send: 'STARTTLS\r\n', expect: '220', starttls: true },
    { send: signIn, expect: '250' },
  ]

  test('H81 a step begins TLS, and the secret goes within it; its certificate is checked', async () => {
    const inTls: string[] = []
    const { results } = await talk(upgrading('good', inTls), { dialogue, values, caFile: made.caFile }, {})
    expect(problemsOf(results)).toEqual([])
    expect(inTls).toEqual([`PASS ${password}\r\n`])
    expect(checked(results, 'certificate').message).toContain('certificate "svc.test" expires on')
  })

  test('H81 a server that is not trusted gets no secret', async () => {
    const inTls: string[] = []
    const { results } = await talk(upgrading('otherHost', inTls), { dialogue, values, caFile: made.caFile }, {})
    expect(results.find(({ status }) => status === 'failed')).toMatchObject({ check: 'dialogue', fault: 'tls' })
    expect(inTls).toEqual([])
  })

  test('H81 tls: true begins with TLS, and demands trust', async () => {
    await using server = await peer(blackHole, { tls: made.good })
    const { values: settings } = settingsOf(tcp, { port: server.port, tls: true })
    const [failed] = await runKind(tcp, settings as never, 'Standard')
    expect(failed).toMatchObject({ check: 'connect', status: 'failed', fault: 'tls' })
  })

  test('H82 a server that refuses STARTTLS fails the handshake with its answer', async () => {
    await using server = await peer(answering('* OK hello\r\n', { 'a1 STARTTLS': 'a1 BAD not here\r\n' }))
    const [failed] = await runKind(
      tls,
      settingsOf(tls, { port: server.port, starttls: 'imap' }).values as never,
      'Standard',
    )
    expect(failed).toMatchObject({ check: 'handshake', status: 'failed', fault: 'protocol' })
    expect(failed?.message).toMatch(/answered "a1 BAD not here": it did not begin TLS as imap does$/)
  })
})
