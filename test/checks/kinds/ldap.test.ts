import { Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ProbeError } from '../../../src/core/base/probe-error.ts'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import { evaluateConnect, lastChange } from '../../../src/core/checks/kinds/ldap/checks.ts'
import { connectSettings, refuseReadable } from '../../../src/core/checks/kinds/ldap/connection.ts'
import ldap from '../../../src/core/checks/kinds/ldap/index.ts'
import { LdapFrames } from '../../../src/core/checks/kinds/ldap/message.ts'
import { csnsOf, evaluateComparison, newestChange } from '../../../src/core/checks/kinds/ldap/provider.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { expectResult, finds, findsOnly } from '../../support/engine/finds.ts'
import {
  checked,
  evaluated,
  type RunKindOptions,
  runKind,
  secret,
  withDefaults,
} from '../../support/engine/run-kind.ts'
import {
  type Behaviour,
  blackHole,
  endless,
  escapeSequences,
  type PeerOptions,
  peer,
  replies,
  reset,
} from '../../support/faults/faults.ts'
import { probe } from '../../support/servers/slapd.ts'
import { measureWork } from '../../support/suite/processor-time.ts'

type Settings = Parameters<typeof runKind<typeof ldap.settings>>[1]
const account = { username: probe.user, password: secret(probe.password) }

/** BER by hand: what servers, and worse ones, say. */
const ber = (tag: number, ...content: readonly (Buffer | string)[]): Buffer => {
  const body = Buffer.concat(content.map((one) => Buffer.from(one)))
  const head = body.length < 128 ? [tag, body.length] : [tag, 0x82, body.length >> 8, body.length & 255]
  return Buffer.concat([Buffer.from(head), body])
}
const int = (value: number, tag = 2): Buffer => ber(tag, Buffer.from([value]))
const text = (value: string): Buffer => ber(4, value)
const message = (id: number, operation: Buffer): Buffer => ber(0x30, int(id), operation)
const result = (tag: number, code: number, reply = ''): Buffer => ber(tag, int(code, 10), text(''), text(reply))
/** The answer to a sign-in, with a control of the password policy. */
const withPolicy = (value: Buffer): Buffer =>
  ber(0x30, int(1), result(0x61, 0), ber(0xa0, ber(0x30, text('1.3.6.1.4.1.42.2.27.8.5.1'), ber(4, value))))
const [bindResponse, done, extended] = [0x61, 0x65, 0x78]

/** Whose a request is, and what it asks for. */
const request = (request: Buffer): { readonly id: number; readonly operation: number } => {
  const length = request.readUInt8(1)
  const at = length < 128 ? 2 : 2 + (length & 127)
  return { id: request.readUInt8(at + 2), operation: request.readUInt8(at + 3) }
}

/** Whether a request asks, before the sign-in, which controls the server offers. */
const asksOffers = (question: Buffer): boolean =>
  question.includes('supportedControl') && !question.includes('namingContexts')

/** An LDAP server with a configured answer to each kind of request; the id is that of the request. */
const answers = (bind: (id: number) => Buffer, search: (id: number) => Buffer = () => Buffer.alloc(0)): Behaviour => {
  return (socket) => {
    socket.on('data', (question) => {
      const { id, operation } = request(question)
      if (operation === 0x60) socket.write(bind(id))
      else if (asksOffers(question)) socket.write(message(id, result(done, 0)))
      else if (operation === 0x63) socket.write(search(id))
    })
  }
}
const bound = (id: number): Buffer => message(id, result(bindResponse, 0))
/** The root entry with the controls that the server offers. */
const rootWith = (id: number, ...oids: readonly string[]): Buffer =>
  Buffer.concat([
    message(
      id,
      ber(0x64, text(''), ber(0x30, ...oids.map((oid) => ber(0x30, text('supportedControl'), ber(0x31, text(oid)))))),
    ),
    message(id, result(done, 0)),
  ])
const refuses = (code: number, reply = '') => answers((id) => message(id, result(bindResponse, code, reply)))

