import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { Outcome } from './authorization-matrix.ts'
import { type Plant, plants } from './authorization-plants.ts'

const child = fileURLToPath(new URL('authorization-child.ts', import.meta.url))

async function outcomeOf(plant: Plant): Promise<Outcome> {
  const { stdout } = await promisify(execFile)(process.execPath, [child, JSON.stringify(plant)])
  return JSON.parse(stdout) as Outcome
}

describe.concurrent('the authorization matrix fails for each guard that is taken away', () => {
  test.for(Object.entries(plants))('S11 T6 %s', { timeout: 120_000 }, async ([, plant]) => {
    const { mistakes } = await outcomeOf(plant)
    expect(mistakes.length).toBeGreaterThan(0)
  })
})
