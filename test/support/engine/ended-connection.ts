import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { SettingsSpec } from '../../../src/core/base/settings/index.ts'
import type { AnyKind, Kind, Result } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { endingProxy } from '../faults/ending-proxy.ts'
import { runKind } from './run-kind.ts'

/** A run whose server ended a connection: after how many pieces of its answers, and what came of it. */
export type EndedRun = {
  readonly pieces: number
  readonly results: readonly Result[]
  /** The checks of the whole run that have no result in this one. */
  readonly missing: readonly string[]
}

const namesOf = (results: readonly Result[]): ReadonlySet<string> => new Set(results.map(({ check }) => check))

/** Milliseconds. Long enough for the end of a connection to arrive, in most runs. */
const pauseMs = 10

/** Waits between the checks once the server has ended a connection, so that the session is lost before the next one begins. */
const pausing = (kind: Kind<SettingsSpec>, ended: () => boolean): Kind<SettingsSpec> => ({
  ...kind,
  async *run(settings, context) {
    for await (const results of kind.run(settings, context)) {
      yield results
      if (ended()) await setTimeout(pauseMs)
    }
  },
})

/**
 * Runs a kind against the server on a port: once to the end, and then again and again while a proxy ends a connection
 * after one more piece of what the server sends, until a run needs no more pieces. Each of them runs twice: the end
 * arrives during the next check, or before it.
 */
export async function endAfterEachStep(
  kind: Kind<SettingsSpec>,
  settings: (port: number) => Readonly<Record<string, unknown>>,
  port: number,
  mode: ExecutionMode = 'Advanced',
): Promise<{ readonly whole: readonly Result[]; readonly ended: readonly EndedRun[] }> {
  const run = async (pieces: number, pauses: boolean) => {
    await using proxy = await endingProxy(port, pieces)
    const one = pauses ? pausing(kind, proxy.ended) : kind
    // A run that waits for the rest of an answer ends at its deadline.
    const results = await runKind(one, settings(proxy.port) as never, mode, { timeoutMs: 10_000 })
    return { results, ended: proxy.ended() }
  }
  const { results: whole } = await run(Number.POSITIVE_INFINITY, false)
  const ended: EndedRun[] = []
  for (let pieces = 0; ; pieces += 1) {
    const both = [await run(pieces, false), await run(pieces, true)]
    for (const { results } of both.filter((one) => one.ended)) {
      const names = namesOf(results)
      const missing = [...namesOf(whole)].filter((name) => !names.has(name))
      ended.push({ pieces, results, missing })
    }
    if (both.every((one) => !one.ended)) return { whole, ended }
  }
}

/** The runs that lack a check and do not fail. */
export const silentlyShorter = (runs: readonly EndedRun[]): readonly string[] =>
  runs
    .filter(({ missing, results }) => missing.length > 0 && results.every(({ status }) => status !== 'failed'))
    .map(({ pieces, missing, results }) => {
      const summary = results.map(({ check, status }) => `${check} ${status}`).join(', ')
      return `after ${pieces} pieces: ${summary}; without ${missing.join(', ')}`
    })

/** The runs with a failed check that did not open the session, and which do not name what is missing. */
export const unnamed = (runs: readonly EndedRun[], opening: readonly string[]): readonly string[] =>
  runs.flatMap(({ pieces, missing, results }) => {
    const failed = results.filter(({ status }) => status === 'failed')
    if (failed.some(({ check }) => opening.includes(check))) return []
    const text = failed.flatMap(({ check, details = [] }) => [check, ...details]).join('\n')
    const without = missing.filter((name) => !text.includes(name))
    return without.length === 0 ? [] : [`after ${pieces} pieces: nothing names ${without.join(', ')}: ${text}`]
  })

export type Settings = Readonly<Record<string, unknown>>
type Started = {
  readonly port: number
  /** Settings that the server decides. */
  readonly more?: Settings
  readonly remove?: () => Promise<void>
  readonly close?: () => Promise<void>
  readonly [Symbol.asyncDispose]?: () => Promise<void>
}
/** A kind, and a server whose checks share a session. */
export type EndedRow = {
  readonly name: string
  readonly kind: KindName
  /** The checks that open the session: without them, nothing else can run. */
  readonly opening: readonly string[]
  /** Its checks go on over a new connection, and each that fails says so for itself. */
  readonly reconnects?: true
  readonly start: () => Promise<Started>
  readonly settings: (port: number) => Settings
}

/** The kinds that only an installed server can be had of. */
export const kindsInPeers: readonly KindName[] = ['ldap', 'mysql', 'pgbouncer', 'rabbitmq', 'redis']

/** Tests each row: the server ends the connection after each step in turn. */
export function describeEnds(rows: readonly EndedRow[]): void {
  // Nearly all of it waits.
  test.concurrent.each(rows)(
    'H22 $name: wherever the server ends the connection, a run that lacks a check fails and names it',
    async ({ kind: name, opening, reconnects, start, settings }) => {
      const kind = (await monitors[name].load()).default as AnyKind as Kind<SettingsSpec>
      const server = await start()
      try {
        const withMore = (port: number): Settings => ({ ...settings(port), ...server.more })
        const { whole, ended } = await endAfterEachStep(kind, withMore, server.port)
        expect(whole.filter(({ status }) => status === 'failed')).toEqual([])
        expect(ended.length).toBeGreaterThan(1)
        expect(silentlyShorter(ended)).toEqual([])
        if (!reconnects) expect(unnamed(ended, opening)).toEqual([])
      } finally {
        await (server.remove ?? server.close ?? server[Symbol.asyncDispose])?.()
      }
    },
    120_000,
  )
}
