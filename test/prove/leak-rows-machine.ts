import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openData } from '../../src/core/store/index.ts'
import { eximMissing } from '../support/servers/exim.ts'
import { findProgram, remove } from '../support/servers/server.ts'
import { datagrams, nameAnswer, timeAnswer } from './leak-datagrams.ts'
import { type Row, refusedAt, run, shortly, well } from './leak-row.ts'

const folderOf = (name: string): string => mkdtempSync(join(tmpdir(), `svc-${name}-`))
const wide = { atOnce: 32 } as const
const deep = { modes: ['Standard', 'Advanced'] } as const
let marks = 0
/** A command that ends by itself in years only, and what is left of all that it was run. */
function lasting(): { readonly command: string; readonly left: () => readonly string[] } {
  marks += 1
  const command = `sleep ${process.pid}${marks}000`
  const left = (): readonly string[] =>
    readdirSync('/proc').flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').trim()
        return line === command ? [`${pid}: ${line}`] : []
      } catch {
        return []
      }
    })
  return { command, left }
}

const systemd = '/run/systemd/system'
const systemctl = '/usr/bin/systemctl'
const unshare = '/usr/bin/unshare'
/** Where systemd does not run, the runner gets a machine of its own on which a program answers as systemctl does. */
const serviceMissing = (): string | undefined => {
  if (existsSync(systemd)) return undefined
  const able = existsSync(systemctl) && spawnSync(unshare, ['-m', 'true']).status === 0
  return able ? undefined : 'neither systemd runs here, nor can unshare and systemctl stand in for it'
}
const answering = (hanging: string): string => `#!/bin/sh
case "$*" in
  *hanging*) ${hanging} & wait ;;
  *absent*) echo LoadState=not-found; echo ActiveState=inactive; echo SubState=dead ;;
  *garbage*) echo 'what is a service' ;;
  *) printf 'LoadState=loaded\\nActiveState=active\\nSubState=running\\nNRestarts=0\\nMainPID=1\\nActiveEnterTimestampMonotonic=1\\n' ;;
esac
`

