import { describeSubject, type Script, type ScriptedFault } from './script.ts'

/** A request, as the log names it. */
export type PollerRequest = {
  readonly address: string
  /** The program, by its own words: untrusted, and cut. */
  readonly agent: string
  /** `GET /metrics`, without a query. */
  readonly what: string
  /** Whether its answer would show the faults of monitors. */
  readonly showsMonitors: boolean
}

/** A poller and what it requested. Times are milliseconds from the start of the server. */
export type Poller = Omit<PollerRequest, 'showsMonitors'> & {
  readonly first: number
  readonly last: number
  readonly count: number
}

/** The findings about a fault of the script, for the log. */
export type FaultFinding = {
  readonly fault: ScriptedFault
  /** `Sql/postgres orders connect: refused` */
  readonly what: string
  /** Who requested something that shows it while it was active. */
  readonly pollers: readonly Poller[]
  /** How many requests that were, those of pollers that are not listed included. */
  readonly requests: number
}

/** More pollers are counted and not listed: whoever can connect could otherwise fill the memory. */
const maxPollers = 50

class Pollers {
  readonly #byName = new Map<string, Poller>()
  requests = 0

  add({ address, agent, what }: PollerRequest, at: number): void {
    this.requests += 1
    const name = JSON.stringify([address, agent, what])
    const before = this.#byName.get(name)
    if (!before && this.#byName.size >= maxPollers) return
    this.#byName.set(name, {
      address,
      agent,
      what,
      first: before?.first ?? at,
      last: at,
      count: (before?.count ?? 0) + 1,
    })
  }

  list(): readonly Poller[] {
    return [...this.#byName.values()]
  }
}

/** Who polled a rehearsal, and when: a fault that nobody saw proves nothing of the pollers. */
export class Attendance {
  readonly #script: Script
  readonly #byFault = new Map<ScriptedFault, Pollers>()

  constructor(script: Script) {
    this.#script = script
    for (const fault of script.faults) this.#byFault.set(fault, new Pollers())
  }

  /** Takes a request that came at this time, in milliseconds from the start of the server. */
  note(request: PollerRequest, at: number): void {
    for (const [{ from, to, subject }, pollers] of this.#byFault) {
      if (from <= at && at < to && ('http' in subject || request.showsMonitors)) pollers.add(request, at)
    }
  }

  /** The findings about the faults that have ended by this time. */
  findings(at: number): readonly FaultFinding[] {
    return this.#script.faults.flatMap((fault) => (fault.to <= at ? [this.#findingOf(fault)] : []))
  }

  /** Whether every fault of the script was active for its full time, and somebody asked meanwhile. */
  isComplete(at: number): boolean {
    const ended = this.findings(at)
    return ended.length === this.#script.faults.length && ended.every(({ requests }) => requests > 0)
  }

  #findingOf(fault: ScriptedFault): FaultFinding {
    const pollers = this.#byFault.get(fault)
    return {
      fault,
      what: describeSubject(fault.subject),
      pollers: pollers?.list() ?? [],
      requests: pollers?.requests ?? 0,
    }
  }
}
