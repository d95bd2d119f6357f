import { findProgram } from './server.ts'

/** The program, or undefined. */
export const chronyd = findProgram('chronyd')
export const chronyMissing = chronyd === undefined ? 'chrony is not installed' : undefined
