import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { loadRehearsal } from '../../src/core/config/index.ts'
import { configSchema } from '../../src/core/config/schema.ts'
import { operations, ServerType } from '../../src/core/protocol/index.ts'
import { monitorIn } from '../../src/core/server/pages/page-monitor.ts'
import { silenceOperations } from '../../src/core/service/silences/silence-answer.ts'
import { openData } from '../../src/core/store/index.ts'
import { Recorder } from '../../src/core/watch/periods/index.ts'
import { rehearsalSettings } from '../../src/core/watch/rehearsal/index.ts'
import { commands } from '../../src/registry.ts'
import { load } from '../config/given.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

const tcp = (name: string, more = ''): string => `{kind: tcp, name: ${name}, host: 127.0.0.1, port: 1${more}}`
const yamlWith = (more = '', shop = ''): string => `types:
  Ftp: [${tcp('t13')}, ${tcp('both')}, {kind: http, name: both, url: "http://127.0.0.1:1/"}, ${tcp('shop', shop)}]
  App: [${tcp('cart')}]
${more}`
const monitors = [
  { type: 'Ftp', name: 'tcp t13' },
  { type: 'Ftp', name: 'tcp both' },
  { type: 'Ftp', name: 'http both' },
  { type: 'Ftp', name: 'tcp shop' },
  { type: 'App', name: 'tcp cart' },
] as const

const home = temporaryHome()
beforeAll(async () => {
  writeFileSync(join(home.folder, 'svc.yaml'), yamlWith(), { mode: 0o600 })
  await home.run(['users', 'add', 'ann', '--no-password'])
  const data = await openData({ store: join(home.folder, 'store', 'svc.db'), create: true })
  const recorder = new Recorder()
  const now = Date.now()
  for (const { type, name } of monitors) {
    for (const at of [now - 120_000, now - 60_000]) {
      const run = {
        at,
        rank: 1,
        validMs: [120_000, 120_000, 120_000],
        checks: [{ check: 'connect', rank: 0, level: 'ok' }],
      }
      recorder.add({ key: `${type}/${name.replace(' ', '/')}`, type, name }, run as never)
    }
  }
  recorder.numbered(await data.history.number(recorder.unnumbered))
  const batch = recorder.batch(now, false)
  if (batch) await data.history.write(batch)
  await data.close()
})

/** The meaning of a name at a place, as text, or why it is refused. */
type Meaning = (written: string) => Promise<string>

const ran =
  (...args: readonly string[]): Meaning =>
  async (written) => {
    const { stdout, stderr } = await home.run(args.map((one) => (one === 'NAME' ? written : one)))
    return `${stdout}${stderr}`
  }
const loaded =
  (yaml: (written: string) => string, part: (config: Awaited<ReturnType<typeof load>>) => unknown): Meaning =>
  async (written) => {
    try {
      return JSON.stringify(part(await load(yaml(JSON.stringify(written)))))
    } catch (error) {
      return String(error)
    }
  }
const acknowledge: Meaning = async (written) => {
  const config = { types: { Ftp: { monitors: monitors.slice(0, 4) }, App: { monitors: monitors.slice(4) } } } as never
  const subjects = monitors.map(({ type, name }) => ({
    subject: { key: `${type}/${name}`, type, monitor: name, check: 'connect' },
    state: { level: 'failed', incident: { id: name, level: 'failed' } },
  }))
  const keeper = { now: 0, add: async () => {} } as never
  const { acknowledge: ack } = silenceOperations({
    keeper,
    config: () => config,
    subjects: async () => subjects as never,
    mute: async () => [],
  })
  try {
    return JSON.stringify(await ack({ Monitor: written, Reason: 'INC-7' }, { who: 'ann' } as never))
  } catch (error) {
    return String(error)
  }
}
const rehearsed: Meaning = async (written) => {
  const { readRehearsal } = await loadRehearsal()
  const script = `ends: 10m\nsteps:\n  - {at: 30s, monitor: ${JSON.stringify(written)}, fault: refused}\n`
  try {
    return JSON.stringify((await readRehearsal('drill.yaml', script, await load(yamlWith()))).faults)
  } catch (error) {
    return String(error)
  }
}
const silence = ran('silence', 'NAME', '--for', '1h', '--reason', 'x', '--json')
const history = ran('history', '--monitor', 'NAME', '--json')
const impact = ran('impact', 'NAME', '--json')
const chat = (only: string): string =>
  `notify: [{name: chat, webhook: {url: "http://127.0.0.1:1/"}, only: {monitors: [${only}]}}]\n`
const nightly = (names: string): string => `silences: [{monitors: [${names}], when: "@daily", for: 1h, reason: x}]\n`

