import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import { onTerminal } from '../../tools/pages/terminal.ts'
import { testCore, testServer } from '../support/engine/core.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

const password = 'violet-harbour-42'
const next = 'copper-lantern-77'

type Place = { readonly home: Home; readonly label: string }

/** A home whose store has the Admin ann. */
async function homeWithAnn(): Promise<Home> {
  const home = temporaryHome()
  const yaml = 'types:\n  Sql: [{kind: tcp, name: orders, host: 127.0.0.1, port: 9}]\n'
  writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
  const args = ['users', 'add', 'ann', '--role', 'Admin', '--password-stdin']
  expect(await home.run(args, { stdin: password })).toMatchObject({ code: 0 })
  return home
}

/** This machine, and a server with such a store where ann has signed in from a home of her own. */
async function bothPlaces(): Promise<{ readonly here: Place; readonly there: Place; readonly url: string }> {
  const [here, served] = [await homeWithAnn(), await homeWithAnn()]
  const config = await loadConfig({
    env: { SVC_HOME: served.folder },
    platform: process.platform,
    home: served.folder,
  })
  const { service, runtime } = await testCore({ config, store: join(served.folder, 'store', 'svc.db') })
  const server = await testServer({ service, runtime })
  onTestFinished(async () => {
    await server.stop()
    await runtime.close()
  })
  const client = temporaryHome()
  const login = ['login', '--server', server.url, '-u', 'ann', '--password-stdin', '--insecure-storage']
  expect(await client.run(login, { stdin: password })).toMatchObject({ code: 0 })
  const { url } = server
  return {
    here: { home: here, label: join(here.folder, 'store', 'svc.db') },
    there: { home: client, label: url },
    url,
  }
}

/** Without what differs from run to run: the place, times, ids and keys. */
const normal = (text: string, label: string): string =>
  text
    .replaceAll(`this machine · ${label}`, 'PLACE')
    .replaceAll(label, 'PLACE')
    // At a server, the monitors are those of its own svc.yaml.
    .replaceAll(/^Note: monitors of .*\n/gm, '')
    .replaceAll(/\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z| UTC)/g, 'TIME')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID')
    .replaceAll(/svc_[a-z]+_[\w-]{40,}/g, 'SECRET')
    .replaceAll(/\d+:[0-9a-f]{64}/g, 'HEAD')
    .replaceAll(/\b[0-9a-f]{16}\b/g, 'ID')
    .replaceAll('127.0.0.1', '')
    .replaceAll(/(\tbob\t)\d+/g, '$1N')
    .replaceAll(/local:[\w-]+|\bann\b/g, 'ADMIN')

/** Longer than any text that a request may have. */
const long = 'x'.repeat(1_025)
const story: readonly (readonly [args: string, code: number, stdin?: string])[] = [
  ['users add bob --password-stdin --role Ops --reason INC-1', 0, password],
  ['users add bob --no-password', 9],
  ['users add eve --password-stdin', 2, 'short'],
  ['users add -- -', 2, password],
  ['users show bob', 0],
  ['users show bobb', 9],
  ['roles assign bob --role Deploy --reason INC-1', 0],
  ['roles assign bobb --role Deploy', 9],
  ['roles show nobody', 9],
  ['sessions list --user bobb', 9],
  ['silence orders --for 99d --reason x', 9],
  ['ack Sql/* --for 1h --reason x', 9],
  ['drill --last', 9],
  ['roles holders Deploy', 0],
  ['roles holders deploy', 9],
  ['roles holders Deploy --at 2001-01-01', 12],
  ['roles holders Deploy --at 2999-01-01', 2],
  ['roles history bob', 0],
  ['roles history bobb', 9],
  ['keys create ci --user bob --role Ops --expires 90d', 0],
  ['keys create ci --user bob --role Nope', 9],
  ['keys list', 0],
  ['keys revoke cii', 9],
  ['keys revoke ci --reason leaked', 0],
  ['sessions list --user bob', 0],
  ['sessions end --all --user bob', 0],
  ['silence Sql/* --for 1h --reason INC-1', 0],
  ['silence Sql/nothing --for 1h --reason INC-1', 2],
  ['silence end nothing', 9],
  ['ack orders --for 1h --reason INC-1', 9],
  ['ack nothing --for 1h --reason INC-1', 9],
  ['users disable bob --reason leave', 0],
  ['users disable bob', 0],
  ['users enable bob', 0],
  ['users unlock bob --from nowhere', 2],
  ['users unlock bob --from 203.0.113.7', 0],
  ['users link bob --provider https://login.example.com --subject 7', 0],
  ['users link bob --provider https://login.example.com --subject 7', 0],
  ['users unlink bob --provider https://login.example.com', 0],
  ['users passwd bob --password-stdin', 2, 'short'],
  ['users passwd bob --password-stdin', 0, next],
  ['users passwd bob --no-digest', 0],
  ['heartbeat agent-7', 0],
  ['heartbeats list --json', 0],
  ['heartbeats remove agent-8', 9],
  ['heartbeats remove agent-7 --reason gone', 0],
  ['users list', 0],
  ['users list --json', 0],
  ...[
    `users disable bob --reason ${long}`,
    `users show ${long}`,
    `users add ${long} --no-password`,
    `users add eve --no-password --email ${long}`,
    `users add eve --no-password --display-name ${long}`,
    `users add eve --no-password --role ${long}`,
    `users unlock bob --from ${long}`,
    `users link bob --provider https://login.example.com --subject ${long}`,
    `keys create ${long} --user bob`,
    `keys revoke ${long}`,
    `heartbeats remove ${long}`,
    `audit list --user ${long}`,
    `roles holders ${long}`,
    `roles history ${long}`,
  ].map((line) => [line, 2] as const),
  ['users remove bob --yes', 0],
  ['users remove ann --yes', 9],
  ['users disable ann', 9],
  ['roles unassign ann --role Admin', 9],
  ['roles unassign ann --role admin', 9],
  ['users add cy --password-stdin --role Admin --digest', 2, password],
  ['audit verify', 0],
  ['audit verify --head 1:00', 2],
  ['audit head', 0],
]

