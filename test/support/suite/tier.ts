import { expect } from 'vitest'

/**
 * Whether the tests of this file run in the quick tier. A quick file that runs a part of a matrix, or fewer runs of a
 * property, has a file of the slow tier beside it that imports it and runs the rest. To be called while the file declares its tests.
 */
export const isQuick = (): boolean => {
  const file = expect.getState().testPath
  if (file === undefined) throw new Error('only a file of tests has a tier')
  return !/\.(?:long|peers)\.test\.ts$/.test(file)
}
