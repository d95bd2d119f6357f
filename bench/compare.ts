import { spawn } from 'node:child_process'

/** A command to time as a whole process. */
export type Candidate = {
  readonly name: string
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** The exit codes that count as a proper run. */
  readonly exits?: readonly number[]
}
/** Milliseconds of each run: by the clock, and of the processors, user and system. */
export type Timed = { readonly name: string; readonly ms: readonly number[]; readonly cpuMs: readonly number[] }
type Time = { readonly ms: number; readonly cpuMs: number }

/**
 * Times whole processes in interleaved rounds, so that a machine that slows down slows all of them.
 * The shell measures them, from spawn to exit; their output is read and thrown away.
 */
export async function timeRounds(candidates: readonly Candidate[], rounds: number): Promise<readonly Timed[]> {
  const times = candidates.map(() => [] as Time[])
  for (let round = -1; round < rounds; round += 1) {
    for (const [index, candidate] of candidates.entries()) {
      const time = await timeOne(candidate)
      // The first round warms the caches of disk and compiler and does not count.
      if (round >= 0) times[index]?.push(time)
    }
  }
  return candidates.map(({ name }, index) => {
    const runs = times[index] ?? []
    return { name, ms: runs.map(({ ms }) => ms), cpuMs: runs.map(({ cpuMs }) => cpuMs) }
  })
}

function timeOne(candidate: Candidate): Promise<Time> {
  const script = 'TIMEFORMAT="%3R %3U %3S"; time "$@" 2>&1'
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-c', script, 'bash', ...candidate.command], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, LC_ALL: 'C', ...candidate.env },
    })
    let output = ''
    let times = ''
    child.stdout.on('data', (chunk) => {
      output += String(chunk)
    })
    child.stderr.on('data', (chunk) => {
      times += String(chunk)
    })
    child.on('error', reject)
    child.on('close', (code) => {
      const [real = 0, user = 0, system = 0] = times.trim().split(' ').map(Number)
      if ((candidate.exits ?? [0]).includes(code ?? -1)) resolve({ ms: real * 1_000, cpuMs: (user + system) * 1_000 })
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
export const pairRatio = (timed: Timed, floor: Timed, of: keyof Time = 'ms'): number =>
  median(timed[of].map((ms, round) => ms / (floor[of][round] || ms)))