test('P70 one story has the same words and exit codes on the machine and at a server, and the same audit', async () => {
  const { here, there } = await bothPlaces()
  const tell = async ({ home, label }: Place): Promise<readonly object[]> => {
    const lines: object[] = []
    for (const [args, , stdin] of story) {
      const ran = await home.run(args.split(' '), { stdin: stdin ?? '' })
      const stderr = normal(ran.stderr, label)
      lines.push({
        args,
        code: ran.code,
        stdout: normal(ran.stdout, label).replace(/"(?:ageSeconds|clockSkewMs)":-?\d+/g, ''),
        stderr,
      })
    }
    return lines
  }
  const atHome = await tell(here)
  expect(atHome.map((line) => Reflect.get(line, 'code'))).toEqual(story.map(([, code]) => code))
  expect(await tell(there)).toEqual(atHome)

  const entries = async ({ home, label }: Place) => {
    const { stdout } = await home.run(['audit', 'list', '--json', '--limit', '200'])
    const { entries } = JSON.parse(stdout) as { entries: readonly Record<string, string | null>[] }
    const own = entries.filter(({ event }) => event !== 'signin.ok' && event !== 'audit.read')
    return {
      changes: own.map(({ event, target, before, after, reason }) =>
        normal(JSON.stringify([event, target, before, after, reason]), label),
      ),
      by: new Set(own.map(({ who, address }) => `${who?.replace(/:.*/, '')} ${address}`)),
      readings: entries.filter(({ event }) => event === 'audit.read').map(({ who }) => who),
    }
  }
  const [own, server] = [await entries(here), await entries(there)]
  expect(own.changes.length).toBeGreaterThan(12)
  expect(server.changes).toEqual(own.changes)
  expect([[...own.by], [...server.by]]).toEqual([['local null'], ['local null', 'ann 127.0.0.1'].toReversed()])
  // Once in the session of the server, and never on the machine, whose account can read the file in any case.
  expect([own.readings, server.readings]).toEqual([[], ['ann']])
})

test('P70 a command acts where svc whoami says, and a flag for another store is exit 2 beside a server', async () => {
  const { there, url } = await bothPlaces()
  const { home } = there
  expect(JSON.parse((await home.run(['users', 'list', '--json'])).stdout)).toMatchObject({ store: url })
  for (const args of ['users add eve --no-password', 'keys list', 'audit list', 'heartbeats list', 'roles holders A']) {
    for (const flag of ['--store=x.db', '--config=svc.yaml']) {
      const ran = await home.run([...args.split(' '), '--server', url, flag])
      expect([args, ran.code, ran.stderr]).toEqual([args, 2, expect.stringContaining('cannot be combined')])
    }
  }
  // Without --local, what only works on files refuses to take the store of this machine.
  const local = await home.run(['users', 'add', 'eve', '--no-password', '--local'])
  expect(local.code).toBe(0)
  for (const args of ['backup b.db', 'restore b.db', 'audit export a.jsonl']) {
    const ran = await home.run(args.split(' '))
    expect([args, ran.code, ran.stderr]).toEqual([args, 2, expect.stringContaining(`and other commands at ${url}`)])
    expect(ran.stderr).toContain('--local')
  }
  expect((await home.run(['heartbeats', 'list', '-v'])).code).toBe(2)
})

test('P71 svc login on a terminal prompts for the new password, and stores only the session after it', async () => {
  const { there, url } = await bothPlaces()
  const added = await there.home.run(['users', 'add', 'eve', '--must-change', '--password-stdin'], { stdin: password })
  expect(added.code).toBe(0)
  const home = temporaryHome()
  const typed = [
    [/Password of eve/, password],
    [/New password:/, next],
    [/Confirm password:/, next],
  ] as const
  let step = 0
  let fresh = ''
  const { output, status } = await onTerminal(`"$NODE" "$SVC" login --server ${url} -u eve --insecure-storage`, {
    cwd: home.folder,
    env: { ...home.env, NODE: process.execPath, SVC: home.program },
    timeoutMs: 30_000,
    answer: (text) => {
      fresh += text
      const [prompt, keys] = typed[step] ?? []
      if (!prompt?.test(fresh)) return undefined
      step += 1
      fresh = ''
      return `${keys}\r`
    },
  })
  expect([status, step, output.includes('must be changed now')]).toEqual([0, 3, true])
  expect(await home.run(['whoami', '--verify'])).toMatchObject({ code: 0 })
  const again = ['login', '--server', url, '-u', 'eve', '--password-stdin', '--insecure-storage']
  expect(await home.run(again, { stdin: password })).toMatchObject({ code: 4 })
}, 60_000)
