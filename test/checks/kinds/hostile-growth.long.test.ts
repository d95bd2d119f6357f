import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { peer } from '../../support/faults/faults.ts'
import { type HostileCase, type HostileTarget, hostileCases } from '../../support/hostile/cases.ts'
import type { PlantedReader } from '../../support/hostile/hostile-child.ts'
import { type HostileRunner, startHostileRunner } from '../../support/hostile/runner.ts'
import { proving } from '../../support/suite/runs.ts'

/** Characters of the message and the details of one result. */
const maxLength = 6_000

/** Processor time may grow by this when the text grows tenfold: linear is 10, quadratic 100. */
const maxGrowth = 15
/**
 * Milliseconds that caches, garbage collection and the other work of the machine can cost at one size. A growth that is
 * too large by less than this must show once more, from the largest size to ten times that: what is quadratic in part
 * grows faster there.
 */
const noiseMs = 100
const secondRounds = 3
/** Milliseconds of processor time and copied bytes that are not compared: a run costs a few in any case. */
const floors = { ms: 3, copied: 300_000 }
/** Runs with each size before a growth that stays too large counts: others use the machine too. */
const rounds = 10
const sizes = [1_000, 10_000, 100_000] as const
/** Milliseconds after which the process that runs a kind counts as blocked. */
const patienceMs = 120_000

type Way = 'at once' | 'byte by byte'

/** Runs one kind against servers that send the text in each of the sizes. Returns its problems. */
async function problemsOf(
  runner: HostileRunner,
  { kind, place, settings, mode, serve, sound = [] }: HostileCase,
  [shape, textOf]: readonly [shape: string, textOf: (size: number) => string],
  way: Way,
  fewestRounds = 1,
): Promise<readonly string[]> {
  const least = { ms: sizes.map(() => Number.POSITIVE_INFINITY), copied: sizes.map(() => Number.POSITIVE_INFINITY) }
  const problems = new Set<string>()
  const name = `${kind}, ${shape} ${place}, ${way}`
  const byteByByte = way === 'byte by byte'
  // Single bytes take seconds on a busy machine.
  const timeoutMs = byteByByte ? 110_000 : 10_000
  const runOnce = (target: HostileTarget, timeout = timeoutMs, patience = patienceMs) => {
    const { folder } = target
    const allow = folder === undefined ? {} : { allow: [folder] }
    const about = { kind, settings: settings(target), mode, timeoutMs: timeout, byteByByte }
    return runner.run({ ...about, ...allow }, patience)
  }
  const run = async (at: number, target: HostileTarget): Promise<void> => {
    const { ms, copied, results } = await runOnce(target)
    least.ms[at] = Math.min(least.ms[at] ?? 0, ms)
    least.copied[at] = Math.min(least.copied[at] ?? 0, copied)
    const isHealthy = results.every(({ status }) => status === 'ok')
    if (isHealthy && !sound.includes(shape)) problems.add(`${name}: counts as healthy`)
    for (const { check, fault, message, length } of results) {
      if (fault === 'internal') problems.add(`${name}: ${check} reports a fault of svc: ${message}`)
      if (fault === 'timeout') problems.add(`${name}: ${check} waits for a server that has answered: ${message}`)
      if (length > maxLength) problems.add(`${name}: ${check} reports ${length} characters`)
    }
  }
  /** The cost of the step to the middle size, and that of the step to the largest one. */
  const steps = (what: 'ms' | 'copied'): readonly [first: number, both: number] => {
    const [small = 0, middle = 0, large = 0] = least[what]
    return [Math.max(middle - small, floors[what]), large - small]
  }
  const growth = (what: 'ms' | 'copied'): number => {
    const [first, both] = steps(what)
    return both / first
  }
  /** The growth of the milliseconds from the largest size to ten times that. */
  const nextGrowth = async (largest: HostileTarget): Promise<number> => {
    await using larger = await serve(textOf(10 * sizes[2]))
    const [, , before = 0] = least.ms
    let [shorter, longer] = [before, Number.POSITIVE_INFINITY]
    for (let round = 0; round < secondRounds; round += 1) {
      longer = Math.min(longer, (await runOnce(larger, 2 * patienceMs, 2 * patienceMs)).ms)
      if (longer <= maxGrowth * shorter || longer > maxGrowth * shorter + 10 * noiseMs) break
      shorter = Math.min(shorter, (await runOnce(largest)).ms)
    }
    return longer / shorter
  }
  const isTooMuch = (): boolean => growth('ms') > maxGrowth || growth('copied') > maxGrowth
  await using servers = new AsyncDisposableStack()
  const targets: HostileTarget[] = []
  for (const size of sizes) targets.push(servers.use(await serve(textOf(size))))
  for (let round = 0; round < fewestRounds || (round < rounds && isTooMuch()); round += 1) {
    for (const [at, target] of targets.entries()) await run(at, target)
  }
  const figures = (what: 'ms' | 'copied'): string => least[what].map((figure) => figure.toFixed(0)).join(', ')
  const [, , largest] = targets
  const isLasting = async (): Promise<boolean> => {
    const [first, both] = steps('ms')
    return both > maxGrowth * first + noiseMs || largest === undefined || (await nextGrowth(largest)) > maxGrowth
  }
  if (growth('ms') > maxGrowth && (await isLasting())) {
    problems.add(`${name}: 100 KB take ${growth('ms').toFixed(0)} times the milliseconds of 10 KB: ${figures('ms')}`)
  }
  if (growth('copied') > maxGrowth) {
    const times = growth('copied').toFixed(0)
    problems.add(`${name}: 100 KB make svc copy ${times} times the bytes of 10 KB: ${figures('copied')}`)
  }
  return [...problems]
}