async function look(behave: Behaviour, settings: Settings = {}, mode: ExecutionMode = 'Basic', options: Options = {}) {
  await using there = await peer(behave, options.peer)
  const url = `${options.peer?.tls ? 'ldaps' : 'ldap'}://127.0.0.1:${there.port}`
  const results = await runKind(ldap, { url, ...settings }, mode, options)
  await expect.poll(there.open).toBe(0)
  return { results, input: there.input(), connections: there.connections(), port: there.port }
}
type Options = RunKindOptions & { readonly peer?: PeerOptions }
const levels = (results: readonly { readonly check: string; readonly status: string }[]) =>
  results.map(({ check, status }) => `${check} ${status}`)

describe('ldap settings', () => {
  const context = { env: { P: 'x' }, folder: '.' }
  const invalid = (settings: object) => {
    const { values, problems } = readSettings(ldap.settings, settings, context)
    expect(problems).toEqual([])
    return ldap.validate?.(values as never)
  }
  const url = 'ldap://dc1.example.com'
  const password = { env: 'P' }

  test('only ldap and ldaps URLs are accepted, and secrets are references', () => {
    const settings = { url: 'http://dc1', username: 'cn=a', password: 'hunter2', refusesWrongPassword: {} }
    const { problems } = readSettings(ldap.settings, settings, context)
    expect(problems.map(({ path }) => path.join('.')).sort()).toEqual([
      'password',
      'refusesWrongPassword.username',
      'url',
    ])
    expect(JSON.stringify(problems)).not.toContain('hunter2')
  })

  test('the target is the host and the port of the URL, 389 and 636 by default', () => {
    const target = (one: string) => ldap.target?.(withDefaults(ldap.settings, { url: one }))
    expect(target('ldap://dc1.example.com')).toEqual({ host: 'dc1.example.com', port: 389 })
    expect(target('ldaps://dc1.example.com')).toEqual({ host: 'dc1.example.com', port: 636 })
    expect(target('ldaps://[::1]:1636')).toEqual({ host: '::1', port: 1636 })
  })

  test.each([
    [{ url: 'ldap://cn=a@dc1' }, 'url contains a user'],
    [{ url: 'ldap://dc1/dc=example' }, 'put the entry in base'],
    [{ url: 'ldaps://dc1', startTls: true }, 'ldaps:// begins with TLS'],
    [{ url, username: 'cn=a' }, 'username needs a password'],
    [{ url, password }, 'password needs a user'],
    [
      { url, username: 'cn=a,dc=b', password, refusesWrongPassword: { username: 'CN = A, DC=b' } },
      'which wrong passwords would lock',
    ],
  ])('%j contradicts itself', (settings, why) => {
    expect(invalid(settings)).toContain(why)
  })

  test('a dedicated account beside another one is not a contradiction', () => {
    expect(invalid({ url, username: 'cn=a', password, refusesWrongPassword: { username: 'cn=b' } })).toBeUndefined()
  })
})

test.each([
  ['without a root entry', (id: number) => message(id, result(done, 50)), false],
  ['that lists no control', (id: number) => rootWith(id), false],
  ['that lists another control', (id: number) => rootWith(id, '1.2.840.113556.1.4.319'), false],
  ['that lists it', (id: number) => rootWith(id, '1.3.6.1.4.1.42.2.27.8.5.1'), true],
] as const)('H56 a server %s gets the control of the password policy: %3$s', async (_, root, isSent) => {
  let binds = 0
  let sent = false
  const server: Behaviour = (socket) => {
    socket.on('data', (question) => {
      const { id, operation } = request(question)
      if (asksOffers(question)) socket.write(root(id))
      else if (operation === 0x60) {
        binds += 1
        sent = question.includes('1.3.6.1.4.1.42.2.27.8.5.1')
        socket.write(bound(id))
      } else if (operation === 0x63) socket.write(message(id, result(done, 0)))
    })
  }
  const { results } = await look(server, account, 'Standard')
  expect(results.find(({ check }) => check === 'bind')).toMatchObject({ status: 'ok' })
  expect({ binds, sent }).toEqual({ binds: 1, sent: isSent })
})

