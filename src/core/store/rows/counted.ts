import type { Db } from '../tables.ts'

/** How many rows a table has. */
export async function counted(tx: Db, table: 'heartbeats' | 'readings'): Promise<number> {
  const { n } = await tx
    .selectFrom(table)
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .executeTakeFirstOrThrow()
  return n
}
