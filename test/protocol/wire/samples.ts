import { Fault } from '../../../src/core/base/errors.ts'
import type { AuthenticateResponse, HealthCheckResponse } from '../../../src/core/protocol/index.ts'

const start = new Date('2026-11-20T12:00:00.089Z')

export const passing: HealthCheckResponse = {
  Status: 'Success',
  StatusMessage: 'App: 1 monitor passed',
  CorrelationId: 'c1',
  FailedMonitorCount: 0,
  MonitorSummaries: [
    {
      MonitorName: 'tcp web1',
      Status: 'Success',
      Results: [{ MonitoringName: 'connect', Status: 'Success', StatusMessage: 'connected after 2 ms' }],
      ErrorMessages: [],
    },
  ],
  ExecutionMetrics: { StartDateTime: start, EndDateTime: start, Duration: 15.1 },
}

/** Texts that every format must guard. */
export const failing: HealthCheckResponse = {
  ServerState: { ServerName: 'vm, "old"', TotalRamInMb: 24105.5, AvailableRamInMb: 20000, UsedCpuPercent: 12.25 },
  Status: 'Failure',
  StatusMessage: 'Ftp: "data", [connection] timed out\nlook at the firewall',
  CorrelationId: '',
  FailedMonitorCount: 1,
  MonitorSummaries: [
    {
      MonitorName: 'ftp ftp1',
      Status: 'Failure',
      Results: [
        {
          MonitoringName: 'data connection',
          Status: 'Failure',
          StatusMessage: 'PASV said {10.0.0.5:50021}',
          ErrorMessages: ['a,b', '', ' kept ', '/Date(0)/'],
        },
      ],
      ErrorMessages: [],
    },
    { MonitorName: 'host', Status: 'Success', Results: [] },
  ],
  ExecutionMetrics: { StartDateTime: start, EndDateTime: new Date('2026-11-20T12:01:02Z'), Duration: 61_911 },
}

export const signedIn: AuthenticateResponse = {
  UserId: '7',
  SessionId: 'AbC',
  UserName: 'ann',
  DisplayName: '',
  Roles: ['Admin', 'a,b'],
  Permissions: [],
  Meta: { reason: '=1+1' },
}

export const faultOf = (act: () => unknown): Fault => {
  try {
    act()
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

export const asyncFaultOf = async (act: () => Promise<unknown>): Promise<Fault> => {
  try {
    await act()
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error('nothing was thrown')
}
