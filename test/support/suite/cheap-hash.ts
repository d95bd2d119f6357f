import type { HashCost } from '../../../src/core/accounts/auth/index.ts'

/** For tests that sign in, and prove nothing about the hash: under 0.1 ms of processor time instead of 21 ms. */
export const cheapHash: HashCost = { memory: 8, passes: 1, parallelism: 1 }
