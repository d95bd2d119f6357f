import { describe, expect, test } from 'vitest'
import { loadRehearsal } from '../../src/core/config/index.ts'
import type { Script } from '../../src/core/watch/rehearsal/index.ts'
import { faultOf, load } from './given.ts'

const yaml = `types:
  Sql:
    - {kind: postgres, name: orders, url: "postgres://monitor@127.0.0.5/orders", password: {env: ORDERS}}
    - {kind: tcp, name: queue, host: 127.0.0.6, port: 1}
  App:
    - {kind: tcp, name: queue, host: 127.0.0.7, port: 1}
`
async function read(text: string, config = yaml): Promise<Script> {
  return await (await loadRehearsal()).readRehearsal('drill.yaml', text, await load(config))
}
/** The message and the hints in one text. */
async function refusal(text: string, config = yaml): Promise<string> {
  const { message, exitCode, details } = await faultOf(read(text, config))
  expect(exitCode).toBe(12)
  return [message, ...(details.hints ?? [])].join('\n')
}
const steps = (...lines: readonly string[]): string =>
  `ends: 10m\nsteps:\n${lines.map((line) => `  - ${line}\n`).join('')}`

describe('Y1 the script of a rehearsal', () => {
  test('has faults of monitors and of http over time', async () => {
    const script = await read(
      steps(
        '{at: 30s, monitor: Sql/postgres orders, fault: refused}',
        '{at: 1m, for: 30s, http: 503}',
        '{at: 2m, monitor: postgres orders, fault: threshold, check: replication lag, message: 90 s behind}',
        '{at: 3m, monitor: postgres orders, fault: none}',
        '{at: 4m, http: hang}',
        '{at: 5m, http: ok}',
      ),
    )
    expect(script).toEqual({
      endsMs: 600_000,
      faults: [
        {
          from: 30_000,
          to: 180_000,
          line: 3,
          subject: {
            monitor: {
              type: 'Sql',
              monitor: 'postgres orders',
              check: 'connect',
              fault: 'refused',
              message: 'the connection was refused (scripted)',
            },
          },
        },
        { from: 60_000, to: 90_000, line: 4, subject: { http: '503' } },
        {
          from: 120_000,
          to: 180_000,
          line: 5,
          subject: {
            monitor: {
              type: 'Sql',
              monitor: 'postgres orders',
              check: 'replication lag',
              fault: 'threshold',
              message: '90 s behind',
            },
          },
        },
        { from: 240_000, to: 300_000, line: 7, subject: { http: 'hang' } },
      ],
    })
  })

  test.each([
    ['{at: 1s, monitor: Sql/postgres order, fault: refused}', 'did you mean `Sql/postgres orders`?'],
    ['{at: 1s, monitor: tcp queue, fault: refused}', 'write `App/tcp queue` or `Sql/tcp queue`'],
    ['{at: 1s, monitor: QUEUE, fault: refusd}', 'did you mean refused?'],
    ['{at: 1s, monitor: QUEUE, fault: dependency}', 'must be one of dns, refused'],
    [
      '{at: 1s, monitor: QUEUE, fault: refused, check: conect}',
      'did you mean `connect`?; svc monitors kinds tcp lists its checks',
    ],
    ['{at: 5, monitor: QUEUE, fault: refused}', 'steps[0].at is 5, without a unit: write 5s or 5ms'],
    ['{at: 10m, monitor: QUEUE, fault: refused}', 'steps[0].at is not before `ends:`'],
    ['{at: 1s, for: 9s, monitor: QUEUE, fault: refused}', 'steps[0].for is 9s: give 10s'],
    ['{at: 1s, http: 404}', 'must be one of 503, hang, reset, ok'],
    ['{at: 1s, monitor: QUEUE, fault: refused, http: hang}', 'make it a step of its own'],
    ['{at: 1s}', 'steps[0] does nothing: add `monitor:` and `fault:`, or `http:`'],
    ['{at: 1s, monitor: QUEUE}', 'does not say what fails: add `fault: refused`'],
    ['{at: 1s, http: hang, fault: refused}', 'belongs to a step with `monitor:`: remove it'],
    ['{at: 1s, http: ok, for: 10s}', 'has no meaning here'],
    ['{at: 1s, http: ok}', 'steps has no fault: add a step'],
  ])('%s is a mistake with its line and the way out', async (step, message) => {
    const text = await refusal(steps(step.replace('QUEUE', 'Sql/tcp queue')))
    expect(text).toContain(message)
    expect(text).toMatch(/drill\.yaml:[23]:\d+: /)
    expect(text).toMatch(/^3 \| {3}- |^2 \| steps/m)
    expect(text.trimEnd().endsWith('Correct the file, then start again')).toBe(true)
  })

  test('names every mistake, also steps that are not in the order of time', async () => {
    const text = await refusal(steps('{at: 9s, http: hang}', '{at: 8s, http: 503}', '{at: 9m, http: reste}'))
    expect(text).toContain('must be one of 503, hang, reset, ok')
    expect(await refusal(steps('{at: 9s, http: hang}', '{at: 8s, http: 503}'))).toContain(
      'drill.yaml:4:6: steps[1].at is before that of the step above: sort the steps',
    )
    expect(await refusal('ends: 1m\n')).toContain('steps is missing: add `steps:`')
    expect(await refusal('steps: [{at: 1s, http: hang}]\n')).toContain('ends is missing: add `ends:`')
    expect(await refusal('- 1\n')).toContain('is not a script: write `ends: 10m`')
    expect(await refusal('ends: [1m\n')).toMatch(/^drill\.yaml:1:/)
    expect(await refusal('')).toContain('is not a script')
  })

  test('lasts at most 3 h 50 min, so that the process lives at most 4 h', async () => {
    expect((await read('ends: 230m\nsteps: [{at: 1s, http: hang}]\n')).endsMs).toBe(230 * 60_000)
    expect(await refusal('ends: 4h\nsteps: [{at: 1s, http: hang}]\n')).toContain('ends is 4h: give 10s to 230m')
  })

  test('without monitors in svc.yaml, it says which file to name', async () => {
    const text = await refusal(steps('{at: 1s, monitor: Sql/tcp queue, fault: refused}'), 'types: {}\n')
    expect(text).toContain('name the file with --config')
  })

  test('its configuration has neither settings of monitors nor anything that could be contacted', async () => {
    const config = await load(
      `serve: {ping: {env: PING}, witness: ["tcp://127.0.0.1:443", "tcp://127.0.0.2:443"], every: off, audit: {stream: /x}}
notify: [{name: chat, webhook: {url: "http://127.0.0.3/"}}]
drill: {every: 7d, through: [chat]}
silences: [{monitors: ['Sql/*'], when: '0 2 * * SUN', for: 2h, reason: patch night}]
${yaml}`,
      { PING: 'http://127.0.0.4/', ORDERS: 'violet-harbour' },
    )
    const { rehearsedConfig } = await loadRehearsal()
    const made = rehearsedConfig(config, () => [])
    expect(Object.keys(made).toSorted()).toEqual(['origin', 'serve', 'types', 'warnings'])
    expect(made.serve).toMatchObject({ witness: [], every: { Standard: 10_000, Advanced: 30_000 } })
    expect(Object.keys(made.serve)).not.toEqual(expect.arrayContaining(['ping']))
    expect(Object.keys(made.serve)).not.toEqual(expect.arrayContaining(['audit']))
    for (const { monitors, host } of Object.values(made.types)) {
      expect(host).toBe(false)
      for (const { kind, settings } of monitors) {
        expect(Object.keys(settings as object)).toEqual(['rehearses'])
        expect([kind.target, kind.signsIn, kind.preload, kind.validate]).toEqual([
          undefined,
          undefined,
          undefined,
          undefined,
        ])
      }
    }
    expect(JSON.stringify(made)).not.toMatch(/10\.0\.0\.|violet/)
  })
})
