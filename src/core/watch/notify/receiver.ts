import type { FaultClass } from '../../base/probe-error.ts'

/**
 * The interface between the outbox and the receivers of notifications: the outbox decides what a receiver gets and
 * when, a receiver sends it in its protocol.
 */

/**
 * Who a message is about. Everywhere the identity: of labels, of keys by which receivers recognize repetitions, of threads
 * of mail. The id of the incident is not part of it, because a node without the store makes another.
 */
export type NoticeSubject = {
  /** `serve.name`. */
  readonly server: string
  /** Absent for monitors of the machine itself. */
  readonly type?: string | undefined
  readonly monitor: string
  readonly check: string
  readonly item?: string | undefined
  /** For monitors of the machine itself. */
  readonly node?: string | undefined
  /**
   * The present name of a monitor that was renamed since its incident began. It is not part of the identity, and for people
   * only.
   */
  readonly now?: Pick<NoticeSubject, 'type' | 'monitor'> | undefined
}

export type NoticeLevel = 'warning' | 'failed'

/** The present state of one subject, as one receiver is to know it. Made when it is sent, never queued. */
export type Notice = {
  readonly subject: NoticeSubject
  /** Equal in all attempts to send the same state: a hash of subject, incident, what and level. */
  readonly id: string
  readonly what: 'begin' | 'change' | 'reminder' | 'flapping' | 'end' | 'removed'
  readonly level: NoticeLevel
  /** The level that the receiver knows, when it differs. */
  readonly before?: NoticeLevel | undefined
  readonly incident: string
  /** Milliseconds since 1970, like all times here. */
  readonly beganAt: number
  readonly endedAt?: number | undefined
  /** When the verdict was observed. */
  readonly observedAt: number
  readonly fault?: string | undefined
  /** One sanitized line, at most 1 KiB. */
  readonly text: string
  readonly victims: { readonly count: number; readonly names: readonly string[] }
  readonly tags: readonly string[]
  /** Text or URL. */
  readonly runbook?: string | undefined
  /** The time zone of what people read. Absent: that of the machine. */
  readonly timezone?: string | undefined
  /** A link to the status page, when `serve.url` is set. */
  readonly url?: string | undefined
  /** Set for a drill, which every message says: nothing has failed. */
  readonly drill?: DrillMark | undefined
}

/** The contents of a message of a drill besides its mark. */
export type DrillMark = {
  /** A URL that whoever got the message opens, when `serve.url` is set. It works once. */
  readonly callback?: string | undefined
}

/** Whether a notice says that the incident is over. */
export const isOver = ({ what }: Pick<Notice, 'what'>): boolean => what === 'end' || what === 'removed'

/** Messages are for logs and lists: without secrets, URLs as scheme and host. */
export type Delivery =
  | {
      readonly what: 'accepted'
      /** The reply of a receiver that accepted a drill: its status, or its answer with the number of the mail. */
      readonly receipt?: string | undefined
    }
  /** It did not arrive, or perhaps: to be tried again. After 408, 429, 5xx and faults of the network. */
  | {
      readonly what: 'later'
      readonly message: string
      /** Milliseconds for which the receiver asks for no messages. */
      readonly afterMs?: number | undefined
      readonly isPerhapsReceived: boolean
      readonly fault?: FaultClass | undefined
    }
  /** The receiver refuses it as it is. With `ids`, it refuses these notices only and has accepted the others. */
  | {
      readonly what: 'refused'
      readonly message: string
      readonly ids?: readonly string[] | undefined
      readonly fault?: FaultClass | undefined
    }

/** How far a drill has come behind a receiver that accepted it. */
export type TracedHop = {
  /** `listed`, `routed`, `notified`: the same in each look. */
  readonly hop: string
  /** With several instances, of which one. Scheme and host. */
  readonly at?: string | undefined
  /** `waiting`: a later look may show more. */
  readonly result: 'proven' | 'failed' | 'not proven' | 'waiting'
  /** One line without secrets. */
  readonly message: string
}

/** Looks at a receiver during a drill. */
export type DrillTrace = {
  /** Notes how the receiver is before the drill. Never rejects. */
  readonly begin: (signal: AbortSignal) => Promise<void>
  /** `incident`: the id of the incident of the drill. Never rejects. */
  readonly look: (incident: string, signal: AbortSignal) => Promise<readonly TracedHop[]>
}

/** Notifications about these subjects wait at a receiver that repeats by itself. Instants are milliseconds since 1970. */
export type Mute = {
  /** The id of the silence or of the acknowledgement. */
  readonly id: string
  readonly what: 'silence' | 'ack'
  /**
   * Its scope: monitors by a pattern as in `silences:` of svc.yaml, compared as `isMonitor` does (`Sql/*`,
   * `postgres orders`), or exactly one subject. Patterns never cover what svc reports about its own receivers.
   */
  readonly targets: readonly ({ readonly pattern: string } | { readonly subject: NoticeSubject })[]
  /** May lie in the future. */
  readonly from: number
  readonly until: number
  /** Who, as shown to people. */
  readonly by: string
  /** Why, on one line. */
  readonly reason: string
}

/** Where `mute` failed, and why. Both are safe to show. */
export type MuteFailure = {
  /** Scheme and host of the instance. */
  readonly place: string
  readonly message: string
}

export interface Receiver {
  /** Whether each notice is a message of its own, so that none waits for others. */
  readonly sendsEach?: boolean | undefined
  /** For lists, log and audit: scheme and host, without secrets. */
  describe(): { readonly name: string; readonly kind: string; readonly to: string }
  /**
   * Sends what changed. In order for each subject; the caller sends one batch at a time to each receiver. `message`: the
   * id of the message, for receivers by which several notices are one; by default, it follows from those of the notices.
   * Never rejects.
   */
  send(notices: readonly Notice[], signal: AbortSignal, message?: string): Promise<Delivery>
  /**
   * Repeats everything that stands for this receiver, every 30 s, with the watchdog if `isHealthy`. Absent for receivers
   * that remember. Never rejects.
   */
  renew?(standing: readonly Notice[], isHealthy: boolean, signal: AbortSignal): Promise<Delivery>
  /** The time that svc tells has shifted by so many milliseconds. For a receiver that keeps instants of its own. */
  shifted?(ms: number): void
  /** Absent: nothing behind the acceptance can be looked up. */
  trace?(): DrillTrace
  /**
   * Makes the silences of the receiver those of this list, and no others of this `serve.name`: creates what is missing, ends
   * what is not listed, and moves ends that changed. Call it with the whole list, every 30 s and whenever the list changes:
   * while nothing changes, it sends nothing for minutes at a time. Absent for receivers that send only what svc tells them.
   * Resolves with the instances where that failed, which the next call tries again; never rejects.
   */
  mute?(mutes: readonly Mute[], signal: AbortSignal): Promise<readonly MuteFailure[]>
  close(): Promise<void>
}