/** Kinds that read documents share what reads them. A case with more shapes than that sends a third of them. */
const mostShapes = 6
const casesOf = (shape: string): number => hostileCases.filter(({ texts }) => shape in texts).length
/** The shapes that a case sends: all in `npm run prove`. Of many, cases send different thirds in turn, and what few have. */
const shapesOf = (one: HostileCase): readonly (readonly [shape: string, textOf: (size: number) => string])[] => {
  const all = Object.entries(one.texts)
  if (proving || all.length <= mostShapes) return all
  const turn = hostileCases.indexOf(one) % 3
  return all.filter(([shape], at) => at % 3 === turn || casesOf(shape) < 3)
}

const kinds = [...new Set(hostileCases.map(({ kind }) => kind))]
const kindsByByte = [...new Set(hostileCases.flatMap(({ kind, whole }) => (whole === undefined ? [kind] : [])))]

describe('H15 the CPU time of a run grows in proportion to what a hostile server sends, and none counts as healthy', () => {
  const runner = startHostileRunner()
  afterAll(() => runner.close())
  // A driver that prints what a server sends would put its text into the terminal and the log.
  afterEach(() => expect(runner.output()).toBe(''))
  const planted = (reader: PlantedReader, way: Way): Promise<readonly string[]> => {
    const one: HostileCase = {
      kind: 'planted',
      place: 'in its answer',
      settings: ({ port }) => ({ port, reader }),
      mode: 'Basic',
      serve: (text) => peer((socket) => void socket.end(text)),
      texts: {},
      sound: reader === 'copies' ? [] : ['blanks'],
    }
    // Other work, or code that is not compiled yet, may slow down the middle size alone, and so hide the growth.
    return problemsOf(runner, one, ['blanks', (size) => ' '.repeat(size)], way, rounds)
  }
  test('finds a planted reader that is quadratic in part', async () => {
    expect(await planted('partly quadratic', 'at once')).toEqual([
      expect.stringMatching(/: 100 KB take \d+ times the milliseconds of 10 KB/),
    ])
  }, 600_000)
  test('does not take a planted reader for quadratic that costs more once and is linear otherwise', async () => {
    expect(await planted('linear with a step', 'at once')).toEqual([])
  }, 600_000)
  test('finds a planted reader that copies and searches everything again with each piece', async () => {
    const problems = await planted('copies', 'byte by byte')
    expect(problems).toEqual([
      'planted, blanks in its answer, byte by byte: counts as healthy',
      expect.stringMatching(/: 100 KB take \d+ times the milliseconds of 10 KB/),
      expect.stringMatching(/: 100 KB make svc copy \d+ times the bytes of 10 KB/),
    ])
  }, 600_000)
  test('sends each shape to a kind', () => {
    const names = (shapes: readonly (readonly [string, unknown])[]): readonly string[] => shapes.map(([name]) => name)
    const sent = new Set(hostileCases.flatMap((one) => names(shapesOf(one))))
    expect(hostileCases.flatMap((one) => names(Object.entries(one.texts))).filter((name) => !sent.has(name))).toEqual(
      [],
    )
  })
  test.each(kinds)(
    '%s',
    async (kind) => {
      const problems: string[] = []
      for (const one of hostileCases.filter((some) => some.kind === kind)) {
        for (const text of shapesOf(one)) problems.push(...(await problemsOf(runner, one, text, 'at once')))
      }
      expect(problems).toEqual([])
    },
    600_000,
  )
  test.each(kindsByByte)(
    '%s, byte by byte (simulated: each byte that arrives is passed on alone)',
    async (kind) => {
      const problems: string[] = []
      for (const one of hostileCases.filter((some) => some.kind === kind && some.whole === undefined)) {
        const [first] = Object.entries(one.texts)
        if (first) problems.push(...(await problemsOf(runner, one, first, 'byte by byte')))
      }
      expect(problems).toEqual([])
    },
    600_000,
  )
})