describe('LDAP messages', () => {
  const sound = [
    message(1, result(bindResponse, 0)),
    message(2, ber(0x64, text('dc=a'), ber(0x30, ber(0x30, text('cn'), ber(0x31, text('x'), text('')))))),
    message(3, ber(0x73, text('ldap://b'))),
    ber(0x30, int(4), result(done, 32, 'told'), ber(0xa0, ber(0x30, text('1.2.3'), int(255, 1), text('v')))),
    ...[[], [ber(0xa0, int(9, 0x80))], [int(1, 0x81)], [ber(0xa0, int(9, 0x81)), int(0, 0x81)]].map((parts) =>
      withPolicy(ber(0x30, ...parts)),
    ),
    // As Active Directory writes lengths.
    Buffer.from('308400000010020101618400000007 0a010004000400'.replaceAll(' ', ''), 'hex'),
  ]

  test('are separated in a stream however it is chunked', () => {
    const stream = Buffer.concat(sound)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: stream.length }), { maxLength: 8 }), (cuts) => {
        const frames = new LdapFrames('peer')
        const at = [0, ...cuts.sort((a, b) => a - b), stream.length]
        const got = at.slice(1).flatMap((end, index) => [...frames.take(stream.subarray(at[index], end))])
        expect(got.map((one) => one.toString('hex'))).toEqual(sound.map((one) => one.toString('hex')))
        expect(frames.empty).toBe(true)
      }),
      { numRuns: 200 },
    )
  })

  test('that are invalid throw ProbeError and nothing else', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.integer({ min: 0, max: 4 }), fc.nat(30), (noise, which, at) => {
        const bytes = Buffer.from(sound[which] ?? [])
        Buffer.from(noise).copy(bytes, Math.min(at, bytes.length))
        for (const input of [bytes, Buffer.from(noise)]) {
          try {
            new LdapFrames('peer').take(input)
          } catch (error) {
            expect(error).toBeInstanceOf(ProbeError)
          }
        }
      }),
      { numRuns: 2_000 },
    )
  })

  test.each([
    ['HTTP', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), 'not the beginning of a message'],
    ['an endless length', Buffer.from('3080', 'hex'), 'a length of an unknown form'],
    ['2 GiB', Buffer.from('30847fffffff', 'hex'), 'a message of more than 1 MiB'],
    ['a bind without a result', message(1, ber(bindResponse)), 'cut short'],
    ['a result without its text', message(1, ber(done, int(0, 10), text(''))), 'cut short'],
    ['a number of 5 bytes', message(1, ber(done, ber(10, '12345'), text(''), text(''))), 'a number of the wrong size'],
    ['a request', message(1, ber(0x63, text(''))), 'that is not an answer'],
    [
      'an entry whose list leads out of it',
      message(1, ber(0x64, text('dc=a'), Buffer.from('30847fffffff', 'hex'))),
      'longer than its message',
    ],
    ['a password policy without its list', withPolicy(text('x')), 'in the wrong place'],
    [
      'a password policy with two warnings',
      withPolicy(ber(0x30, ber(0xa0), ber(0xa0))),
      'a control of the wrong shape',
    ],
    ['a password policy with an empty warning', withPolicy(ber(0x30, ber(0xa0))), 'a control of the wrong shape'],
    [
      'a password policy that leads out of it',
      withPolicy(Buffer.from('30847fffffff', 'hex')),
      'longer than its message',
    ],
    ['a password policy with a number of 5 bytes', withPolicy(ber(0x30, ber(0x81, '12345'))), 'of the wrong size'],
    ['a list that is none', message(1, ber(0x64, text('dc=a'), text('xx'))), 'in the wrong place'],
  ])('%s is not LDAP', (_, bytes, why) => {
    expect(() => new LdapFrames('peer').take(bytes)).toThrow(why)
  })

  test('that arrive byte by byte are not copied each time', () => {
    const large = ber(0x64, text('dc=a'), ber(0x30, ber(0x30, text('cn'), ber(0x31, text('x'.repeat(50_000))))))
    const whole = message(1, large)
    const frames = new LdapFrames('peer')
    const spent = measureWork()
    let got = 0
    for (const byte of whole) got += frames.take(Buffer.from([byte])).length
    expect(got).toBe(1)
    // Each time would be 50,000 copies of 25 KB on average.
    expect(spent()).toBeLessThan(500)
  })

  test('a replica is as late as the oldest change that it lacks, by the id of the server that accepted it', () => {
    const now = Date.parse('2026-07-31T12:10:00Z')
    const csn = (time: string, id = '001') => `20260731${time}.000000Z#000000#${id}#000000`
    const compare = (own: readonly string[], its: readonly string[], oldestMissing?: number) =>
      evaluateComparison(
        { address: 'a:1', provider: 'b:1', base: 'dc=x', own: csnsOf(own), its: csnsOf(its), oldestMissing, now },
        { warn: 60_000, limit: 300_000 },
      )
    expectResult(compare([csn('120000')], [csn('120000')]), 'ok: a:1 has all changes of b:1')
    // Another provider accepted a newer change, and the one of this server is missing all the same.
    expect(compare([csn('115900'), csn('120900', '002')], [csn('120930')])).toMatchObject({ status: 'ok' })
    expect(compare([csn('115900')], [csn('120930')], Date.parse('2026-07-31T12:04:00Z'))).toMatchObject({
      status: 'failed',
      fault: 'threshold',
      measurement: { value: 360_000, limit: 300_000 },
    })
    // A change that removed an entry leaves no entry behind.
    expectResult(compare([csn('115900')], [csn('120800')]), 'warning', { measurement: { value: 120_000 } })
    // The replica may also have changes of others, which its provider lacks.
    expect(compare([csn('120000'), csn('120500', '002')], [csn('120000')])).toMatchObject({ status: 'ok' })
    expect(compare([], [csn('120000')])).toMatchObject({ status: 'failed', fault: 'data' })
  })

  test('with several changes count the newest', () => {
    const values = ['20260730120000.1Z#000000#000#000000', '20260731120000.123456Z#000000#001#000000', 'nonsense']
    expect(newestChange(values)).toBe(Date.parse('2026-07-31T12:00:00Z'))
    expect(newestChange(['99999999999999Z#'])).toBeUndefined()
  })
})

