import { setTimeout as sleep } from 'node:timers/promises'

type Line = {
  readonly level?: string
  readonly msg?: string
  readonly status?: number
  readonly correlationId?: string
  readonly stack?: string
}

/** The log of a `svc serve`, line by line. */
export class ServeLog {
  readonly lines: string[] = []
  /** Lines that are not JSON, and those of a defect. */
  readonly problems: string[] = []
  readonly #answers = new Map<string, number>()

  take(text: string): void {
    this.lines.push(text)
    const line = parsed(text)
    if (line?.level === undefined || line.level === 'error' || line.stack !== undefined) this.problems.push(text)
    if (line?.status === undefined || line.correlationId === undefined || line.msg === 'answered in a batch') return
    this.#answers.set(line.correlationId, (this.#answers.get(line.correlationId) ?? 0) + 1)
  }

  /** How many lines speak of the answer with that correlation id; those of the parts of a batch do not count. */
  answers(correlationId: string): number {
    return this.#answers.get(correlationId) ?? 0
  }

  /** Waits until each of the answers has its line, for at most ten seconds. */
  async complete(correlationIds: readonly string[]): Promise<void> {
    for (let i = 0; i < 200 && correlationIds.some((id) => this.answers(id) === 0); i += 1) await sleep(50)
  }

  tail(): string {
    return this.lines.slice(-20).join('\n')
  }
}

function parsed(text: string): Line | undefined {
  try {
    return JSON.parse(text) as Line
  } catch {
    return undefined
  }
}
