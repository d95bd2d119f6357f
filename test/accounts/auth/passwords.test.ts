import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { refusal } from '../../../src/core/accounts/auth/password-policy.ts'
import {
  defaultSlots,
  HashQueue,
  hashPassword,
  matches,
  outdated,
  passwords,
  readPhc,
  writePhc,
} from '../../../src/core/accounts/auth/passwords.ts'
import { faultOf } from './fixture.ts'

const never = new AbortController().signal

describe('the hash', () => {
  test('P1 a password is stored as argon2id, 19456 KiB, two passes, one lane, a 16-byte salt and a 32-byte tag', async () => {
    const text = await hashPassword('violet-harbour-42')
    expect(text).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    const phc = readPhc(text)
    expect(phc && [phc.salt.length, phc.tag.length]).toEqual([16, 32])
    expect(phc && writePhc(phc)).toBe(text)
    expect(phc && (await matches('violet-harbour-42', phc))).toBe(true)
    expect(phc && (await matches('violet-harbour-43', phc))).toBe(false)
    expect(await hashPassword('violet-harbour-42')).not.toBe(text)
  })

  test('P1 a hash of the reference implementation is accepted', async () => {
    const text = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
    const phc = readPhc(text)
    expect(phc && (await matches('password', phc))).toBe(true)
    expect(phc && outdated(phc)).toBe(true)
  })

  test.each([
    ['more memory than 1 GiB', 'm=1048577,t=2,p=1'],
    ['more than ten passes', 'm=19456,t=11,p=1'],
    ['more than sixteen lanes', 'm=19456,t=2,p=17'],
    ['no pass at all', 'm=19456,t=0,p=1'],
    ['no lane at all', 'm=19456,t=2,p=0'],
    ['less memory than its lanes need', 'm=8,t=2,p=2'],
  ])('P1 a stored hash with %s is not computed', (_, costs) => {
    expect(readPhc(`$argon2id$v=19$${costs}$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc`)).toBeUndefined()
  })

  test('P1 another algorithm, another version and a damaged text are not valid hashes', () => {
    for (const text of [
      '',
      'plain text',
      '$2b$12$abcdefghijklmnopqrstuv',
      '$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc',
      '$argon2id$v=16$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc',
      '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$',
      '$argon2id$v=19$m=65536,t=2,p=1$c29t$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc',
    ]) {
      expect(readPhc(text)).toBeUndefined()
    }
  })

  test('P4 a password over 1,024 bytes, one that is not Unicode and one without a hash are simply wrong', async () => {
    const hashes = passwords(new HashQueue(2))
    const stored = await hashes.hash('violet-harbour-42', never)
    expect((await hashes.check('violet-harbour-42', stored)).right).toBe(true)
    expect((await hashes.check('x'.repeat(1_025), stored)).right).toBe(false)
    expect((await hashes.check('\ud800', await hashes.hash('\ufffd', never))).right).toBe(false)
    expect((await hashes.check('', await hashes.hash('', never))).right).toBe(true)
    expect((await hashes.check('x'.repeat(1_025), await hashes.hash('', never))).right).toBe(false)
    expect((await hashes.check('violet-harbour-42', undefined)).right).toBe(false)
    expect((await hashes.check('violet-harbour-42', 'not a hash')).right).toBe(false)
  })
})

