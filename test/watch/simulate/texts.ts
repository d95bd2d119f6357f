import type { NoticeItem } from '../../../src/core/watch/outbox/index.ts'
import type * as Shipped from '../../../src/core/watch/states/index.ts'

/** The result of one check in one run, which its text names: whoever shows the text claims all of it. */
type Claim = {
  readonly peer: string
  readonly check: string
  readonly item: string | undefined
  readonly level: Shipped.CheckLevel | undefined
  readonly fault: string | undefined
  /** In the time of the simulation. */
  readonly beganAt: number
}

const flapping = /^\d+ faults within an hour: /
/** The texts of svc itself, where no run has one. */
const ownTexts: { readonly [W in Shipped.TransitionKind]?: RegExp } = {
  unobserved: /^(no run reports it|not checked: (svc did not run|[a-z]+))$/,
  removed: /^it no longer exists$/,
}
/** The ends of which no run tells. */
const ownEnds = /^(it ended before the next fault began|it no longer exists|it is checked again)$/
/** A fault that has no other name is over once a whole run does not report it. */
const goneText = 'no longer reported'
/** A verdict came again, which is in doubt. */
const againText = 'it is checked again'

/** The texts of all simulated verdicts. Each is of one run only, so that nobody can show it for another one. */
export class Texts {
  readonly #claims = new Map<string, Claim>()
  readonly #broken: (rule: string, text: string) => void

  constructor(broken: (rule: string, text: string) => void) {
    this.#broken = broken
  }

  /** A verdict with the text of its run. */
  of(peer: string, verdict: Shipped.Verdict, beganAt: number): Shipped.Verdict {
    const { check, item, level, fault } = verdict
    const message = `${peer} ${check} ${item ?? ''} is ${level} ${fault ?? ''} at ${beganAt}`
    this.#claims.set(message, { peer, check, item, level, fault, beganAt })
    return { ...verdict, message }
  }

  /** A transition and its incident say what a run of that time has shown. `at`: when it says that it began. */
  takeTransition(
    peer: string,
    { what, check, item, to, fault, message }: Shipped.Transition,
    incident: Shipped.Incident | undefined,
    at: number,
    text: string,
  ): void {
    const broken = (why: string): void => this.#broken('texts', `${text} says "${message}": ${why}`)
    const own = ownTexts[what]
    if (own) {
      if (!own.test(message)) broken('that is no reason')
      return
    }
    const level = to === 'removed' || to === 'unobserved' ? undefined : to
    const why = this.#problem({ peer, check, item }, { level, fault, message, since: at, what })
    if (why !== undefined) broken(why)
    if (!incident || what === 'end' || what === 'observed' || incident.isUnobserved) return
    const claimed = { level: incident.level, fault: undefined, message: incident.message, since: undefined, what }
    const whole = this.#problem({ peer, check, item }, claimed)
    if (whole !== undefined) broken(`its incident is ${incident.level} and says "${incident.message}": ${whole}`)
  }

  /** The line of a message says what a run at its level has shown. */
  takeItem(
    { key, check, item }: Shipped.Subject,
    { what, level, fault, text: message }: Pick<NoticeItem, 'what' | 'level' | 'fault' | 'text'>,
    text: string,
  ): void {
    const isOver = what === 'end' || what === 'removed'
    if ((isOver && ownEnds.test(message)) || (!isOver && ownTexts.unobserved?.test(message))) return
    const kind = isOver ? 'end' : what === 'flapping' ? what : 'change'
    const claimed = {
      level: isOver ? 'ok' : level,
      fault: isOver ? undefined : fault,
      message,
      since: undefined,
      what: kind,
    } as const
    const why = this.#problem({ peer: key, check, item }, claimed)
    if (why !== undefined) this.#broken('texts', `${text} says "${message}": ${why}`)
  }

  /** A state says what a run showed at which it had this level. */
  takeState(peer: string, { check, item }: Pick<Shipped.Verdict, 'check' | 'item'>, state: Shipped.SubjectState): void {
    const { level, message, fault } = state
    // Before its first run was healthy, nothing else is known of a check than that one.
    const claim = this.#claims.get(message)
    if (level === 'ok' && message === againText) return
    if (level === 'ok' && claim?.beganAt !== undefined && state.levelSince === state.confirmedAt) return
    const why = this.#problem(
      { peer, check, item },
      { level, fault: level === 'failed' ? fault : undefined, message, since: undefined, what: 'change' },
    )
    if (why !== undefined) this.#broken('texts', `${peer} ${check} ${item ?? ''} shows "${message}": ${why}`)
  }

  #problem(
    { peer, check, item }: Pick<Claim, 'peer' | 'check' | 'item'>,
    {
      level,
      fault,
      message,
      since,
      what,
    }: {
      readonly level: Claim['level']
      readonly fault: string | undefined
      readonly message: string
      readonly since: number | undefined
      readonly what: Shipped.TransitionKind
    },
  ): string | undefined {
    if (message === againText) return what === 'observed' ? undefined : 'that is no verdict'
    if (message === goneText) return level === 'ok' ? undefined : `it is ${level}`
    const claim = this.#claims.get(message.replace(flapping, ''))
    if (!claim) return 'no run claim that'
    if (claim.peer !== peer || claim.check !== check || claim.item !== item) return 'that was another check'
    // Of what flaps, the latest bad run speaks, whichever level is the worst.
    const isFlapping = flapping.test(message)
    if (isFlapping ? claim.level === 'ok' : claim.level !== level) return `it is ${level}`
    if (fault !== undefined && !isFlapping && claim.fault !== fault) return `it is ${fault}`
    // While what a victim shows turns into another kind of fault, its text is that of the confirmed one.
    const isDated = what !== 'flapping' && what !== 'freed' && since !== undefined
    return isDated && claim.beganAt < since - 1 ? `that run began ${since - claim.beganAt} ms before` : undefined
  }
}
