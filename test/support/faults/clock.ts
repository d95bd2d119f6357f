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

/**
 * The wall clock of a process that is ahead by what a file says, and follows it: `+3600` is an hour. Its monotonic clock
 * is right.
 */
export const aheadByFile = (file: string): Record<string, string> => ({
  LD_PRELOAD: library ?? '',
  FAKETIME_TIMESTAMP_FILE: file,
  FAKETIME_NO_CACHE: '1',
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
  DONT_FAKE_MONOTONIC: '1',
})
