import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Ran } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { farMs } from '../support/suite/until.ts'

test('W9 svc serve on a terminal puts a change of svc.yaml into force by itself, waits for the correction of a mistake, and takes svc serve reload for what it must not decide', {
  timeout: farMs,
}, async () => {
  const home = temporaryHome()
  const tcp = (name: string): string => `{kind: tcp, name: ${name}, host: 127.0.0.1, port: 9}`
  const put = (monitors: string): void =>
    writeFileSync(join(home.folder, 'svc.yaml'), `serve: {every: off}\ntypes: {App: [${monitors}]}\n`, { mode: 0o600 })
  put(tcp('one'))
  let reload: Promise<Ran> | undefined
  /** Lines of the log, and the answer to each, in their order. */
  const steps: readonly (readonly [string, () => void])[] = [
    ['listens on', () => put(`${tcp('one')}, ${tcp('two')}`)],
    ['reloaded: 1 added, 0 removed, 0 changed', () => put(`${tcp('one')}, ${tcp('two').replace('port', 'prot')}`)],
    ['svc.yaml:2:', () => put(`${tcp('one')}, ${tcp('three')}, ${tcp('two')}`)],
    ['reloaded: 1 added, 0 removed, 0 changed', () => put(tcp('one'))],
    [
      'it removes 2 of 3 monitors',
      () => {
        reload = home.run(['serve', 'reload'], { columns: 100 })
      },
    ],
  ]
  let at = 0
  let from = 0
  const ran = await home.terminal(['serve', '--port', '0'], (screen) => {
    const [line, answer] = steps[at] ?? ['reloaded: 0 added, 2 removed', undefined]
    const place = screen.indexOf(line, from)
    if (place < 0) return undefined
    from = place + line.length
    at += 1
    answer?.()
    return answer ? undefined : { signal: 'SIGINT' }
  })
  expect(ran.code).toBe(0)
  expect(ran.stdout).toContain('the configuration has changed and waits; the previous one remains active')
  const { code, stdout } = (await reload) ?? { code: undefined, stdout: '' }
  expect(code).toBe(0)
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain('0 added, 2 removed, 0 changed')
})

test('W9 with serve.watchConfig: false, and with --only health, no change of svc.yaml is put into force by itself', {
  timeout: farMs,
}, async () => {
  const outcomeOf = async (args: readonly string[], serve: string): Promise<string> => {
    const home = temporaryHome()
    const put = (port: number): void =>
      writeFileSync(
        join(home.folder, 'svc.yaml'),
        `serve: ${serve}\ntypes: {App: [{kind: tcp, host: 127.0.0.1, port: ${port}}]}\n`,
        { mode: 0o600 },
      )
    put(9)
    let end: NodeJS.Timeout | undefined
    const { stdout } = await home.terminal(['serve', '--port', '0', ...args], (screen) => {
      if (screen.includes('listens on') && !end) {
        put(10)
        // Twice as long as a change takes that is put into force.
        end = setTimeout(() => void home.run(['serve', 'reload']), 15_000)
      }
      return screen.includes('reloaded: ') ? { signal: 'SIGINT' } : undefined
    })
    return stdout
  }
  const screens = await Promise.all([
    outcomeOf([], '{every: off, watchConfig: false}'),
    outcomeOf(['--only', 'health'], '{every: off}'),
  ])
  for (const screen of screens) {
    expect(screen.match(/reloaded: |and waits/g)).toEqual(['reloaded: '])
    expect(screen).toContain('reloaded: 0 added, 0 removed, 1 changed')
  }
})
