import { filesWithin } from '../../../src/core/base/files/index.ts'

/** Paths as the product uses them. Tests use local ones. */
export const files = filesWithin(10_000)
