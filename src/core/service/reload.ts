import type { Part } from './part.ts'

/** A reload that was given up before anything was decided about the configuration. It counts as none. */
export class GivenUp extends Error {}

export type ReloadPart = Required<Pick<Part, 'metrics'>> & {
  /** Runs an attempt to reload the configuration, and remembers whether it succeeded. */
  readonly attempt: <T>(work: () => Promise<T>) => Promise<T>
}

/** The part of /metrics about the configuration in force. `now`: seconds since 1970. */
export function reloadPart(now: () => number): ReloadPart {
  let isSuccessful = true
  let succeededAt = now()
  return {
    attempt: async (work) => {
      try {
        const result = await work()
        succeededAt = now()
        isSuccessful = true
        return result
      } catch (error) {
        if (!(error instanceof GivenUp)) isSuccessful = false
        throw error
      }
    },
    metrics: async () => [
      {
        name: 'svc_config_last_reload_successful',
        type: 'gauge',
        help: '1 if the last attempt to load the configuration succeeded, 0 if the one before it is still in force.',
        samples: [{ value: Number(isSuccessful) }],
      },
      {
        name: 'svc_config_last_reload_success_timestamp_seconds',
        type: 'gauge',
        help: 'When the configuration in force was loaded.',
        samples: [{ value: succeededAt }],
      },
    ],
  }
}
