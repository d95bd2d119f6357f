import { describe, expect, test } from 'vitest'
import { complaints, type RunTypesOptions, runType } from '../../support/engine/run-types.ts'
import {
  blackHole,
  endless,
  escapeSequences,
  type Peer,
  peer,
  refusedPort,
  replies,
} from '../../support/faults/faults.ts'
import { type CarbonState, carbon, soundCarbon } from '../../support/simulated/carbon.ts'
import { storeOfTest } from '../../support/store/embedded.ts'

const yaml = (port: number): string => `types: {XcodeC: [{profile: carbon, name: c1, host: 127.0.0.1, port: ${port}}]}`
type Mode = 'Basic' | 'Standard' | 'Advanced'

async function ask(
  server: Peer,
  mode: Mode = 'Advanced',
  timeoutMs?: number,
  more: Pick<RunTypesOptions, 'date' | 'history'> = {},
) {
  const reports = await runType(yaml(server.port), 'XcodeC', mode, { timeoutMs, ...more })
  await expect.poll(() => server.open()).toBe(0)
  const messages = reports.flatMap(({ results }) => results.map(({ check, message }) => `${check}: ${message}`))
  return {
    names: reports.map(({ name }) => name),
    failed: complaints(reports),
    warned: complaints(reports, 'warning'),
    messages: messages,
  }
}
async function look(change: (state: CarbonState) => void, mode: Mode = 'Advanced') {
  const state = soundCarbon()
  change(state)
  await using server = await carbon(state)
  return { ...(await ask(server, mode)), input: server.input() }
}

describe('the profile carbon', () => {
  test('a simulated Carbon Coder without problems passes at each depth, and only gets queries', async () => {
    expect(await look(() => {}, 'Basic')).toMatchObject({
      names: ['tcp c1 port', 'tcp c1 version'],
      failed: [],
      warned: [],
    })
    expect(await look(() => {}, 'Standard')).toMatchObject({ failed: [], warned: [] })
    const { names, failed, warned, input } = await look(() => {})
    expect([names, failed, warned]).toEqual([
      ['tcp c1 port', 'tcp c1 version', 'tcp c1 node', 'tcp c1 free slots', 'tcp c1 job list', 'tcp c1 jobs'],
      [],
      [],
    ])
    const reports = await look(() => {}, 'Basic')
    expect(reports.messages).toContainEqual(expect.stringMatching(/^answer: \S+ answered 97 B in /))
    expect(input).toContain(
      'CarbonAPIXML1 86 <?xml version="1.0" encoding="UTF-8"?><cnpsXML CarbonAPIVer="1.2" TaskType="Version"/>',
    )
    expect(input).not.toMatch(/JobQueue|JobCommand|Stop|Pause|Remove/)
  })

  test.each([
    [
      'that says no',
      (s: CarbonState) => Object.assign(s, { success: 'FALSE' }),
      /^tcp c1 version xml: .* \/Reply\/@Success is "FALSE"/,
    ],
    [
      'whose node is disabled',
      (s: CarbonState) => Object.assign(s, { enabled: 0 }),
      /^tcp c1 node xml: .*@Enabled\.DWD is "0", expected "1"$/,
    ],
    [
      'of many failed jobs',
      (s: CarbonState) => s.jobs.push(...Array(6).fill({ Status: 'ERROR', completed: Date.now() - 60_000 })),
      /jobs failed within the last hour: 6 \(warn 0, fail 5\)$/,
    ],
    [
      'with a stuck job',
      (s: CarbonState) => s.jobs.push({ Status: 'STARTED', start: Date.now() - 13 * 3_600_000 }),
      /running jobs: oldest 13 h \(warn 4 h, fail 12 h\)$/,
    ],
  ])('a simulated Carbon Coder %s fails with that reason', async (_, change, message) => {
    expect((await look(change)).failed[0]).toMatch(message)
  })

  test('a simulated Carbon Coder without a free slot is a warning after 15 minutes, at once where there is no history', async () => {
    await using server = await carbon(Object.assign(soundCarbon(), { freeSlots: 0 }))
    await using store = await storeOfTest()
    const slots = /^tcp c1 free slots measure: .*: free slots: 0 \(warn below 1\)/
    const unkept = await ask(server)
    expect([unkept.failed, unkept.warned]).toEqual([[], [expect.stringMatching(slots)]])
    const start = Date.UTC(2026, 0, 1)
    const minutesLater = (minutes: number) =>
      ask(server, 'Standard', undefined, {
        date: () => new Date(start + minutes * 60_000),
        history: store.data.readings,
      })
    expect((await minutesLater(0)).warned).toEqual([])
    const still = await minutesLater(15)
    expect(still.warned).toEqual([])
    expect(still.messages).toContainEqual(
      expect.stringMatching(/free slots: 0 .*, exceeded for 15 min: counts after 15 min$/),
    )
    expect((await minutesLater(16)).warned).toEqual([expect.stringMatching(/free slots: 0 .*, exceeded for 16 min$/)])
  })

  test('a simulated Carbon Coder that is silent, incomplete, endless or hostile is reported as such', async () => {
    const version = async (behave: Parameters<typeof peer>[0]): Promise<string> => {
      await using server = await peer(behave)
      return (await ask(server, 'Basic', 900)).failed.find((line) => line.startsWith('tcp c1 version')) ?? ''
    }
    expect(await version(blackHole)).toMatch(
      /sent nothing for .*, expected a whole XML document; it had [\d.]+ s of its 5 s/,
    )
    expect(await version(replies('CarbonAPIXML1 200 <Reply Success="TRUE">'))).toMatch(
      /sent "CarbonAPIXML1 200 <Reply Success="TRUE">" and closed the connection, expected a whole XML document$/,
    )
    expect(await version(endless('CarbonAPIXML1 9 <Reply>'))).toMatch(/without a whole XML document/)
    const laughs = `<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "${'&a;'.repeat(99)}">]><Reply Success="&b;"></Reply>`
    expect(await version(replies(`CarbonAPIXML1 9 ${laughs}`))).toMatch(/declares a document type \(DOCTYPE\)/)
    const escapes = escapeSequences.replace(/\0/g, '').replaceAll('<', '')
    const escaping = await version(replies(`CarbonAPIXML1 9 <Reply Success="${escapes}" Version="1"/>`))
    expect(escaping).toContain('/Reply/@Success is "red')
    expect(escaping).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
  })

  test('without a listener there is one cause', async () => {
    const reports = await runType(yaml(await refusedPort()), 'XcodeC', 'Advanced')
    expect(complaints(reports).filter((line) => !line.includes('not run'))).toEqual([
      expect.stringMatching(/^tcp c1 port connect: .*refused the connection/),
    ])
  })
})
