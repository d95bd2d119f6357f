import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { outputs } from '../../src/cli/health/health.ts'
import { everyCombination, selection } from '../../tools/gates/combinations.ts'
import {
  type Choice,
  type Combination,
  choices,
  type File,
  formats,
  isSimple,
  types,
} from '../../tools/gates/dimensions.ts'
import { exitOf, fileOutcome, outcomeOf, placeOf, serverOutcome } from '../../tools/gates/rules.ts'
import { gatesPage } from '../../tools/gates.ts'
import { runGate } from '../support/gates/commands.ts'
import { type GateFailure, gateFailure, runGates } from '../support/gates/failure.ts'
import { type GateFixture, gateFixture } from '../support/gates/fixture.ts'
import { type Home, svcHome } from '../support/program/svc.ts'

const selected = selection()

describe('the table of gates', () => {
  test('K10 is 0 only where checks of a configured server passed, or svc checked itself and nothing requires a configuration', () => {
    for (const combination of everyCombination()) {
      if (exitOf(combination) !== 0) continue
      const { server, file, requirement } = combination
      const where = server ?? `file ${file}`
      const { reason } = outcomeOf(combination)
      const passes = /(?:svc|svc 0\.1|ServiceStack), healthy$|^file (?:healthy|with a mistake)/.test(where)
      const itself = /without a configuration|that does not exist/.test(where) && requirement === 'nothing'
      const isRight = (passes || itself) && reason === (passes ? 'healthy' : 'only itself')
      if (!isRight) expect.fail(`${where}, ${requirement}: ${reason}`)
    }
  })

  test('has every format of svc health', () => {
    expect([...formats].toSorted()).toEqual([...outputs].toSorted())
  })

  test('is on docs/gates.md, as its rules say (npm run generate writes it)', () => {
    const page = readFileSync(new URL('../../docs/gates.md', import.meta.url), 'utf8').replaceAll('\r\n', '\n')
    expect(page).toBe(gatesPage())
  })

  test('K10 has rows for a type with host settings only: a check of the host configures it, and defaults do not', () => {
    const exits = (file: File) => types.map((type) => fileOutcome(file, type, '--require-config', false).exit)
    expect(exits('with only a host check of Standard, checked in Basic')).toEqual([3, 12, 3, 3])
    expect(exits('with a host block that switches on nothing')).toEqual([12, 12, 12, 12])
  })

  test('has a selection in which each choice of a place shows whether another place is checked', () => {
    const differs = (combination: Combination): boolean => {
      const { type, requirement, choice } = combination
      const { exit } = outcomeOf(combination)
      const other = exit === 0 ? 'unhealthy' : 'healthy'
      const elsewhere = [
        serverOutcome(`svc, ${other}`, type, requirement),
        ...(placeOf(choice).at === 'this machine' ? [] : [fileOutcome(other, type, requirement, false)]),
      ]
      return elsewhere.every((outcome) => outcome.exit !== exit)
    }
    const distinctive = new Set(selected.filter(differs).map(({ choice }) => choice))
    const ambiguous = (choice: Choice): boolean => isSimple(choice) && !distinctive.has(choice)
    expect(choices.filter(ambiguous)).toEqual([])
  })
})

describe('svc health', () => {
  let fixture: GateFixture
  let home: Home
  beforeAll(async () => {
    fixture = await gateFixture()
    home = svcHome()
  })
  afterAll(async () => {
    await fixture?.close()
    home?.remove()
  })

  test('K10 K12 C9 C10 exits as the table of gates says, in a selection of its combinations', async () => {
    // The slow tier runs more than all of them.
    const some = selected.filter((_, at) => at % 5 === 0)
    expect(await runGates(fixture, some)).toEqual({ count: some.length, failures: [] })
  })

  test('K10 exits in the built program as in the process of these tests', async () => {
    const rows = selected.filter((_, at) => at % 190 === 7)
    expect(rows.length).toBeGreaterThan(4)
    const failures: GateFailure[] = []
    for (const combination of rows) {
      const command = fixture.commandFor(combination)
      const { code, stdout, stderr } = await home.svc(['health', ...command.argv], { env: command.env })
      failures.push(...gateFailure(combination, command, { code: code ?? -1, stdout, text: stderr + stdout }))
    }
    expect(failures).toEqual([])
  })

  test('a combination that exits with another code, or for another reason, is a failure of these tests', async () => {
    const [green, red] = ['svc, healthy', 'svc without a configuration'].map((server) =>
      selected.find(
        (one) =>
          one.server === server && one.type === '-t App' && one.requirement !== 'nothing' && one.format !== 'nagios',
      ),
    ) as [Combination, Combination]
    const command = fixture.commandFor(red)
    const result = await runGate(command)
    expect(gateFailure(red, command, result)).toEqual([])
    expect(gateFailure(green, command, result)).toMatchObject([{ expected: 0, code: 12 }])
    expect(gateFailure({ ...red, format: 'csv' }, command, { ...result, text: 'svc failed' })).toHaveLength(1)
    expect(gateFailure(red, command, { ...result, text: `${result.text}\n✓ HEALTHY` })).toHaveLength(1)
  })
})
