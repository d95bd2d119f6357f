import { chmodSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Config } from '../../../src/core/config/index.ts'
import { loadConfig } from '../../../src/core/config/index.ts'
import { notifyPart } from '../../../src/core/service/notify/notify.ts'
import { SilenceKeeper } from '../../../src/core/service/silences/silence-keeper.ts'
import { statesPart } from '../../../src/core/service/watch/states.ts'
import { faultOf, file, folder, here, load, problemsOf, refused } from '../../config/given.ts'
import { neverWatching, notice, opened, openedProgram as program, signal } from '../../support/notify/notice.ts'
import { outboxRows } from '../../support/notify/outbox-rows.ts'

describe('a program as a receiver', () => {
  test('M13 gets the body of a webhook on standard input, and nothing of it in arguments or environment', async () => {
    process.env['SVC_TEST_PLANTED'] = 'planted-7'
    const { receiver, allowed } = await program(
      'here=$(dirname "$0"); cat > $here/body; echo "$@" > $here/args; env > $here/env',
      '[ops, "", "a b"]',
    )
    expect(await receiver.send([notice()], signal())).toEqual({ what: 'accepted' })
    const read = (name: string): string => readFileSync(join(allowed, name), 'utf8')
    expect(JSON.parse(read('body'))).toMatchObject({
      version: '4',
      receiver: 'sms',
      status: 'firing',
      alerts: [{ labels: { alertname: 'SvcFailed', monitor: 'postgres orders' } }],
    })
    expect(read('args')).toBe('ops  a b\n')
    expect(read('env')).toMatch(/^PATH=\/usr\/bin:/m)
    expect(read('env')).not.toMatch(/planted-7|postgres orders/)
  })

  test('M13 any exit code but 0 means later, with the output in at most 300 characters', async () => {
    const { receiver } = await program('head -c 100000 /dev/zero | tr "\\0" x; echo "no credit left" >&2; exit 3')
    const delivery = await receiver.send([notice()], signal())
    expect(delivery).toMatchObject({ what: 'later', isPerhapsReceived: true, fault: 'protocol' })
    expect(JSON.stringify(delivery)).toContain('exited with 3: \\"no credit left\\"')
    const loud = await program('head -c 100000 /dev/zero | tr "\\0" x; exit 1')
    const { message } = (await loud.receiver.send([notice()], signal())) as { readonly message: string }
    expect(message.length).toBeLessThan(500)
  })

  test('M13 a program that reads nothing is judged by its exit code', async () => {
    const many = Array.from({ length: 1_000 }, (_, at) => notice({ id: `n${at}`, text: 'x'.repeat(900) }))
    const { receiver } = await program('exec 0<&-; exit 0')
    expect(await receiver.send(many, signal())).toEqual({ what: 'accepted' })
  })

  test('M13 only programs in allowed folders that nobody else can change run', async () => {
    const { path } = await program('exit 0')
    const other = await opened(`{name: sms, exec: {program: "${path}"}}`, { programs: { allow: ['/usr/lib/svc'] } })
    expect(await other.receiver.send([notice()], signal())).toMatchObject({
      what: 'refused',
      message: expect.stringContaining("is in no folder that the system's svc.yaml allows: /usr/lib/svc"),
    })
    const off = await opened(`{name: sms, exec: {program: "${path}"}}`)
    expect(await off.receiver.send([notice()], signal())).toMatchObject({
      what: 'refused',
      message: expect.stringContaining('exec is off'),
    })
    const { receiver, path: loose } = await program('exit 0')
    chmodSync(loose, 0o777)
    expect(await receiver.send([notice()], signal())).toMatchObject({
      what: 'refused',
      message: expect.stringContaining('can be written by others'),
    })
  })

  test('M13 a relative path is a mistake', async () => {
    const fault = await refused('notify:\n  - {name: sms, exec: {program: bin/sms}}')
    expect(problemsOf(fault).join('\n')).toContain('must be an absolute path, like /usr/local/lib/svc/sms')
  })

  test('M13 svc.yaml names the receiver whose program cannot run, and svc serve neither starts nor reloads with it', async () => {
    const home = await folder()
    const systemFolder = join(home, 'etc')
    mkdirSync(systemFolder, { mode: 0o755 })
    const yaml =
      'notify:\n  - {name: chat, webhook: {url: "https://a.example"}}\n  - {name: sms, exec: {program: /usr/local/lib/svc/sms}}\n'
    const path = await file(join(home, 'svc.yaml'), yaml)
    const loaded = await loadConfig({ ...here({}, home), systemFolder, path })
    expect(loaded.cannotRun).toEqual([
      expect.objectContaining({
        line: 3,
        message: expect.stringContaining('cannot run `receiver sms`: running programs is off'),
      }),
    ])
    const start = async (config: Config) => {
      const rows = async () => outboxRows()
      const silences = new SilenceKeeper({ config, store: undefined, now: Date.now })
      return notifyPart({ config, version: '0', rows, states: statesPart(), silences, watching: neverWatching })
    }
    const fault = await faultOf((async () => await (await start(loaded)).open?.())())
    expect(fault.message).toContain('The receiver sms cannot run its program')
    const part = await start(await load('notify: [{name: chat, webhook: {url: "https://a.example"}}]'))
    expect((await faultOf((async () => await part.reload?.(loaded))())).message).toContain('sms')
  })
})
