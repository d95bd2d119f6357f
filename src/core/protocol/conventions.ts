/**
 * What the interface has no field for and this service says in its text, so that a reader can tell
 * it again: the interface knows two states and no fault class.
 */

/** A warning is Success on the wire; this prefix of StatusMessage tells it from an ok. */
export const warningPrefix = 'warning: '
/** The last of a failed result's ErrorMessages names its fault class, e.g. `fault: refused`. */
export const faultPrefix = 'fault: '
