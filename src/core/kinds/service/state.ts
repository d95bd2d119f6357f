/** A service as its manager describes it. */
export type ServiceState = {
  /** `running`: as it should be. `changing`: being started, stopped or replaced. */
  readonly is: 'running' | 'changing' | 'stopped' | 'failed' | 'absent'
  /** The manager's own words: `active (running)`. */
  readonly words: string
  /** Milliseconds that it has been so. */
  readonly sinceMs?: number | undefined
  /** How often its manager has started it again after it ended. */
  readonly restarts?: number | undefined
  readonly pid?: number | undefined
  /** Why it is not running, as far as its manager says: `exit-code`, `exit code 1`. */
  readonly why?: string | undefined
}
