import { describe, expect, test } from 'vitest'
import type { RunDocument, ServerType } from '../../src/core/protocol/index.ts'
import type { Incidents, RecentRun, Runtime } from '../../src/core/protocol/service/service.ts'
import { boardMarkup } from '../../src/core/server/pages/board-markup.ts'
import { cardsOf } from '../../src/core/server/pages/cards.ts'
import { boardFacts, runtimeFacts } from '../support/page/facts.ts'
import { recentRun } from './recent.ts'
import { ask, withSite } from './site.ts'

const at = new Date('2026-03-01T03:00:00.000Z')
const run = (type: ServerType, status: 'ok' | 'failed', more: Partial<RecentRun> = {}): RecentRun => {
  const document: RunDocument = {
    ...{ version: 1, type, mode: 'Basic', view: 'full', status, message: `${type} is ${status}` },
    ...{ startedAt: at, endedAt: at, durationMs: 15 },
    monitors: [{ name: 'tcp one', kind: 'tcp', status, results: [{ check: 'connect', status, message: 'refused' }] }],
  }
  return recentRun(document, 3, more)
}
const none: Incidents = { open: [], hidden: 0, ended: [], isIsolated: undefined }
const textOf = (page: string): string =>
  page
    .replace(/<style>.*?<\/style>/s, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
const types = ['Sql', 'App'] as const

function board(
  runs: readonly RecentRun[],
  { incidents = none, only }: { incidents?: Incidents; only?: ServerType[] } = {},
) {
  const facts = boardFacts({ user: 'ann', types: only, incidents, at })
  const { markup, refresh } = boardMarkup(cardsOf(types, runs, 'http://svc'), facts)
  return { text: textOf(markup), level: /<header class="(\w+)">/.exec(markup)?.[1], refresh }
}

describe('W25 the board', () => {
  test('W25 is green only if each of its types has a result that counts for each monitor', () => {
    const both = [run('Sql', 'ok'), run('App', 'ok')]
    expect(board(both)).toMatchObject({ level: 'ok', refresh: '10' })
    expect(board([run('Sql', 'ok')]).level).toBe('unchecked')
    expect(board([run('Sql', 'ok')], { only: ['Sql'] }).level).toBe('ok')
    expect(board([run('Sql', 'ok'), run('App', 'ok', { complete: false })])).toMatchObject({ level: 'unchecked' })
    const old = board([run('Sql', 'ok'), run('App', 'ok', { expired: true })])
    expect(old.level).toBe('unchecked')
    expect(old.text).toContain('The last results are too old to count')
    expect(board([]).level).toBe('none')
    expect(board([]).text).toContain('? Sql: not checked yet')
  })

  test('W25 shows the incidents of its types, and others whose victims are of its types', () => {
    const fault = {
      check: 'connect',
      level: 'failed',
      certainty: 'confirmed',
      since: at.getTime(),
      message: 'refused',
      isFlapping: false,
      isUnobserved: false,
    } as const
    const incidents: Incidents = {
      ...none,
      open: [
        {
          type: 'Sql',
          monitor: 'tcp cause',
          faults: [fault],
          victims: [{ type: 'App', monitor: 'http shop', since: 1 }],
          hiddenVictims: 0,
        },
        { type: 'Sql', monitor: 'tcp other', faults: [fault], victims: [], hiddenVictims: 0 },
      ],
    }
    const runs = [run('Sql', 'failed'), run('App', 'failed')]
    expect(board(runs, { incidents }).text).toMatch(/2 monitors have failed .* Sql tcp cause .* Sql tcp other/)
    const { text } = board(runs, { incidents, only: ['App'] })
    expect(text).toContain('Sql tcp cause has failed since 03:00:00 UTC')
    expect(text).not.toContain('other')
  })

  test('W25 says how many of its monitors are healthy, and nothing before it knows of one', () => {
    const runs = [run('Sql', 'failed'), run('App', 'ok')]
    expect(board(runs).text).toContain('1 of 2 monitors healthy · as of 03:00:00 UTC')
    expect(board(runs, { only: ['App'] }).text).toContain('App · 1 of 1 monitor healthy · as of')
    expect(board([]).text).not.toContain('healthy ·')
  })

  test('W25 the number of incidents on it is bounded, and the rest is counted', () => {
    const open = Array.from({ length: 500 }, (_, index) => ({
      ...{ type: 'Sql' as const, monitor: `tcp m${index}`, victims: [], hiddenVictims: 0 },
      faults: [
        {
          check: 'connect',
          level: 'failed',
          certainty: 'confirmed',
          since: 1,
          message: 'x'.repeat(4_000),
          isFlapping: false,
          isUnobserved: false,
        } as const,
      ],
    }))
    const { text } = board([run('Sql', 'failed')], { incidents: { ...none, open } })
    expect(text).toContain('500 monitors have failed')
    expect(text).toContain('and 496 more with incidents')
    expect(text.length).toBeLessThan(2_500)
  })

  test('W25 a type that is not checked here is an error, and never a green board', async () => {
    const runtime: Partial<Runtime> = {
      facts: runtimeFacts({ types: ['Sql', 'App'], ownTypes: [] }),
      recent: async () => [run('Sql', 'ok'), run('App', 'ok')],
    }
    await withSite({ runtime }, async ({ port, calls }) => {
      for (const query of ['type=Mongo', 'type=Sql&type=Nothing', 'type=Sql,%3Cscript%3E']) {
        const got = await ask(port, `/board?${query}`)
        expect([got.status, got.headers['content-type']]).toEqual([400, 'text/html; charset=utf-8'])
        expect(textOf(got.text)).toContain('names a type that is not checked here. This server checks Sql, App.')
        expect(got.text).not.toContain('<script')
      }
      for (const query of ['type=sql', 'type=Sql,App', 'type=', '']) {
        const got = await ask(port, `/board?${query}`)
        expect([got.status, got.headers.refresh]).toEqual([200, '10'])
        expect(got.text).toContain('<header class="ok">')
      }
      expect(calls).toEqual([])
    })
  })
})
