/** The class of a fault: an operator's first question. */
export const faultClasses = [
  'dns',
  'refused',
  'timeout',
  'tls',
  'auth',
  'protocol',
  'threshold',
  'data',
  'dependency',
  'internal',
] as const
export type FaultClass = (typeof faultClasses)[number]

/** Thrown by `observe` when it knows the cause better than an error code could say. */
export class ProbeError extends Error {
  override readonly name: string = 'ProbeError'
  readonly fault: FaultClass
  readonly details: readonly string[]
  constructor(fault: FaultClass, message: string, details: readonly string[] = []) {
    super(message)
    this.fault = fault
    this.details = details
  }
}

/** Thrown when the server refuses the sign-in of a monitor. */
export class RefusedSignInError extends ProbeError {
  override readonly name = 'RefusedSignInError'
  /** Why, in a few words without the server and the account: `wrong password`. */
  readonly reason: string
  constructor(message: string, reason: string, details: readonly string[] = []) {
    super('auth', message, details)
    this.reason = reason
  }
}

/** `who` is the account as messages show it, `reason` as in `RefusedSignInError`. */
export const refusedSignIn = (
  address: string,
  who: string,
  reason: string,
  details: readonly string[] = [],
): RefusedSignInError => new RefusedSignInError(`${address} refused the sign-in of ${who}: ${reason}`, reason, details)

/**
 * Thrown by `observe` when the account may not read what the check needs. The check is then reported as not checked.
 * `details` begin with the statement that grants the privilege.
 */
export class MissingPrivilegeError extends ProbeError {
  override readonly name = 'MissingPrivilegeError'
  constructor(message: string, details: readonly string[]) {
    super('data', message, details)
  }
}

/**
 * Thrown when the way to the server failed and not the server, which was never reached: nothing is known of it.
 * `configuration`: this machine does not have what svc.yaml names. `route`: no route, or a proxy that does not connect.
 */
export class NotReachedError extends ProbeError {
  override readonly name = 'NotReachedError'
  readonly reason: 'configuration' | 'route'
  constructor(reason: 'configuration' | 'route', message: string, details: readonly string[] = []) {
    super('refused', message, details)
    this.reason = reason
  }
}
