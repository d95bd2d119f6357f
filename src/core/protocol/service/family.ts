/** Metrics as data: families of samples with labels, which the reports write in the formats of Prometheus. */

export type Labels = Readonly<Record<string, string | undefined>>
export type Sample = {
  /** Undefined and empty labels are left out: to Prometheus both are the same. */
  readonly labels?: Labels
  readonly value: number
  /** Never omitted for the sake of a limit. */
  readonly urgent?: boolean | undefined
}

export type Family = {
  /** Without the suffix that the format adds for its type: `_total` for a counter, `_info` for an info. */
  readonly name: string
  readonly type: 'gauge' | 'counter' | 'info'
  /** One line. */
  readonly help: string
  readonly samples: readonly Sample[]
  /** How samples count together for readers who may not see a label that tells them apart. Absent: their sum. */
  readonly together?: 'sum' | 'min' | 'max'
}