describe('ldap over a bad connection', () => {
  test('a black hole behind StartTLS and behind ldaps ends at the deadline too', async () => {
    const { results } = await look(blackHole, { startTls: true }, 'Basic', { timeoutMs: 600 })
    expect(results[0]?.message).toMatch(/accepted the connection but sent nothing for [\d.]+ m?s/)
    expect(results[0]?.fault).toBe('timeout')
    await using deaf = await peer(blackHole)
    await findsOnly(
      runKind(ldap, { url: `ldaps://127.0.0.1:${deaf.port}` }, 'Basic', { timeoutMs: 300 }),
      'connect failed (timeout)',
    )
    await expect.poll(deaf.open).toBe(0)
  })

  test('a peer that resets or hangs up is reported to have closed the connection', async () => {
    await finds(look(reset, account, 'Standard'), 'bind failed (protocol)')
    await finds(look(replies(Buffer.from('300c0201', 'hex')), account, 'Standard'), [
      'bind',
      /closed the connection before it answered$/,
    ])
  })

  test('a server that hangs up in between does not get another connection', async () => {
    const { results, connections: observation } = await look(
      (socket) =>
        socket.on('data', (question) => {
          const { id } = request(question)
          if (asksOffers(question)) socket.write(message(id, result(done, 0)))
          else socket.end(bound(id))
        }),
      account,
      'Standard',
    )
    expect(levels(results)).toEqual(['connect ok', 'bind ok', 'rootDSE failed'])
    await finds(results, 'rootDSE: …closed the connection…')
    expect(observation).toBe(1)
  })

  test('a notice of disconnection is reported in its own words', async () => {
    const notice = ber(extended, int(52, 10), text(''), text('back at 4'), ber(0x8a, '1.3.6.1.4.1.1466.20036'))
    await finds(
      look(
        answers(() => message(0, notice)),
        account,
        'Standard',
      ),
      ['bind failed (refused)', /ended the connection: it is shutting down or its data is offline/, /: "back at 4"$/],
    )
  })
})

