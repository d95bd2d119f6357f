import { exits } from '../errors.ts'
import type { Entry } from '../reports/index.ts'
import type { RecentRun } from '../service.ts'

type Finished = Pick<RecentRun, 'type' | 'mode' | 'response'>

/** A finished run as the reports read it. */
export const entryOf = ({ type, mode, response }: Finished, target: string): Entry => ({
  Target: target,
  ServerType: type,
  ExecutionMode: mode,
  ExitCode: response.Status === 'Success' ? exits.ok.code : exits.unhealthy.code,
  Response: response,
})
