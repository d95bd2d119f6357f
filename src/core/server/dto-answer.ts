import type { OperationSpec } from '../protocol/index.ts'
import { attachment, type Negotiated } from '../wire/index.ts'
import type { HttpAnswer } from './answer.ts'
import { encoded } from './faults.ts'

/** An operation's answer in the negotiated format, with further headers, flat. A CSV is a file to keep (F3). */
export async function dtoAnswer(
  row: OperationSpec,
  response: unknown,
  negotiated: Negotiated,
  headers: readonly string[] = [],
): Promise<HttpAnswer> {
  const file = negotiated.format === 'csv' ? ['Content-Disposition', attachment(row.name)] : []
  return { status: 200, ...(await encoded(row.response, response, negotiated)), headers: [...file, ...headers] }
}
