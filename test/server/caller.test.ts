import { describe, expect, test } from 'vitest'
import { Fault, StoreError } from '../../src/core/base/errors.ts'
import type { Call } from '../../src/core/protocol/service/service.ts'
import { type CallerRequest, callerOf, trustedProxies } from '../../src/core/server/hosts.ts'
import { type Parts, viewOf } from '../../src/core/service/local.ts'
import { localReader } from '../support/engine/peer-process.ts'
import { ask, openSite, question, withSite } from './site.ts'

const processOf = () => localReader

/** A request as far as it identifies its caller. */
const from = (peer: string, headers: CallerRequest['headers'], httpVersion = '1.1'): CallerRequest => ({
  headers,
  httpVersion,
  socket: { remoteAddress: peer, remotePort: 4711, localAddress: '127.0.0.1', localPort: 8790 },
})
const who = (trusted: readonly string[], peer: string, forwardedFor?: string) => {
  const headers = forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor }
  const { address, loopback } = callerOf({ isTrusted: trustedProxies(trusted), behindProxy: false, processOf })(
    from(peer, headers),
  )
  return loopback ? `${address} here` : address
}

const stranger = (address: string) => ({ kind: 'http', address, loopback: false })
const relayed = (address: string) => ({ ...stranger(address), relayed: true })

