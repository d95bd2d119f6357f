import { availableParallelism } from 'node:os'
import { performance } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'
import { describe, expect, onTestFinished, test } from 'vitest'
import { limitsOf } from '../../../src/core/accounts/auth/attempts.ts'
import { openAccess, Paces } from '../../../src/core/accounts/auth/index.ts'
import { HashQueue, hashCost, passwords } from '../../../src/core/accounts/auth/passwords.ts'
import { recorded } from '../../support/store/recorded-store.ts'
import { type Fixture, faultFields, faultOf, from, openFixture, password } from './fixture.ts'

const address = (n: number): string => `198.51.${(n >> 8) & 255}.${n & 255}`
const actor = { who: '-', correlationId: 'test' }

/** Ways to be refused that nobody may tell apart, and how a user comes into each. */
const refused = {
  'a wrong password': async () => {},
  'an unknown user': async ({ data }: Fixture, id: string) => await data.users.remove(id, actor),
  'a disabled user': async ({ data }: Fixture, id: string) => await data.users.setDisabled(id, true, actor),
  'a user without a password': async () => {},
  'a locked user': async ({ data, clock }: Fixture, _: string, userName: string, place: string) => {
    const [pair = ''] = limitsOf([userName]).counters
    const counter = { key: `${pair}${place}`, windowMs: 86_400_000, window: 'sliding' } as const
    for (let n = 0; n < 10; n += 1) await data.failures.add(clock.at, [counter])
  },
} as const
type Kind = keyof typeof refused
const kinds = Object.keys(refused) as readonly Kind[]

type Victim = { readonly userName: string; readonly place: string }

/** A user of this kind with a name and an address of its own, so that each attempt is the first. */
async function victim(fixture: Fixture, kind: Kind, n: number): Promise<Victim> {
  const userName = `${kind.replaceAll(' ', '-')}-${n}`
  const place = address(n)
  const passwordHash =
    kind === 'a user without a password' ? undefined : (await fixture.data.users.find('Ann'))?.passwordHash
  const nothing = { email: undefined, displayName: undefined, roles: [], permissions: [] }
  const { id } = await fixture.data.users.add({ ...nothing, userName, passwordHash }, actor)
  await refused[kind](fixture, id, userName, place)
  return { userName, place }
}

const signIn = async ({ access }: Pick<Fixture, 'access'>, { userName, place }: Victim, Password: string) =>
  faultFields(
    await faultOf(access.authenticate({ provider: 'credentials', UserName: userName, Password }, from(place))),
  )

describe('the work of a refused sign-in', () => {
  test('P2 each kind of refusal makes the same calls of the store, in the same order, and one hash', async () => {
    const fixture = await openFixture()
    const calls: string[] = []
    const real = passwords(new HashQueue(2, 20_000))
    const access = openAccess({
      data: recorded(fixture.data, calls),
      passwords: {
        ...real,
        check: (...parts) => {
          calls.push('hash')
          return real.check(...parts)
        },
      },
      paces: new Paces(),
      now: () => fixture.clock.at,
    })
    const work = new Map<Kind, unknown>()
    for (const [n, kind] of kinds.entries()) {
      const one = await victim(fixture, kind, n)
      calls.length = 0
      const answer = await signIn(
        { access: { ...fixture.access, ...access } },
        one,
        kind === 'a wrong password' ? 'wrong' : password,
      )
      work.set(kind, { answer, calls: [...calls] })
    }
    const refusal = work.get('a wrong password') as { readonly calls: readonly string[] }
    expect(refusal.calls.filter((call) => call === 'hash')).toHaveLength(1)
    expect(refusal.calls.length).toBeGreaterThan(6)
    for (const kind of kinds) expect({ kind, work: work.get(kind) }).toEqual({ kind, work: refusal })
  })

  test('P2 P5 when the limit of a name is reached, every kind makes the same calls and no hash', async () => {
    const fixture = await openFixture()
    const work = new Map<Kind, unknown>()
    for (const [n, kind] of kinds.entries()) {
      const { userName } = await victim(fixture, kind, n)
      const [name = ''] = limitsOf([userName]).guesses
      for (let guess = 0; guess < 20; guess += 1) {
        await fixture.data.guesses.take(name, fixture.clock.at, { capacity: 20, everyMs: 18 * 60_000 })
      }
      const calls: string[] = []
      const access = openAccess({
        data: recorded(fixture.data, calls),
        passwords: passwords(new HashQueue(2)),
        paces: new Paces(),
        now: () => fixture.clock.at,
      })
      const before = fixture.hashes.count
      const answer = await signIn(
        { access: { ...fixture.access, ...access } },
        { userName, place: '192.0.2.99' },
        password,
      )
      expect(answer.status).toBe(429)
      expect(fixture.hashes.count).toBe(before)
      work.set(kind, { answer, calls })
    }
    for (const kind of kinds)
      expect({ kind, work: work.get(kind) }).toEqual({ kind, work: work.get('a wrong password') })
  }, 60_000)
})

const proving = process.env.SVC_PROVE === '1'
const pairs = 200

describe.runIf(proving)('the time of a refused sign-in', () => {
  test.each(['idle', 'busy'])(
    'P2 the median ratio of 200 pairs is 0.95 to 1.05 on a machine that is %s',
    async (state) => {
      const load = state === 'busy' ? Array.from({ length: availableParallelism() }, burner) : []
      onTestFinished(async () => void (await Promise.all(load.map((worker) => worker.terminate()))))

      for (const kind of kinds.slice(1)) {
        const median = await medianRatio(kind)
        process.stderr.write(`${state}: ${kind} takes ${median.toFixed(3)} of the time of a wrong password\n`)
        expect({ kind, inRange: median >= 0.95 && median <= 1.05 }).toEqual({ kind, inRange: true })
      }
    },
    590_000,
  )
})

/** The median over all pairs of the time of this kind, divided by that of a wrong password. */
async function medianRatio(kind: Kind): Promise<number> {
  const ratios: number[] = []
  const fixture = await openFixture(undefined, hashCost)
  const timed = async (one: Victim): Promise<number> => {
    const started = performance.now()
    expect((await signIn(fixture, one, 'wrong')).status).toBe(401)
    return performance.now() - started
  }
  for (let n = 0; n < pairs; n += 1) {
    const refusal = [
      await victim(fixture, 'a wrong password', 4 * n),
      await victim(fixture, 'a wrong password', 4 * n + 1),
    ]
    const other = [await victim(fixture, kind, 4 * n + 2), await victim(fixture, kind, 4 * n + 3)]
    // A B B A: what grows or shrinks with time touches both alike.
    const [a, b, c, d] = [refusal[0], other[0], other[1], refusal[1]] as [Victim, Victim, Victim, Victim]
    const [first, second, third, fourth] = [await timed(a), await timed(b), await timed(c), await timed(d)]
    ratios.push((second + third) / (first + fourth))
  }
  return ratios.sort((a, b) => a - b)[Math.floor(pairs / 2)] ?? 0
}

/** Uses a whole processor until it is terminated. */
const burner = (): Worker => new Worker('for (;;) Math.sqrt(2)', { eval: true })
