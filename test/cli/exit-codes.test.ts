import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exits } from '../../src/core/base/errors.ts'
import { admin, startServe } from '../support/program/serve-command.ts'
import type { Serving } from '../support/program/serving.ts'
import { type Home, type Ran, svcHome } from '../support/program/svc.ts'
import { type HealthServer, healthServer } from '../support/simulated/health-answers.ts'
import { isQuick } from '../support/suite/tier.ts'

/**
 * Every exit code once, at a real `svc serve` where there is one in the name: in this process, and in the slow tier by the
 * built program, with the codes that only a process can have.
 */

let home: Home
let serve: Serving
/** Beside `svc serve`: what it monitors, and the answers that it never gives. */
let peer: HealthServer
let keys: { readonly ann: string; readonly bob: string }

beforeAll(async () => {
  home = svcHome()
  peer = await healthServer()
  const { port } = new URL(peer.url('healthy'))
  const yaml = `types:
  App:
    host: false
    monitors:
      - {kind: tcp, name: shop, host: 127.0.0.1, port: ${port}}
  Batch:
    host: false
    monitors:
      - {kind: tcp, name: worker, host: 127.0.0.1, port: 1}
  Ftp:
    host: false
    monitors:
      - {kind: http, name: silent, url: '${peer.url('silent')}'}
`
  serve = await startServe(home, yaml)
  const store = ['--store', join(home.folder, 'server/svc.db')]
  await done(['users', 'add', 'Bob', '--password-stdin', ...store], 'quiet-meadow-17')
  const key = async (user: string): Promise<string> => {
    const { stdout } = await done(['keys', 'create', `key of ${user}`, '--user', user, '--json', ...store])
    const { keys } = JSON.parse(stdout) as { readonly keys: readonly { readonly key: string }[] }
    return keys[0]?.key ?? ''
  }
  keys = { ann: await key(admin.userName), bob: await key('Bob') }
  writeFileSync(join(home.folder, 'roles.csv'), 'UserName,Roles\nBob,Ops\nNobody,Ops\n')
})
afterAll(async () => {
  await serve?.[Symbol.asyncDispose]()
  peer?.close()
  home?.remove()
})

async function done(args: readonly string[], stdin = ''): Promise<Ran> {
  const ran = await home.run(args, { stdin })
  if (ran.code !== 0) throw new Error(`svc ${args.join(' ')} exits with ${ran.code}: ${ran.stderr}`)
  return ran
}

const health = (type: string, ...more: readonly string[]): readonly string[] => [
  ...['health', '-m', 'Basic', '-t', type, '--server', serve.url],
  ...more,
]
const assign = (user: string): readonly string[] => ['roles', 'assign', user, '--role', 'Ops', '--server', serve.url]

/** Sends the signal once `svc serve` runs the monitor that never ends. */
async function interrupted(signal: NodeJS.Signals): Promise<number | null> {
  const requests = peer.request()
  const child = spawn(process.execPath, [home.program, ...health('Ftp')], { env: home.env, stdio: 'ignore' })
  const closed = once(child, 'close')
  await requests
  child.kill(signal)
  const [code] = (await closed) as [number | null]
  return code
}

type Case = { readonly code: number; readonly what: string; readonly run: () => Promise<number | null> }

const ran = async (args: readonly string[], more: Parameters<Home['svc']>[1] = {}): Promise<number | null> =>
  (await (isQuick() ? home.run : home.svc)(args, more)).code

const thrown = "setTimeout(() => { throw new TypeError('planted') }, 300)"

const every: readonly Case[] = [
  { code: 0, what: 'a healthy type at svc serve', run: () => ran(health('App')) },
  {
    code: 1,
    what: 'an unexpected exception (simulated)',
    run: () =>
      ran(['health', '-t', 'App', '--server', peer.url('silent')], {
        env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(thrown)}` },
      }),
  },
  { code: 2, what: 'an unknown value of a flag', run: () => ran(['health', '-t', 'Sqll']) },
  { code: 3, what: 'an unhealthy type at svc serve', run: () => ran(health('Batch')) },
  { code: 4, what: 'a role assignment at svc serve without a sign-in', run: () => ran(assign('Bob')) },
  {
    code: 5,
    what: 'a role assignment at svc serve by a user who is not an Admin',
    run: () => ran(assign('Bob'), { env: { SVC_TOKEN: keys.bob } }),
  },
  {
    code: 6,
    what: 'a server that is not there',
    run: () => ran(['health', '-t', 'App', '--server', 'http://127.0.0.1:1']),
  },
  { code: 7, what: 'a run at svc serve that takes too long', run: () => ran(health('Ftp', '--timeout', '500ms')) },
  {
    code: 8,
    what: 'an answer that cannot be read (simulated)',
    run: () => ran(['health', '-t', 'App', '--server', peer.url('unreadable')]),
  },
  {
    code: 9,
    what: 'a role assignment at svc serve to an unknown user',
    run: () => ran(assign('Nobody'), { env: { SVC_TOKEN: keys.ann } }),
  },
  {
    code: 10,
    what: 'a file of role changes of which svc serve refuses one',
    run: () =>
      ran(['roles', 'assign', '--from-file', join(home.folder, 'roles.csv'), '--server', serve.url], {
        env: { SVC_TOKEN: keys.ann },
      }),
  },
  {
    code: 11,
    what: 'a sign-in at svc serve without a keychain',
    run: () =>
      ran(['login', '--server', serve.url, '-u', admin.userName, '--password-stdin'], { stdin: admin.password }),
  },
  { code: 12, what: 'a svc.yaml that does not exist', run: () => ran(['health', '--config', '/nowhere/svc.yaml']) },
  { code: 130, what: 'SIGINT during a run at svc serve', run: () => interrupted('SIGINT') },
  { code: 143, what: 'SIGTERM during a run at svc serve', run: () => interrupted('SIGTERM') },
]

const ofProcess = [1, 130, 143]
const cases = isQuick() ? every.filter(({ code }) => !ofProcess.includes(code)) : every

describe('exit code', () => {
  test.each(cases)('$code is $what', async ({ code, run }) => {
    expect(await run()).toBe(code)
  })

  test('each documented exit code is one of these', () => {
    const documented = Object.values(exits).map(({ code }) => code as number)
    expect(every.map(({ code }) => code)).toEqual([...documented, 143])
  })
})
