import { createServer, type Server } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { everyCombination, everyThree } from '../../tools/gates/combinations.ts'
import { type Requirement, requirements, types } from '../../tools/gates/dimensions.ts'
import { serverOutcome } from '../../tools/gates/rules.ts'
import { runGate } from '../support/gates/commands.ts'
import { runGates } from '../support/gates/failure.ts'
import { gateFixture } from '../support/gates/fixture.ts'
import { startServe } from '../support/program/serve-command.ts'
import type { Serving } from '../support/program/serving.ts'
import { type Home, svcHome } from '../support/program/svc.ts'
import { buildVersion01, version01Missing } from '../support/program/version-0.1.ts'
import { answersOf01 } from '../support/simulated/svc-0.1-answers.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { proving } from '../support/suite/runs.ts'

/** Milliseconds. On a busy machine with two processors, everything takes a quarter of it. */
const patienceMs = 1_800_000

const combinations = proving ? [...everyCombination()] : everyThree()

test(`K10 K12 C9 C10 svc health exits as the table of gates says in ${combinations.length} combinations`, {
  timeout: patienceMs,
}, async () => {
  const fixture = await gateFixture()
  onTestFinished(() => fixture.close())

  expect(await runGates(fixture, combinations)).toEqual({ count: combinations.length, failures: [] })
})

suiteWith(version01Missing, 'svc health at a server of version 0.1', () => {
  let built: ReturnType<typeof buildVersion01>
  let listener: Server
  const homes: Home[] = []
  let servers: Readonly<Record<'svc 0.1, healthy' | 'svc 0.1 without a configuration', Serving>>
  beforeAll(async () => {
    built = buildVersion01()
    listener = createServer((socket) => socket.end())
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
    const { port } = listener.address() as { readonly port: number }
    const monitor = `{kind: tcp, name: shop, host: 127.0.0.1, port: ${port}}`
    const started = async (yaml: string): Promise<Serving> => {
      const home = svcHome(built.program)
      homes.push(home)
      return await startServe(home, yaml)
    }
    const [healthy, bare] = await Promise.all([
      started(`types:\n  App: {host: false, monitors: [${monitor}]}\n`),
      started('types: {}\n'),
    ])
    servers = { 'svc 0.1, healthy': healthy, 'svc 0.1 without a configuration': bare }
  })
  afterAll(async () => {
    for (const server of Object.values(servers ?? {})) await server.stop()
    for (const home of homes) home.remove()
    listener?.close()
    built?.remove()
  })

  test.each(['svc 0.1, healthy', 'svc 0.1 without a configuration'] as const)(
    'K10 exits as the table of gates says: %s',
    { timeout: 120_000 },
    async (name) => {
      const requirementFlags: Record<Requirement, readonly string[]> = {
        nothing: [],
        '--require-config': ['--require-config'],
        'SVC_REQUIRE_CONFIG=1': [],
      }
      for (const requirement of requirements) {
        const env = {
          SVC_HOME: homes[0]?.folder ?? '',
          ...(requirement === 'SVC_REQUIRE_CONFIG=1' ? { SVC_REQUIRE_CONFIG: '1' } : {}),
        }
        for (const type of types) {
          const argv = [
            ...['-m', 'Basic', '--server', servers[name].url, ...requirementFlags[requirement]],
            ...(type === 'no -t' ? [] : type.split(' ')),
          ]
          const { code, text } = await runGate({ argv, env })
          const { exit } = serverOutcome(name, type, requirement)
          expect([requirement, type, code, code === exit ? '' : text]).toEqual([requirement, type, exit, ''])
        }
      }
    },
  )

  test('answers as the recording of it that stands for it elsewhere', async () => {
    const answer = async (name: keyof typeof servers, path: string) => {
      const response = await fetch(`${servers[name].url}${path}`, {
        headers: { accept: 'application/vnd.svc.run+json;version=1, application/json' },
      })
      return { status: response.status, text: shape(await response.text()) }
    }
    const health = (type: string): string => `/healthcheck?ExecutionMode=Basic&ServerType=${type}`
    const bare = 'svc 0.1 without a configuration'
    expect(await answer(bare, health('App'))).toEqual({ status: 200, text: shape(answersOf01.itself) })
    expect(await answer('svc 0.1, healthy', health('App'))).toEqual({
      status: 200,
      text: shape(answersOf01.configured),
    })
    expect(await answer(bare, health('Ftp'))).toEqual({ status: 503, text: shape(answersOf01.lacking) })
    expect(await answer(bare, '/server-types')).toEqual({ status: 404, text: shape(answersOf01.unknownPath) })
  })
})

/** A document without what is another one at each run: ids, figures, and their units. */
const shape = (text: string): string =>
  text
    .replace(/"CorrelationId":"[^"]*"/, '"CorrelationId":""')
    .replaceAll(/\d+(?:\.\d+)*(?: (?:ms|s|min|h|d)\b)?/g, '0')
    .replace(/"PT[^"]*"/, '"PT"')

describe('the shape of a recording', () => {
  test('shows another monitor, check, status or message', () => {
    const other = answersOf01.itself.replace('"MonitoringName":"configured"', '"MonitoringName":"version"')
    expect(shape(other)).not.toBe(shape(answersOf01.itself))
    expect(shape(answersOf01.itself.replace('3c5a9dbb', '00000000').replace('up 1.2 h', 'up 5 min'))).toBe(
      shape(answersOf01.itself),
    )
  })
})
