import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Outstanding, waitingText } from '../../src/cli/health/outstanding.ts'
import { width } from '../../src/cli/render/width.ts'
import { main } from '../../src/main.ts'
import { capturedIo } from '../support/program/captured-io.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'

const home = temporaryHome()

/** Runs svc on a terminal whose clock is 20 times as fast, so that the first second is over when progress begins. */
function onFastTerminal(args: readonly string[], env: Readonly<Record<string, string>> = {}, columns = 80) {
  const captured = capturedIo({
    env: { ...home.env, ...env },
    columns,
    clock: { elapsed: () => performance.now() * 20, pause: (ms) => setTimeout(ms / 20) },
  })
  return { ...captured, ended: main(captured.io, args) }
}

/** Two monitors that answer, one that answers when `release` is called, and one that nothing listens for. */
async function withSlowQueue(use: (release: () => void) => Promise<void>): Promise<void> {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const server = await httpPeer(async (request, response) => {
    if (request.url === '/queue') await released
    response.end('ready')
  })
  const monitors = ['shop', 'queue', 'mail'].map((name) => `{kind: http, name: ${name}, url: ${server.origin}/${name}}`)
  const yaml = `types:\n  App: {host: false, monitors: [${monitors.join(', ')}]}\n`
  writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
  try {
    await use(release)
  } finally {
    release()
    await server[Symbol.asyncDispose]()
  }
}

async function until(isTrue: () => boolean): Promise<void> {
  await expect.poll(isTrue, { interval: 10 }).toBe(true)
}

describe('progress of svc health on a terminal', () => {
  test('K14 names the monitor that is out, and the line is gone at the end', async () => {
    await withSlowQueue(async (release) => {
      const { stdout, stderr, ended } = onFastTerminal(['health', '-m', 'Basic'])
      await until(() =>
        /\rwaiting for http queue \(2 of 3 done\) … [\d.]+ s$/.test(stderr().replaceAll('\u001b[2K', '')),
      )
      release()
      await ended
      expect(stderr()).toMatch(/\r\u001b\[2K(?!.*waiting)/s)
      expect(stdout()).toContain('✓ HEALTHY')
    })
  })

  test('K14 names it without the count on a narrow terminal', async () => {
    await withSlowQueue(async (release) => {
      const { stderr, ended } = onFastTerminal(['health', '-m', 'Basic'], {}, 40)
      await until(() => /waiting for http queue … [\d.]+ s$/.test(stderr()))
      release()
      await ended
      const lines = stderr()
        .replaceAll('\u001b[2K', '')
        .split(/[\r\n]/)
      for (const line of lines.filter((each) => each.includes('waiting'))) expect(width(line)).toBeLessThan(40)
    })
  })

  test('K14 names what the next attempt of --wait waits for', async () => {
    await withSlowQueue(async (release) => {
      const file = join(home.folder, 'closed.yaml')
      const slow = /http:\S+\/queue/.exec(readFileSync(join(home.folder, 'svc.yaml'), 'utf8'))?.[0] ?? ''
      const worker = '{kind: tcp, name: worker, host: 127.0.0.1, port: 1}'
      // Each attempt ends at the time limit of its monitor, until the queue answers.
      const yaml = `types:\n  App: {host: false, monitors: [${worker}, {kind: http, name: queue, url: ${slow}, timeout: 600ms}]}\n`
      writeFileSync(file, yaml, { mode: 0o600 })
      const { stderr, ended } = onFastTerminal(['health', '-m', 'Basic', '--config', file, '--wait', '2m'])
      await until(() => /Attempt \d: waiting for http queue \(1 of 2 done, 1 failed\)/.test(stderr()))
      release()
      await ended
      expect(stderr()).toMatch(/Attempt 1, [\d.]+ (?:s|min) left: /)
    })
  })

  test('K14 names the types that are out at a server (simulated), which says nothing about its monitors', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const answer = { Status: 'Success', MonitorSummaries: [{ MonitorName: 'm', Status: 'Success', Results: [] }] }
    await using server = await httpPeer(async (request, response) => {
      if (request.url?.includes('ServerType=Sql')) await released
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer))
    })
    const { stderr, ended } = onFastTerminal(['health', '-t', 'App,Sql,Ftp', '--server', server.origin])
    try {
      await until(() => stderr().includes('waiting for Sql (2 of 3 types done)'))
    } finally {
      release()
      await ended
    }
  })

  test('K14 a line that does not move, a pipe and CI get no names', async () => {
    for (const [env, columns] of [
      [{ ACCESSIBLE: '1' }, 80],
      [{}, undefined],
      [{ CI: 'true' }, 80],
    ] as const) {
      const isStill = 'ACCESSIBLE' in env
      await withSlowQueue(async (release) => {
        // The line is drawn within the first second of this clock, however slow the machine is, and would be drawn again after it.
        const elapsed = (): number => (isStill && !isDrawn() ? 0 : 60_000 + performance.now())
        const captured = capturedIo({
          env: { ...home.env, ...env },
          ...(columns === undefined ? {} : { columns }),
          clock: { elapsed },
        })
        const isDrawn = (): boolean => captured.stderr().includes('Checking this machine')
        const ended = main(captured.io, ['health', '-m', 'Basic'])
        if (isStill) await until(isDrawn)
        await setTimeout(600)
        release()
        await ended
        expect(captured.stderr()).not.toContain('waiting')
        expect(isDrawn()).toBe(isStill)
      })
    }
  })
})

