import type { Behaviour } from '../faults/faults.ts'

/** A message of the PostgreSQL protocol. */
export const postgresMessage = (type: string, ...parts: readonly (Buffer | string)[]): Buffer => {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)))
  const head = Buffer.from([type.charCodeAt(0), 0, 0, 0, 0])
  head.writeUInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}
const ready = postgresMessage('Z', 'I')

/**
 * A simulated PostgreSQL server that lets everyone in and answers every query with one row of one column, of the type
 * with this OID.
 */
export const postgresAnswering =
  (column: string, oid: number, value: string): Behaviour =>
  (socket) => {
    let signedIn = false
    socket.on('data', (request) => {
      if (!signedIn) {
        signedIn = true
        socket.write(Buffer.concat([postgresMessage('R', int32(0)), ready]))
      } else if (request[0] === 'Q'.charCodeAt(0)) {
        const field = Buffer.concat([Buffer.from(`${column}\0`), int32(0), Buffer.from([0, 0]), int32(oid)])
        const description = postgresMessage(
          'T',
          Buffer.from([0, 1]),
          field,
          Buffer.from([0, 4]),
          int32(-1),
          Buffer.from([0, 0]),
        )
        // Statements that are sent together have an answer each.
        const settings = request.includes('SET ') ? [postgresMessage('C', 'SET\0')] : []
        const row = postgresMessage('D', Buffer.from([0, 1]), int32(value.length), value)
        socket.write(Buffer.concat([...settings, description, row, postgresMessage('C', 'SELECT 1\0'), ready]))
      }
    })
  }