describe('the address of the caller', () => {
  test.each([
    [[], '127.0.0.1', undefined, '127.0.0.1 here'],
    [[], '::1', undefined, '::1 here'],
    [[], '::ffff:127.0.0.1', undefined, '127.0.0.1 here'],
    [[], '::ffff:192.0.2.7', undefined, '192.0.2.7'],
    [[], '192.0.2.7', undefined, '192.0.2.7'],
    [[], '169.254.7.7', undefined, '169.254.7.7'],
    [[], '::ffff:169.254.7.7', undefined, '169.254.7.7'],
    [[], 'fe80::7%eth0', undefined, 'fe80::7%eth0'],
    [[], '0.0.0.0', undefined, '0.0.0.0'],
    [['127.0.0.1'], '127.0.0.1', '169.254.7.7', '169.254.7.7'],
    [['127.0.0.1'], '127.0.0.1', '::ffff:7f00:1', '::ffff:7f00:1'],
  ] as const)('with %j trusted, %s without X-Forwarded-For is %s', (trusted, peer, forwarded, expected) => {
    expect(who(trusted, peer, forwarded)).toBe(expected)
  })

  test('only a trusted proxy may set X-Forwarded-For', () => {
    expect(who([], '192.0.2.7', '127.0.0.1')).toBe('192.0.2.7')
    expect(who(['192.0.2.8'], '192.0.2.7', '127.0.0.1')).toBe('192.0.2.7')
    expect(who(['192.0.2.7'], '192.0.2.7', '198.51.100.4')).toBe('198.51.100.4')
    expect(who(['192.0.2.0/24'], '::ffff:192.0.2.7', '198.51.100.4:5123')).toBe('198.51.100.4')
    expect(who(['fd00::/8'], 'fd00::7', '[2001:db8::1]:443')).toBe('2001:db8::1')
  })

  test('X-Forwarded-For is read from right to left, past trusted proxies and no further', () => {
    const trusted = ['10.0.0.0/8']
    expect(who(trusted, '10.0.0.1', '127.0.0.1, 198.51.100.4, 10.0.0.2')).toBe('198.51.100.4')
    expect(who(trusted, '10.0.0.1', '127.0.0.1, rubbish, 10.0.0.2')).toBe('10.0.0.2')
    expect(who(trusted, '10.0.0.1', 'rubbish')).toBe('10.0.0.1')
    expect(who(trusted, '10.0.0.1', ' 198.51.100.4 ,10.0.0.3')).toBe('198.51.100.4')
  })

  test('S11 a caller that was relayed from another machine never counts as local', () => {
    // A proxy on this machine that is not known to be one must not open what loopback may see.
    expect(who([], '127.0.0.1', '198.51.100.4')).toBe('127.0.0.1')
    expect(who(['127.0.0.1'], '127.0.0.1', '198.51.100.4')).toBe('198.51.100.4')
    expect(who(['127.0.0.1'], '127.0.0.1')).toBe('127.0.0.1')
    // A proxy that passes the header of its caller on unchanged reports whatever the caller wrote.
    expect(who(['127.0.0.1'], '127.0.0.1', '127.0.0.1')).toBe('127.0.0.1')
    // The loopback of another machine is not ours.
    expect(who(['192.0.2.7'], '192.0.2.7', '127.0.0.1')).toBe('192.0.2.7')
    const caller = callerOf({ isTrusted: trustedProxies([]), behindProxy: false, processOf })
    expect(caller(from('127.0.0.1', {}))).toMatchObject({ loopback: true, process: localReader })
    const headers = ['forwarded', 'x-real-ip', 'via', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port']
    for (const header of headers) {
      expect(caller(from('127.0.0.1', { [header]: 'x' }))).toEqual(relayed('127.0.0.1'))
    }
    // A proxy that adds no header, as nginx by default.
    expect(caller(from('127.0.0.1', {}, '1.0'))).toEqual(relayed('127.0.0.1'))
    expect(caller(from('192.0.2.7', {}))).toEqual(stranger('192.0.2.7'))
  })

  test('S11 the reason of /readyz is for callers on this machine whose request nobody relayed', async () => {
    const runtime = {
      ready: async () => {
        throw new Fault('Unavailable', 'the store is locked')
      },
    }
    const readyz = async (options: object, headers = {}): Promise<boolean> => {
      let showsReason = false
      await withSite({ runtime, options }, async ({ port }) => {
        showsReason = (await ask(port, '/readyz', { headers })).text.includes('the store is locked')
      })
      return showsReason
    }
    expect(await readyz({})).toBe(true)
    expect(await readyz({}, { via: '1.1 proxy' })).toBe(false)
    expect(await readyz({ behindProxy: ['192.0.2.7'] })).toBe(false)
    expect(await readyz({ trustProxy: ['127.0.0.1'] }, { 'x-forwarded-for': '127.0.0.1' })).toBe(false)
  })

  test('S11 the Service and the Runtime receive the address of the caller', async () => {
    const callers: unknown[] = []
    const runtime = {
      viewOf: async ({ caller }: Pick<Call, 'caller'>) => {
        callers.push(caller)
        return () => 'brief' as const
      },
    }
    const { port, calls, log } = await openSite({ runtime, options: { trustProxy: ['127.0.0.1'] } })
    const headers = { 'x-forwarded-for': '198.51.100.4' }
    await ask(port, question, { headers })
    expect(calls[0]?.call.caller).toEqual(stranger('198.51.100.4'))
    expect(log[0]?.address).toBe('198.51.100.4')
    await ask(port, '/', { headers })
    await ask(port, '/metrics', { headers })
    expect(callers).toEqual([stranger('198.51.100.4'), stranger('198.51.100.4')])
  })

  test.each(['localhost', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0.0/', '10.0.0.0/x', 'fd00::/129', ''])(
    'the trusted proxy %j is refused at start-up',
    (entry) => {
      expect(() => trustedProxies([entry])).toThrow(Fault)
    },
  )
})

describe('a caller of a health check who cannot be identified', () => {
  const viewWith = async (problem: Error) => {
    const access = { identifyCaller: () => Promise.reject(problem) }
    const parts = { details: 'signed-in', accounts: async () => ({ access }) } as unknown as Parts
    const view = await viewOf(parts, {
      caller: { kind: 'http', address: '192.0.2.7', loopback: false },
      credential: { kind: 'bearer', token: 'unknown' },
      correlationId: 'test',
      signal: new AbortController().signal,
    })
    return view()
  }
  test.each([new Fault('Unavailable'), new Fault('Unauthorized'), new StoreError('no such table')])(
    'H7 sees the brief answer after %s',
    async (problem) => {
      expect(await viewWith(problem)).toBe('brief')
    },
  )
  test('H7 gets a 500 for a defect, and no answer that hides it', async () => {
    await expect(viewWith(new TypeError('a defect'))).rejects.toThrow('a defect')
  })
})
