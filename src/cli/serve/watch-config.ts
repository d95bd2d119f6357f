import {
  afterLook,
  afterNewFiles,
  afterRefusal,
  isSettled,
  isToRead,
  lookEveryMs,
  newConfigWatch,
  overdue,
  type Stamp,
} from '../../core/watch/configuration/index.ts'
import { lookAgain } from './config-files.ts'

/** Looks take at most this part of the time: a svc.yaml may include thousands of files. */
const mostOfTime = 1 / 20

export type ConfigWatcher = {
  /** Looks from now on, and calls `offer` when there is a change to read. `tell` gets what has waited for too long. */
  readonly begin: (offer: () => Promise<void>, tell: (reason: string | undefined) => void) => void
  readonly end: () => void
  /** Whether a load that nobody asked for has read only files that had settled. If not, it waits for them. */
  readonly isSettled: (read: Stamp) => boolean
  /** Takes what the configuration in force was read from. */
  readonly inForce: (read: Stamp) => void
  /** The change waits for another one, or for somebody who asks for it. */
  readonly waits: (reason: string) => void
}

/** Watches the files from which the configuration in force was read. */
export function configWatcher(first: Stamp): ConfigWatcher {
  const now = (): number => performance.now()
  let watch = newConfigWatch(first, now())
  let timer: NodeJS.Timeout | undefined
  let hasEnded = false
  return {
    begin: (offer, tell) => {
      const look = async (): Promise<void> => {
        const beganAt = now()
        const { latest } = watch
        const files = await lookAgain(latest.keys())
        const tookMs = now() - beganAt
        if (hasEnded) return
        // A reload that ended meanwhile has read later.
        if (watch.latest === latest) watch = afterLook(watch, files, now())
        if (isToRead(watch, now())) await offer()
        tell(overdue(watch, now()))
        next(Math.max(lookEveryMs, tookMs / mostOfTime))
      }
      const next = (ms: number): void => {
        if (!hasEnded) timer = setTimeout(() => void look(), ms).unref()
      }
      next(lookEveryMs)
    },
    end: () => {
      hasEnded = true
      clearTimeout(timer)
    },
    isSettled: (read) => {
      const settled = isSettled(watch, read)
      if (!settled) watch = afterNewFiles(watch, read, now())
      return settled
    },
    inForce: (read) => {
      watch = newConfigWatch(read, now())
    },
    waits: (reason) => {
      watch = afterRefusal(watch, reason, now())
    },
  }
}
