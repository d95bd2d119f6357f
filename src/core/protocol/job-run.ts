/** The last run of a job that reports its start and its end. Times are milliseconds since 1970. */
export type JobRun = {
  /** The time of the start by the clock of the job: identifies the run, and is not compared with our clock. */
  readonly id: number
  /** When the report of the start was received, or the end less the duration when that report was lost. */
  readonly startedAt: number
  /** When the report of the end was received. Absent while the job runs. */
  readonly endedAt?: number | undefined
  /** Milliseconds, by the clock of the job. */
  readonly durationMs?: number | undefined
  /** 128 plus the number of the signal that ended the job. */
  readonly exitCode?: number | undefined
  /** Milliseconds that the run may take, as the job announced. */
  readonly maxMs?: number | undefined
  /** The run before it, if that had not ended when this one began. Absent once its end has been reported. */
  readonly overlaps?: Pick<JobRun, 'id' | 'startedAt'> | undefined
  /** The end of its output, sanitized and with secrets redacted by the sender as far as it knew them. */
  readonly output?: string | undefined
}
