import { setFlagsFromString } from 'node:v8'

/**
 * Settings of V8 that hold memory down while there are many short-lived requests: of a server (S3), or to many servers. V8 reads both at
 * each collection. By default, the space of new objects grows to 32 MiB and its copy, and the rest of the heap to four
 * times what is in use, before V8 collects what a flood leaves behind (decision 0120).
 */
export function limitGarbage(): void {
  // The space of new objects keeps the size that it has.
  setFlagsFromString('--semi-space-growth-factor=1')
  // The rest of the heap grows by half between two collections.
  setFlagsFromString('--heap-growing-percent=50')
}
