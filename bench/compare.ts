import { spawn } from 'node:child_process'

/** A command to time as a whole process. */
export type Candidate = {
  readonly name: string
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** The exit codes that count as a proper run. */
  readonly exits?: readonly number[]
}
export type Timed = { readonly name: string; readonly ms: readonly number[] }

/**
 * Times whole processes in interleaved rounds, so that a machine that slows down slows all of them.
 * Milliseconds of wall time, from spawn to exit, output read and thrown away.
 */
export async function timeRounds(candidates: readonly Candidate[], rounds: number): Promise<readonly Timed[]> {
  const times = candidates.map(() => [] as number[])
  for (let round = -1; round < rounds; round += 1) {
    for (const [index, candidate] of candidates.entries()) {
      const ms = await timeOne(candidate)
      // The first round warms the caches of disk and compiler and does not count.
      if (round >= 0) times[index]?.push(ms)
    }
  }
  return candidates.map(({ name }, index) => ({ name, ms: times[index] ?? [] }))
}

function timeOne(candidate: Candidate): Promise<number> {
  const [program = '', ...args] = candidate.command
  const started = performance.now()
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...candidate.env } })
    let output = ''
    child.stdout.resume()
    child.stderr.on('data', (chunk) => {
      output += String(chunk)
    })
    child.on('error', reject)
    child.on('close', (code) => {
      if ((candidate.exits ?? [0]).includes(code ?? -1)) resolve(performance.now() - started)
      else reject(new Error(`${candidate.name} exited with ${code}: ${output}`))
    })
  })
}

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
}

/** The median over the rounds of this command's time divided by the floor's in the same round. */
export const pairRatio = (timed: Timed, floor: Timed): number =>
  median(timed.ms.map((ms, round) => ms / (floor.ms[round] ?? ms)))
