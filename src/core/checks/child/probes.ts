/** A probe that runs in the child. Its input and its reply must be JSON values. */
export type Probe = (input: unknown) => Promise<unknown>
export type Probes = Readonly<Record<string, () => Promise<{ readonly default: Probe }>>>

/** Every probe that runs in a child process, by name. */
export const probes: Probes = {
  sqlite: () => import('../kinds/sqlite/probe.ts'),
}
