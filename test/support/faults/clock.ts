import { existsSync } from 'node:fs'

const library = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path))
export const fakeTimeMissing = library === undefined ? 'faketime is not installed' : undefined

/** The wall clock of a process is ahead by this, and its monotonic clock is right. */
export const aheadBy = (by: string): Record<string, string> => ({
  LD_PRELOAD: library ?? '',
  FAKETIME: `+${by}`,
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
  DONT_FAKE_MONOTONIC: '1',
})
