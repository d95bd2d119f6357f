import type { MariadbServer } from './mariadb.ts'

/** A fault on a server, and how to take it back. */
export type PlantedFault = { readonly end: () => Promise<void> }

/** A source refuses the writes of clients, as after a failover that was not finished. */
export async function readOnly(server: MariadbServer): Promise<PlantedFault> {
  await server.query('SET GLOBAL read_only = 1')
  return { end: async () => void (await server.query('SET GLOBAL read_only = 0')) }
}