describe('the queue', () => {
  const createGate = () => {
    let release = (): void => {}
    const promise = new Promise<void>((resolve) => {
      release = resolve
    })
    return { work: () => promise, release: () => release() }
  }

  test('P3 as many run concurrently as there are slots, eight wait for each, and the next is refused before any hash', async () => {
    const queue = new HashQueue(2)
    const gate = createGate()
    let running = 0
    let most = 0
    const job = async (): Promise<void> => {
      running += 1
      most = Math.max(most, running)
      await gate.work()
      running -= 1
    }
    const jobs = Array.from({ length: 18 }, () => queue.run(job, never))
    let hashed = false
    const fault = await faultOf(
      queue.run(async () => {
        hashed = true
      }, never),
    )
    expect([fault.fault, fault.details.retryAfter, hashed]).toEqual(['Unavailable', 1, false])
    gate.release()
    await Promise.all(jobs)
    expect([most, running]).toEqual([2, 0])
    await queue.run(async () => {}, never)
  })

  test('P3 a call that waits too long is refused, and its slot is not lost', async () => {
    const queue = new HashQueue(1, 30)
    const gate = createGate()
    const first = queue.run(gate.work, never)
    const fault = await faultOf(queue.run(async () => {}, never))
    expect([fault.fault, fault.details.retryAfter]).toEqual(['Unavailable', 1])
    gate.release()
    await first
    expect(await queue.run(async () => 'done', never)).toBe('done')
  })

  test('P3 a call waits for 2 s at most', async () => {
    const queue = new HashQueue(1)
    const gate = createGate()
    const first = queue.run(gate.work, never)
    vi.useFakeTimers()
    try {
      let fault: string | undefined
      const second = faultOf(queue.run(async () => {}, never)).then((refusal) => {
        fault = refusal.fault
      })
      await vi.advanceTimersByTimeAsync(1_999)
      expect(fault).toBeUndefined()
      await vi.advanceTimersByTimeAsync(1)
      expect(fault).toBe('Unavailable')
      await second
    } finally {
      vi.useRealTimers()
    }
    gate.release()
    await first
  })

  test('P3 a caller that leaves returns its place in the queue', async () => {
    const queue = new HashQueue(1)
    const gate = createGate()
    const first = queue.run(gate.work, never)
    const going = new AbortController()
    const waiting = queue.run(async () => {}, going.signal)
    going.abort(new Error('went away'))
    await expect(waiting).rejects.toThrow('went away')
    gate.release()
    await first
    expect(await queue.run(async () => 'done', never)).toBe('done')
  })

  test('P3 P5 in a full queue, a known caller takes the place of the youngest stranger, and never that of another known one', async () => {
    const queue = new HashQueue(1)
    const gate = createGate()
    const ends: string[] = []
    const enter = (name: string, isKnown: boolean): Promise<unknown> =>
      queue.run(gate.work, never, isKnown).then(
        () => ends.push(`${name} done`),
        () => ends.push(`${name} refused`),
      )
    const all = [enter('running', false), ...['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => enter(name, false))]
    all.push(enter('first user', true), enter('stranger', false), enter('second user', true))
    await Promise.resolve()
    await new Promise((resolve) => setImmediate(resolve))
    expect(ends).toEqual(['stranger refused', 'g refused'])
    for (let n = 0; n < 6; n += 1) all.push(enter(`user ${n}`, true))
    all.push(enter('last user', true))
    await new Promise((resolve) => setImmediate(resolve))
    expect(ends.slice(2).sort()).toEqual(
      ['a', 'b', 'c', 'd', 'e', 'f', 'last user'].map((name) => `${name} refused`).sort(),
    )
    gate.release()
    await Promise.all(all)
    expect(ends.filter((one) => one.endsWith('done'))).toHaveLength(9)
  })

  test('P3 P5 while 60 strangers keep the queue full, a known caller gets a turn each time (simulated clock)', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())

    const queue = new HashQueue(2)
    const hash = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 40))
    const outcome = (isKnown: boolean): Promise<boolean> =>
      queue.run(hash, never, isKnown).then(
        () => true,
        () => false,
      )
    let attacking = true
    const stranger = async (): Promise<void> => {
      while (attacking) if (!(await outcome(false))) await new Promise((resolve) => setTimeout(resolve, 10))
    }
    const strangers = Array.from({ length: 60 }, stranger)
    const results: boolean[] = []
    const user = async (): Promise<void> => {
      for (let n = 0; n < 15; n += 1) results.push(await outcome(true))
      attacking = false
    }
    const all = Promise.all([user(), ...strangers])
    while (attacking) await vi.advanceTimersByTimeAsync(100)
    await vi.advanceTimersByTimeAsync(1_000)
    await all
    expect(results).toEqual(Array.from({ length: 15 }, () => true))
  })

  test('P3 work that fails frees its slot', async () => {
    const queue = new HashQueue(1)
    await expect(queue.run(() => Promise.reject(new Error('failed')), never)).rejects.toThrow('failed')
    expect(await queue.run(async () => 'done', never)).toBe('done')
  })

  test.each([
    [undefined, 8, 2],
    ['10', 8, 8],
    ['10', 2, 2],
    ['2', 8, 1],
    ['1', 8, 1],
    ['nonsense', 8, 2],
  ])('P3 UV_THREADPOOL_SIZE %s on %d cores gives %d slots', (size, cores, slots) => {
    expect(defaultSlots(size, cores)).toBe(slots)
  })
})

describe('the policy', () => {
  test.each([
    ['seven bytes', 'aB3$xyz', 'at least 8 bytes'],
    ['over 1,024 bytes', 'é'.repeat(513), 'at most 1024 bytes'],
    ['no Unicode', 'violet-harbour-\ud800', 'not valid Unicode'],
    ['a common word', 'sunshine', 'attackers try first'],
    ['a common word with its year and signs', 'Summer2025!', 'attackers try first'],
    ['a common word written with digits', 'P@ssw0rd1', 'attackers try first'],
    ['a row of keys', 'qwertyuiop', 'attackers try first'],
    ['one character over and over', 'zzzzzzzzzzzz', 'attackers try first'],
    ['the user name', 'Annabelle', 'too similar'],
    ['the user name with a little around it', 'annabelle-77', 'too similar'],
    ['the user name backwards', 'ellebanna1', 'too similar'],
    ['the user name with a letter changed', 'annabella', 'too similar'],
    ['the e-mail', 'bell.curve@example.com', 'too similar'],
    ['a part of the e-mail', 'curve-1999', 'too similar'],
  ])('P4 %s is refused', async (_, input, why) => {
    expect(await refusal(input, ['Annabelle', 'bell.curve@example.com'])).toContain(why)
  })

  test.each([
    ['eight bytes of anything', 'kv7#pQ2z'],
    ['words only', 'violet harbour tuesday'],
    ['1,024 bytes', 'kv7#pQ2z'.repeat(2) + 'x'.repeat(1_008)],
    ['any script', '紫の港と火曜日'],
    ['blanks around it', '  violet harbour  '],
    ['a name in a long sentence', 'what annabelle never told the harbour master'],
  ])('P4 %s is accepted', async (_, input) => {
    expect(await refusal(input, ['Annabelle'])).toBeUndefined()
  })

  test('P4 the minimum length may be raised but not lowered', async () => {
    expect(await refusal('violet-harbour', [], 15)).toContain('at least 15')
    expect(await refusal('kv7#pQ2', [], 4)).toContain('at least 8')
  })
})