/** Kinds that look at this machine, at files, at programs or at names. */
export const machineRows = {
  host: {
    missing: undefined,
    cost: 'dear',
    start: async () => {
      const sound = await datagrams(timeAnswer)
      const silent = await datagrams(() => undefined)
      // Whether this machine is in order is not the question.
      const off = { disk: 'off', inodes: 'off', memory: 'off', cpu: 'off', load: 'off', fileDescriptors: 'off' }
      const with_ = (port: number) => ({ ...off, clock: { reference: `127.0.0.1:${port}`, offset: 'off' } })
      return {
        cases: [
          well(with_(sound.port), wide),
          run('refused', ['refused', 'timeout'], with_(refusedAt), { ...deep, ...wide }),
          run('black hole', ['timeout'], { ...with_(silent.port), timeout: '800ms' }, { ...deep, ...wide }),
          run('cut by the deadline', ['timeout'], { ...with_(sound.port), timeout: shortly }, { ...deep, ...wide }),
        ],
        left: () => [],
        stop: async () => {
          sound.close()
          silent.close()
        },
      }
    },
  },
  dns: {
    missing: undefined,
    cost: 'cheap',
    // Code that V8 compiles in the first runs: after 2,000 runs there are fewer objects than at first.
    hoards: 200,
    start: async () => {
      const sound = await datagrams((request) => nameAnswer(request))
      const silent = await datagrams(() => undefined)
      const cutting = await datagrams((request) => nameAnswer(request, true))
      const settings = (port: number) => ({
        query: 'db.example.test',
        server: `127.0.0.1:${port}`,
        expect: ['10.0.0.5'],
      })
      return {
        cases: [
          well(settings(sound.port)),
          run('refused', 'fails', settings(refusedAt), { atOnce: 16 }),
          run('black hole', ['timeout'], { ...settings(silent.port), timeout: shortly }, { atOnce: 16 }),
          run('hang-up', 'fails', { ...settings(cutting.port), timeout: shortly }, { atOnce: 16 }),
        ],
        left: () => [],
        stop: async () => {
          for (const server of [sound, silent, cutting]) server.close()
        },
      }
    },
  },
  process: {
    missing: undefined,
    cost: 'dear',
    start: async () => {
      const folder = folderOf('process')
      const child = spawn('sleep', ['600'], { stdio: 'ignore' })
      const pidFile = join(folder, 'pid')
      writeFileSync(pidFile, `${child.pid}\n`)
      writeFileSync(join(folder, 'none'), '4194303\n')
      return {
        cases: [
          well({ pidFile, memory: '1GiB', cpu: 'off' }),
          well({ pidFile, cpu: { limit: '10000%' } }, { ...deep, ...wide }),
          run('not running', 'fails', { pidFile: join(folder, 'none') }),
          run('no file', 'fails', { pidFile: join(folder, 'absent') }),
          run(
            'cut by the deadline',
            ['timeout'],
            { pidFile, cpu: { limit: '10000%' }, timeout: shortly },
            { ...deep, ...wide },
          ),
        ],
        left: () => [],
        stop: async () => {
          child.kill('SIGKILL')
          remove(folder)
        },
      }
    },
  },
  exec: {
    missing: undefined,
    cost: 'dear',
    start: async () => {
      const folder = folderOf('exec')
      const sleep = lasting()
      const program = (name: string, text: string): { readonly command: string } => {
        writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
        return { command: join(folder, name) }
      }
      return {
        allow: [folder],
        cases: [
          well(program('well', 'echo all is well')),
          well(program('leaves', `${sleep.command} & echo well; exit 0`), wide),
          run('failing', ['threshold'], program('failing', 'echo not well; exit 2')),
          run('killed', ['protocol'], program('killed', 'kill -9 $$')),
          run(
            'hanging',
            ['timeout'],
            { ...program('hanging', `${sleep.command} & ${sleep.command}`), timeout: shortly },
            wide,
          ),
          run('not there', ['data'], { command: join(folder, 'absent') }),
          run('outside', ['data'], { command: '/bin/true' }),
        ],
        left: sleep.left,
        stop: async () => remove(folder),
      }
    },
  },
  service: {
    missing: serviceMissing(),
    simulated: existsSync(systemd) ? undefined : 'systemctl',
    cost: 'dear',
    start: async () => {
      const folder = folderOf('service')
      const sleep = lasting()
      const program = join(folder, 'systemctl')
      writeFileSync(program, answering(sleep.command), { mode: 0o755 })
      const line = `mount -t tmpfs tmpfs /run && mkdir -p ${systemd} && mount --bind ${program} ${systemctl} && exec "$0" "$@"`
      const real = existsSync(systemd)
      return {
        within: real ? undefined : [unshare, '-m', 'sh', '-c', line],
        cases: [
          well({ service: 'systemd-journald' }),
          run('not there', ['data'], { service: 'svc-absent' }),
          ...(real
            ? []
            : [
                run('garbage', ['protocol'], { service: 'garbage' }),
                run('hanging', ['timeout'], { service: 'hanging', timeout: shortly }, wide),
              ]),
        ],
        left: sleep.left,
        stop: async () => remove(folder),
      }
    },
  },
  'file-age': {
    missing: undefined,
    cost: 'dear',
    start: async () => {
      const folder = folderOf('file-age')
      for (const name of ['a.xml', 'b.xml']) writeFileSync(join(folder, name), name)
      const many = folderOf('file-age-many')
      for (let n = 0; n < 5_000; n += 1) writeFileSync(join(many, `${n}.xml`), '')
      return {
        cases: [
          well({ path: folder, files: { limit: 10 }, age: { limit: '1d', warn: '1d' } }, { atOnce: 4 }),
          run('not there', ['data'], { path: join(folder, 'absent') }, { atOnce: 4 }),
          run(
            'cut by the deadline',
            ['timeout'],
            { path: many, timeout: '15ms' },
            { modes: ['Standard', 'Advanced'], atOnce: 4 },
          ),
        ],
        left: () => [],
        stop: async () => {
          remove(folder)
          remove(many)
        },
      }
    },
  },
  'mail-queue': {
    missing: eximMissing,
    cost: 'dear',
    start: async () => {
      const folder = folderOf('mail-queue')
      const sleep = lasting()
      const program = (name: string, text: string): void =>
        writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
      program('exim4', "echo ' 5m  1.2K 1uXyZ0-0001ab-2c <a@svc.test>'")
      program('postqueue', `${sleep.command}`)
      const line = `mount -t overlay overlay -o lowerdir=${folder}:/usr/sbin /usr/sbin && exec "$0" "$@"`
      return {
        within: [unshare, '-m', 'sh', '-c', line],
        cases: [
          well({ server: 'exim' }, deep),
          run('too long', ['threshold'], { server: 'exim', messages: { limit: 0 } }, deep),
          run('hanging', ['timeout'], { server: 'postfix', timeout: shortly }, { ...wide, ...deep }),
        ],
        left: sleep.left,
        stop: async () => remove(folder),
      }
    },
  },
  ping: {
    missing: findProgram('ping') === undefined ? 'the program ping is not installed' : undefined,
    cost: 'dear',
    start: async () => ({
      cases: [
        well({ host: '127.0.0.1', count: 1 }, { atOnce: 4 }),
        run('cut by the deadline', ['timeout'], { host: '127.0.0.1', count: 20, timeout: shortly }, { atOnce: 4 }),
      ],
      left: () => [],
      stop: async () => {},
    }),
  },
  heartbeat: {
    missing: undefined,
    cost: 'cheap',
    start: async () => {
      const folder = folderOf('heartbeat')
      const store = join(folder, 'store', 'svc.db')
      const data = await openData({ store, create: true })
      const heartbeat = {
        who: 'Hal',
        status: 'Ok',
        message: undefined,
        version: '1',
        backlog: 3,
        diskFreePercent: 50,
      } as const
      for (let agent = 0; agent < 20; agent += 1) {
        const age = agent === 7 ? 86_400_000 : 0
        const name = agent === 7 ? 'silent' : `agent-${agent}`
        await data.heartbeats.report({ ...heartbeat, name, at: Date.now() - age, intervalMs: 3_600_000, skewMs: 5 })
      }
      await data.close()
      return {
        store,
        cases: [
          well({ agents: ['agent-*'] }),
          well({ agents: ['agent-*'], schedule: '* * * * *' }),
          run('silent', 'fails', { agents: ['silent'] }),
          run('missing', 'fails', { agents: ['never'] }),
        ],
        left: () => [],
        stop: async () => remove(folder),
      }
    },
  },
} as const satisfies Record<string, Row>
