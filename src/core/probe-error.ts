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
