import { beforeAll, describe, expect, test } from 'vitest'
import type { SettingsSpec } from '../src/core/base/settings/index.ts'
import { configurableKinds, describeProfiles } from '../src/core/checks/plan/index.ts'
import { serverLimits } from '../src/core/server/limits.ts'
import {
  type ClearTextCase,
  clearTextRows,
  mixedPlace,
  type ProgramAnswer,
  places,
  programPlaces,
  programRows,
} from './support/clear-text/places.ts'
import { inNamespace, linkLocal4, linkLocal6, missingNamespace, privateAddress } from './support/faults/network.ts'
import { suiteWith } from './support/suite/peer.ts'

/** Milliseconds; more than the scripts get. */
const hookMs = 180_000

const takesSecret = (spec: SettingsSpec): boolean =>
  Object.entries(spec).some(
    ([name, setting]) =>
      // A proxy has no TLS: docs/svc.yaml.md says so.
      (setting.type === 'secret' && name !== 'proxyPassword') ||
      ((setting.type === 'group' || setting.type === 'groups') && takesSecret(setting.fields)),
  )

test('each kind and each profile with a secret has a row in the table', async () => {
  const names = new Set(clearTextRows.map(({ name }) => name))
  const kinds = (await configurableKinds()).filter(({ settings }) => takesSecret(settings)).map(({ name }) => name)
  expect(kinds.length).toBeGreaterThan(10)
  expect(kinds.filter((kind) => !names.has(kind))).toEqual([])
  const profiles = (await describeProfiles())
    .filter(({ parameters }) => parameters.some(({ type }) => type === 'secret'))
    .map(({ name }) => `profile ${name}`)
  expect(profiles.length).toBeGreaterThan(1)
  expect(profiles.filter((profile) => !names.has(profile))).toEqual([])
})

suiteWith(missingNamespace(), 'no credential goes in clear to another machine', () => {
  describe('a credential of svc.yaml', () => {
    let cases: readonly ClearTextCase[] = []
    beforeAll(async () => {
      const script = new URL('support/clear-text/kinds-child.ts', import.meta.url)
      cases = (await inNamespace(script)) as readonly ClearTextCase[]
    }, hookMs)
    const at = (row: string, place: string): ClearTextCase =>
      cases.find((one) => one.row === row && one.place === place) ?? expect.fail(`${row} was not led to ${place}`)
    const others = places.filter(({ loopback }) => !loopback)
    const own = places.filter(({ loopback }) => loopback)

    test.each(clearTextRows)('K9 $name sends no byte of it to another machine, and reports why', ({ name, says }) => {
      const mismatches = others
        .map((place) => at(name, place.name))
        .filter(({ receivers, failures }) => receivers.length > 0 || !failures.some((failure) => says.test(failure)))
      expect(mismatches).toEqual([])
    })

    test.each(clearTextRows.filter(({ never }) => never === undefined))('K9 $name sends it to loopback', ({ name }) => {
      const receivers = own.map((place) => [place.name, at(name, place.name).receivers])
      expect(receivers).toEqual(own.map((place) => [place.name, place.listens]))
    })

    test.each(clearTextRows.filter(({ never }) => never !== undefined))(
      'K9 $name does not send it to loopback either: $never',
      ({ name }) => {
        expect(own.flatMap((place) => at(name, place.name).receivers)).toEqual([])
      },
    )

    test('K9 with a name that is both loopback and another machine, each address is checked separately', () => {
      const receivers = clearTextRows.map(({ name }) => [name, at(name, mixedPlace.name).receivers] as const)
      expect(receivers.filter(([, addresses]) => addresses.includes(privateAddress))).toEqual([])
      for (const [name, addresses] of receivers) {
        if (['http', 'http-steps', 'svc', 'redis'].includes(name))
          expect([name, addresses]).toEqual([name, ['127.0.0.2']])
      }
    })
  })

  describe('the program itself', () => {
    let answer: ProgramAnswer | undefined
    beforeAll(async () => {
      const script = new URL('support/clear-text/program-child.ts', import.meta.url)
      answer = (await inNamespace(script)) as ProgramAnswer
    }, hookMs)

    test.each(programRows)(
      'K5 $name sends a credential in clear text to loopback alone, and reports why',
      ({ name, says }) => {
        const runs = programPlaces.map(({ host, loopback }) => {
          const run = answer?.clients.find((one) => one.row === name && one.place === host)
          const outcome = run?.received ? 'sends' : run && says.test(run.stderr) ? 'refuses' : run?.stderr
          return { host, outcome, expected: loopback ? 'sends' : 'refuses' }
        })
        expect(runs.filter(({ outcome, expected }) => outcome !== expected)).toEqual([])
      },
    )

    test('S11 P5 S3 callers from link-local addresses do not count as local', () => {
      const most = serverLimits.connectionsPerAddress
      // On loopback, connections that are idle make room.
      const own = { view: 'full', signIn: 401, connections: most + 8 }
      const stranger = { view: 'brief', signIn: 429, connections: most }
      expect(answer?.callers).toEqual({ '127.0.0.1': own, [linkLocal4]: stranger, [linkLocal6]: stranger })
    })

    test('P6 serve does not listen at a loopback name that resolves elsewhere', () => {
      expect(answer?.serves.here).toMatchObject({ code: 0 })
      expect(answer?.serves.elsewhere.stderr).toMatch(/elsewhere\.localhost: it resolves to 10\.77\.0\.1/)
      expect(answer?.serves.elsewhere.stderr).not.toMatch(/listens on/)
      expect(answer?.serves.elsewhere.code).toBe(12)
    })
  })
})
