import { describe, expect, test } from 'vitest'
import type { Settings } from '../../src/cli/settings/profiles.ts'
import { chooseEither } from '../../src/cli/settings/target.ts'
import { Fault } from '../../src/core/base/errors.ts'

const prod = 'https://prod.example.com'
const other = 'https://other.example.com'
const profile = { name: 'prod', server: prod } as Settings['profiles'][number]
const settings = (current: string | undefined): Settings => ({
  path: '/home/ann/settings.json',
  current,
  profiles: [profile],
})

type Flags = Parameters<typeof chooseEither>[0]
/** The place that is chosen, or the message of the refusal. */
async function placeFor(flags: Flags, env: Record<string, string> = {}, current?: string): Promise<string> {
  try {
    const target = await chooseEither(flags, env, async () => settings(current))
    if (target.kind === 'local') return 'this machine'
    return [`${target.url} by ${target.origin}`, ...(target.overridden ?? [])].join(' over ')
  } catch (error) {
    if (error instanceof Fault && error.fault === 'Usage') return error.message
    throw error
  }
}

describe('K12 a command that acts at a server or on this machine', () => {
  test.each(['config', 'store'])('refuses --%s with --server and with --profile', async (local) => {
    for (const server of [{ server: other }, { profile: 'prod' }]) {
      expect(await placeFor({ [local]: '/x', ...server })).toBe(
        `--${local} and --${Object.keys(server)[0]} cannot be combined: --${local} means this machine`,
      )
    }
  })

  test.each(['config', 'store'])(
    'acts on this machine with --%s, whatever the variables and the current profile are',
    async (local) => {
      expect(await placeFor({ [local]: '/x' }, {}, 'prod')).toBe('this machine')
      for (const env of [{ SVC_SERVER: other }, { SVC_PROFILE: 'prod' }]) {
        expect(await placeFor({ [local]: '/x' }, env, 'prod')).toBe('this machine')
      }
    },
  )

  test.each(['SVC_CONFIG', 'SVC_STORE'])(
    'acts on this machine with %s rather than at the current profile',
    async (name) => {
      expect(await placeFor({}, { [name]: '/x' }, 'prod')).toBe('this machine')
    },
  )

  test.each(['SVC_CONFIG', 'SVC_STORE'])(
    'refuses %s beside SVC_SERVER and beside SVC_PROFILE, and names both',
    async (name) => {
      for (const [server, value] of [
        ['SVC_SERVER', other],
        ['SVC_PROFILE', 'prod'],
      ] as const) {
        expect(await placeFor({}, { [name]: '/x', [server]: value })).toBe(
          `${name} means this machine, and ${server} a server: both are set`,
        )
        expect(await placeFor({ local: true }, { [name]: '/x', [server]: value })).toBe('this machine')
      }
    },
  )

  test.each(['SVC_CONFIG', 'SVC_STORE'])(
    'a flag for a server takes precedence over %s, which is noted',
    async (name) => {
      expect(await placeFor({ server: other }, { [name]: '/x' })).toBe(`${other} by --server over ${name}`)
      expect(await placeFor({ profile: 'prod' }, { [name]: '/x' })).toBe(`${prod} by --profile over ${name}`)
    },
  )

  test('refuses each of these variables when it is set but empty, and a missing CI secret selects no other place', async () => {
    for (const name of ['SVC_CONFIG', 'SVC_STORE', 'SVC_SERVER', 'SVC_PROFILE']) {
      expect(await placeFor({}, { [name]: '' }, 'prod')).toBe(`${name} is set but empty`)
    }
  })

  test('asks the server of a flag rather than that of a variable, and notes a variable that is not its own', async () => {
    expect(await placeFor({ server: other }, { SVC_SERVER: prod }, 'prod')).toBe(`${other} by --server`)
    expect(await placeFor({ server: other }, { SVC_PROFILE: 'prod' }, 'prod')).toBe(`${other} by --server`)
    expect(await placeFor({ profile: 'prod' }, { SVC_PROFILE: 'nobody' })).toBe(`${prod} by --profile`)
    expect(await placeFor({ profile: 'prod' }, { SVC_SERVER: other })).toBe(`${prod} by --profile over SVC_SERVER`)
    expect(await placeFor({ profile: 'prod' }, { SVC_SERVER: other, SVC_CONFIG: '/x' })).toBe(
      `${prod} by --profile over SVC_CONFIG over SVC_SERVER`,
    )
  })

  test('refuses --server with --profile: they may name two servers', async () => {
    expect(await placeFor({ server: other, profile: 'prod' })).toBe(
      '--server and --profile cannot be combined: both choose a server',
    )
  })

  test('otherwise asks the server of the flag, the variable or the profile', async () => {
    expect(await placeFor({})).toBe('this machine')
    expect(await placeFor({}, {}, 'prod')).toBe(`${prod} by current profile`)
    expect(await placeFor({}, { SVC_SERVER: other }, 'prod')).toBe(`${other} by SVC_SERVER`)
    expect(await placeFor({ local: true }, { SVC_SERVER: other }, 'prod')).toBe('this machine')
  })
})