/** Every place that takes the name of a monitor. */
const places: Readonly<Record<string, Meaning>> = {
  'svc.yaml dependsOn': loaded(
    (name) => yamlWith('', `, dependsOn: ${name}`),
    ({ types }) => types.Ftp?.monitors[3]?.dependsOn,
  ),
  'svc.yaml silences.monitors': loaded(
    (names) => yamlWith(nightly(names)),
    ({ silences }) => silences,
  ),
  'svc.yaml only.monitors': loaded(
    (names) => yamlWith(chat(names)),
    ({ notify }) => notify,
  ),
  'rehearsal monitor': rehearsed,
  'svc ack monitor': acknowledge,
  'svc history monitor': history,
  'svc impact monitor': impact,
  'svc monitors:test name': ran('monitors', 'test', 'NAME', '--mode', 'Basic'),
  'svc silence monitors': silence,
  'acknowledge Monitor': acknowledge,
  'history MonitorName': history,
  'impact Monitor': impact,
  'silenceMonitors Monitors': silence,
  'page monitor': async (written) => JSON.stringify(monitorIn(written, monitors) ?? 'several: tcp both, http both'),
}

/** The places that speak of monitors and take the name of none, with the reason. */
const others: Readonly<Record<string, string>> = {
  'svc ack check': 'the name of a check',
  'svc health only': 'a pattern of monitors and checks of the types of --type',
  'svc health skip': 'the same',
  'svc heartbeat interval': 'a duration',
  'svc monitors:add kind': 'a kind',
  'svc monitors:add name': 'the name of a new one',
  'svc monitors:edit name':
    'the name of an entry, which may have a mistake; test/cli/monitor-entries.test.ts has its forms',
  'svc monitors:edit type': 'a type',
  'svc monitors:remove name': 'as for edit',
  'svc monitors:remove type': 'a type',
  'svc monitors:test type': 'a type',
  'svc monitors:test timeout': 'a duration',
  'svc monitors:profiles profile': 'the name of a profile',
  'svc serve rehearse': 'a file',
  'svc.yaml type.monitors': 'the monitors themselves',
  'svc.yaml profile.monitors': 'the monitors themselves',
}

type Declared = { readonly type: string; readonly description?: string }
async function inCommands(): Promise<readonly string[]> {
  const all = await Promise.all(
    Object.entries(commands).map(async ([id, read]) => {
      const { args = {}, flags = {} } = (await read()) as unknown as Readonly<
        Record<'args' | 'flags', Readonly<Record<string, Declared>> | undefined>
      >
      return Object.entries({ ...args, ...flags }).flatMap(([name, { type, description = '' }]) =>
        type === 'option' && /\bmonitors?\b/i.test(description) ? [`svc ${id} ${name}`] : [],
      )
    }),
  )
  return all.flat()
}
const inOperations = (): readonly string[] =>
  Object.entries(operations).flatMap(([name, { request }]) =>
    Object.keys('fields' in request ? request.fields : {}).flatMap((field) =>
      /^Monitors?(Name)?$/.test(field) ? [`${name} ${field}`] : [],
    ),
  )
function inSchema(node: unknown, within = ''): readonly string[] {
  if (typeof node !== 'object' || node === null) return []
  return Object.entries(node).flatMap(([key, value]): readonly string[] => {
    if (key !== 'properties' && key !== '$defs') return inSchema(value, within)
    return Object.entries(value as object).flatMap(([name, one]) => [
      ...(name === 'dependsOn' ? ['svc.yaml dependsOn'] : name === 'monitors' ? [`svc.yaml ${within}.monitors`] : []),
      ...inSchema(one, name),
    ])
  })
}
const inRehearsals = (): readonly string[] =>
  Object.keys(rehearsalSettings.steps.fields).flatMap((name) => (name === 'monitor' ? [`rehearsal ${name}`] : []))

test('M8 the table of the places that take the name of a monitor has all of commands, operations, svc.yaml and scripts', async () => {
  const all = [...(await inCommands()), ...inOperations(), ...inSchema(await configSchema()), ...inRehearsals()]
  const listed = [...Object.keys(places).filter((place) => !place.startsWith('page ')), ...Object.keys(others)]
  expect([...new Set(all)].toSorted()).toEqual(listed.toSorted())
  expect(ServerType.values).toContain('Ftp')
})

describe.for(Object.entries(places))('M8 at %s', ([place, meaning]) => {
  test('a monitor has four names: with and without its type and its kind', async () => {
    for (const name of ['tcp t13', 't13', 'Ftp/tcp t13', 'Ftp/t13']) {
      const meant = await meaning(name)
      expect.soft(meant, name).toContain('tcp t13')
      expect.soft(meant, name).not.toMatch(/No monitor|no monitor|is not a monitor|knows no|both/)
    }
  })

  test('an own name of several monitors stands for none, and both are named', async () => {
    const meant = await meaning('both')
    expect.soft(meant).toMatch(/tcp both.*http both/s)
    // A list of what is known shows both. Everything else refuses.
    if (!place.includes('istory')) expect.soft(meant).toMatch(/several|ambiguous/)
  })
})

test.for([
  ['silence', 'tcp t13', '--for', '1h', '--reason', 'x'],
  ['ack', 'tcp t13', '--reason', 'x'],
  ['impact', 'tcp t13'],
  ['monitors', 'test', 'tcp t13', '--mode', 'Basic'],
])('M8 svc %s says which svc.yaml has the monitors, and nothing with --json', async (args) => {
  const note = `Note: monitors of ${join(home.folder, 'svc.yaml')}`
  expect((await home.run(args)).stderr).toContain(note)
  expect((await home.run([...args, '--json'])).stderr).not.toContain('Note: monitors of')
})
