import { Heap } from '../../../src/core/checks/engine/index.ts'

type Job = { readonly at: number; readonly number: number; readonly run: () => void }

/** Simulated time: what happens next happens at once, and the clock is then at its time. */
export class Queue {
  readonly #jobs = new Heap<Job>((a, b) => a.at < b.at || (a.at === b.at && a.number < b.number))
  #number = 0
  #isStopped = false
  /** Monotonic milliseconds. */
  now = 0

  /** Returns what takes the job back. */
  at(time: number, run: () => void): () => void {
    const job = { at: Math.max(this.now, time), number: this.#number++, run }
    this.#jobs.put(job)
    return () => this.#jobs.delete(job)
  }

  after(ms: number, run: () => void): () => void {
    return this.at(this.now + ms, run)
  }

  /** Nothing happens any more after the current job. */
  stop(): void {
    this.#isStopped = true
  }

  runUntil(end: number): void {
    for (let job = this.#jobs.first; job && job.at <= end && !this.#isStopped; job = this.#jobs.first) {
      this.#jobs.delete(job)
      this.now = job.at
      job.run()
    }
    this.now = end
  }
}