describe('what a check waits for', () => {
  const monitor = (name: string, host = false) => ({ name, host })

  test('K14 counts the host once and the monitors of all types, from the first second on', () => {
    let now = 0
    const outstanding = new Outstanding({ clock: { elapsed: () => now }, stderr: { unicode: true } })
    expect(outstanding.waiting).toBeUndefined()
    outstanding.begin(['App', 'Sql'])
    const [queue, shop, ownHost, otherHost] = [
      monitor('redis queue'),
      monitor('http shop'),
      monitor('host', true),
      monitor('host', true),
    ]
    const pending = new Set([queue, ownHost])
    outstanding.run('App', { monitors: [ownHost, queue, shop], pending })
    outstanding.run('Sql', { monitors: [otherHost, monitor('postgres orders')], pending: new Set([otherHost]) })
    now = 999
    expect(outstanding.waiting).toBeUndefined()
    now = 1_000
    expect(outstanding.waiting).toEqual({ names: ['host', 'redis queue'], total: 4 })
    pending.delete(ownHost)
    expect(outstanding.waiting?.names).toEqual(['host', 'redis queue'])
    outstanding.run('Sql', { monitors: [otherHost], pending: new Set() })
    pending.clear()
    expect(outstanding.waiting).toBeUndefined()
  })

  test('K14 one type at a server has nothing to name, and a new attempt begins anew', () => {
    let now = 0
    const outstanding = new Outstanding({ clock: { elapsed: () => now }, stderr: { unicode: true } })
    outstanding.begin(['App'])
    now = 5_000
    expect(outstanding.waiting).toBeUndefined()
    outstanding.begin(['App', 'Sql'])
    expect(outstanding.waiting).toBeUndefined()
    now = 6_000
    outstanding.end('App')
    expect(outstanding.waiting).toEqual({ names: ['Sql'], total: 2, unit: 'types' })
  })

  test.each([
    [['redis queue'], 8, 70, 'waiting for redis queue (7 of 8 done)'],
    [['redis queue', 'http a', 'http b'], 8, 70, 'waiting for redis queue, http a, http b (5 of 8 done)'],
    [['redis queue', 'http a', 'http b', 'http c'], 8, 50, 'waiting for redis queue and 3 more (4 of 8 done)'],
    [['redis queue', 'http a', 'http b', 'http c'], 8, 45, 'waiting for redis queue'],
    [['http a-very-long-name-of-a-shop'], 8, 45, 'waiting for http a-very-long-n… (7 of 8 done)'],
    [['a\u001b[31mb'], 8, 70, 'waiting for ab (7 of 8 done)'],
    [['管理画面の応答がありません'], 8, 41, 'waiting for 管理画面の応答… (7 of 8 done)'],
    [['管理画面の応答がありません'], 8, 30, 'waiting for 管理画面の応答が…'],
  ])('K14 %j of %i in %i columns is %s', (names, total, columns, text) => {
    const progress = waitingText({ names, total }, columns, '…')
    expect(progress).toBe(text)
    expect(width(progress)).toBeLessThanOrEqual(columns)
  })

  test('K14 says how many of those that ended failed; the host counts once, and what was not checked does not', () => {
    let now = 0
    const outstanding = new Outstanding({ clock: { elapsed: () => now }, stderr: { unicode: true } })
    const [queue, shop] = [monitor('redis queue'), monitor('http shop')]
    const report = (name: string, status: 'ok' | 'failed', host = false, notChecked?: string) => ({
      name,
      host,
      results: [{ status, notChecked }],
    })
    outstanding.begin(['App', 'Sql'])
    outstanding.run('App', { monitors: [queue, shop], pending: new Set([queue]) })
    now = 1_000
    outstanding.report('App', report('http shop', 'ok'))
    outstanding.report('App', report('http late', 'failed', false, 'cut short'))
    expect(outstanding.waiting).not.toHaveProperty('failed')
    outstanding.report('App', report('host', 'failed', true))
    outstanding.report('Sql', report('host', 'failed', true))
    outstanding.report('Sql', report('http shop', 'failed'))
    expect(outstanding.waiting).toMatchObject({ failed: 2 })
    outstanding.begin(['App'])
    expect(outstanding.waiting).toBeUndefined()
    expect(waitingText({ names: ['redis queue'], total: 8, failed: 2 }, 70, '…')).toBe(
      'waiting for redis queue (7 of 8 done, 2 failed)',
    )
  })
})
