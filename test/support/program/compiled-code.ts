import { fileURLToPath } from 'node:url'

/**
 * For the environment of a program under test: where it keeps its compiled code, from one run to the next. Most of a
 * start is compiling.
 */
export const compiledCode = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../../node_modules/.cache/svc-tests', import.meta.url)),
} as const
