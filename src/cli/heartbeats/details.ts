import { showDuration } from '../../core/format.ts'
import type { ReportHeartbeatResponse } from '../../core/protocol/index.ts'
import type { ListOutput } from '../render/list.ts'
import { type FactRows, headline, moment, pairs } from '../render/table.ts'
import { receipts } from './lists.ts'

/** A heartbeat as the server received it. */
export function renderReceipt(answer: ReportHeartbeatResponse, target: string, output: ListOutput): string {
  const forMachines = receipts.single(answer, { target }, output)
  if (forMachines !== undefined) return forMachines
  const { screen } = output
  const { Name = '', ReceivedAt, ClockSkew = 0 } = answer
  const facts: FactRows = [
    ['Target', target],
    ['Received', ReceivedAt === undefined ? '' : moment(ReceivedAt)],
    ['Clock', Math.abs(ClockSkew) < 2_000 ? '' : { text: skewOf(ClockSkew), style: 'caution' }],
  ]
  return `${headline('ok', `The heartbeat of ${Name} is received`, screen)}\n${pairs(facts, screen)}`
}

const skewOf = (ms: number): string => `${showDuration(Math.abs(ms))} ${ms > 0 ? 'ahead of' : 'behind'} the server's`