describe('a simulated server that answers badly', () => {
  test.each([
    [49, '', 'auth', 'it refused the name or the password'],
    [
      49,
      '80090308: LdapErr: DSID-0C090446, comment: AcceptSecurityContext error, data 52e, v4563',
      'auth',
      'wrong password',
    ],
    [49, 'AcceptSecurityContext error, data 525, v1', 'auth', 'there is no such user'],
    [49, 'AcceptSecurityContext error, data 532, v1', 'auth', 'the password has expired'],
    [49, 'AcceptSecurityContext error, data 533, v1', 'auth', 'the account is disabled'],
    [49, 'AcceptSecurityContext error, data 773, v1', 'auth', 'the password must be changed first'],
    [49, 'AcceptSecurityContext error, data 775, v1', 'auth', 'the account is locked'],
    [48, '', 'auth', 'inappropriateAuthentication'],
    [13, '', 'data', 'requires encryption'],
    [8, '', 'data', 'strongerAuthRequired'],
    [51, '', 'refused', 'is too busy'],
    [52, '', 'refused', 'is shutting down'],
    [53, '', 'data', 'is unwilling'],
    [80, '', 'protocol', 'failed internally'],
    [123, '', 'protocol', 'answered with code 123'],
  ])('code %i "%s" is %s: %s', async (code, reply, fault, words) => {
    const { results } = await look(refuses(code, reply), account, 'Standard')
    await finds(results, ['bind failed', { fault }])
    expect(checked(results, 'bind').message).toContain(words)
  })

  test('whose words contain escapes and the configured password shows neither', async () => {
    const { results } = await look(
      refuses(49, `${escapeSequences} ${probe.password} ${'x'.repeat(20_000)}`),
      account,
      'Standard',
    )
    const output = JSON.stringify(results)
    expect(output).not.toContain(probe.password)
    expect(output).not.toMatch(/\\u001b|\\u0007|\u202e/)
    expect(output.length).toBeLessThan(2_000)
  })

  test.each<[string, Behaviour]>([
    ['says HTTP', replies('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['says a banner', (socket) => void socket.write('220 ready\r\n')],
    ['answers without a result', answers((id) => message(id, ber(bindResponse)))],
    [
      'leads out of its message',
      answers(bound, (id) => message(id, ber(0x64, text('a'), Buffer.from('30847fffffff', 'hex')))),
    ],
    [
      'references out of its message',
      answers(bound, (id) => message(id, ber(0x73, Buffer.from('04847fffffff', 'hex')))),
    ],
    ['nests without end', answers(bound, (id) => message(id, ber(0x64, Buffer.from('30827fff'.repeat(4_000), 'hex'))))],
  ])('that %s is a protocol fault, at once', async (_, behave) => {
    const { results } = await look(behave, account, 'Standard')
    // Not "timeout": it does not wait for its deadline.
    expect(results.at(-1)).toMatchObject({ status: 'failed', fault: 'protocol' })
  })

  test('that never stops with entries is abandoned after 1 MiB', () =>
    finds(
      look(
        (socket) => {
          socket.on('data', (question) => {
            const { id, operation } = request(question)
            if (asksOffers(question)) socket.write(message(id, result(done, 0)))
            else if (operation === 0x60) socket.write(bound(id))
            else {
              socket.removeAllListeners('data')
              const entry = message(id, ber(0x64, text('dc=a'), ber(0x30)))
              endless('', entry.toString('latin1').repeat(500))(socket)
              socket.emit('data', Buffer.alloc(0))
            }
          })
        },
        account,
        'Standard',
      ),
      'rootDSE failed (protocol): …more than 1 MiB…',
    ))

  test('whose answer is for another request is rejected', () =>
    finds(
      look(
        answers((id) => message(id + 1, result(bindResponse, 0))),
        account,
        'Standard',
        { timeoutMs: 400 },
      ),
      'bind failed (timeout)',
    ))

  test('that continues unencrypted after StartTLS is refused', async () => {
    const agreed = message(1, result(extended, 0))
    const { results } = await look(replies(Buffer.concat([agreed, message(2, result(done, 0))])), { startTls: true })
    expect(results[0]).toMatchObject({ status: 'failed', fault: 'protocol' })
    expect(results[0]?.message).toContain('continued unencrypted')
  })

  test('that does not support StartTLS is reported as such, and gets no password', async () => {
    const { results, input } = await look(
      replies(message(1, result(extended, 2))),
      { startTls: true, ...account },
      'Standard',
    )
    await findsOnly(results, ['connect failed (tls)', /refused StartTLS: it did not understand the request/])
    expect(input).not.toContain(probe.password)
  })

  test('that shows anonymous callers no root entry is ok in Basic', () =>
    finds(
      look(answers(bound, (id) => message(id, result(done, 1, 'bind first')))),
      'rootDSE ok: not shown without a sign-in',
    ))

  test('that is a domain controller without its first replication is a failure', async () => {
    const root = (id: number, state: string): Buffer =>
      Buffer.concat([
        message(id, ber(0x64, text(''), ber(0x30, ber(0x30, text('isSynchronized'), ber(0x31, text(state)))))),
        message(id, result(done, 0)),
      ])
    const judged = async (state: string) =>
      checked(
        (
          await look(
            answers(bound, (id) => root(id, state)),
            account,
            'Advanced',
          )
        ).results,
        'synchronized',
      ).status
    expect([await judged('TRUE'), await judged('FALSE')]).toEqual(['ok', 'failed'])
  })

  test('that refuses a dedicated account because it has no password proves nothing', async () => {
    const behave: Behaviour = (socket) =>
      void socket.on('data', (question) => {
        const { id, operation } = request(question)
        const isDedicated = question.includes('uid=empty')
        if (operation === 0x60) socket.write(isDedicated ? message(id, result(bindResponse, 48)) : bound(id))
        else socket.write(message(id, result(done, 0)))
      })
    await finds(
      look(behave, { ...account, refusesWrongPassword: { username: 'uid=empty' } }, 'Advanced'),
      'wrong password warning: …it may have no password…',
    )
  })

  test('that refuses a dedicated account for another reason proves nothing', async () => {
    const other = { username: 'uid=other', password: account.password }
    const behave: Behaviour = (socket) =>
      void socket.on('data', (question) => {
        const reply = question.includes('uid=locked')
          ? message(request(question).id, result(bindResponse, 49, 'x data 775, v1'))
          : bound(request(question).id)
        socket.write(request(question).operation === 0x60 ? reply : message(request(question).id, result(done, 0)))
      })
    await finds(
      look(behave, { ...other, refusesWrongPassword: { username: 'uid=locked' } }, 'Advanced'),
      'wrong password warning: …not because of the password: the account is locked…',
    )
    const open = await look(behave, { ...other, refusesWrongPassword: { username: 'uid=open' } }, 'Advanced')
    await finds(open, 'wrong password failed (data)')
  })
})

test('a password goes over plain ldap to another machine only where that is configured', () => {
  const { signal } = new AbortController()
  const at = (ip: string) => ({ ip, port: 389, address: `${ip}:389`, signal, step: () => {} })
  const plain = { socket: new Socket(), chain: undefined }
  const settings = withDefaults(connectSettings, { url: 'ldap://dc1' })
  expect(() => refuseReadable(plain, at('192.0.2.7'), settings)).toThrow(
    'the password is not sent to 192.0.2.7:389 over plain ldap: use ldaps://, startTls, or insecureLdap',
  )
  expect(refuseReadable(plain, at('127.0.0.1'), settings)).toBeUndefined()
  expect(refuseReadable(plain, at('::1'), settings)).toBeUndefined()
  expect(refuseReadable(plain, at('192.0.2.7'), { ...settings, insecureLdap: true })).toBeUndefined()
})

test('values at the boundaries of latency and age are ok', () => {
  const { latency } = withDefaults(connectSettings, { url: 'ldap://a' })
  const connect = (ms: number) => evaluateConnect({ address: 'a:1', chain: undefined }, ms, latency).status
  expect([1_000, 1_001, 3_000, 3_001].map(connect)).toEqual(['ok', 'warning', 'warning', 'failed'])
  const now = Date.now()
  const change = (ageMs: number | undefined) =>
    evaluated(
      lastChange,
      { address: 'a:1', hasBase: true, newest: ageMs === undefined ? undefined : now - ageMs, now },
      { lastChange: { warn: 10, limit: 20 } },
    )[0]?.status
  expect([-5, 10, 11, 20, 21, undefined].map(change)).toEqual(['ok', 'ok', 'warning', 'warning', 'failed', 'warning'])
  expect(change(-60_001)).toBe('warning')
})

test('the age of the newest change is not checked without a naming context', () =>
  finds(
    look(
      answers(bound, (id) => message(id, result(done, 0))),
      { ...account, lastChange: { limit: 1_000 } },
      'Advanced',
    ),
    'last change not checked (missing)',
  ))
