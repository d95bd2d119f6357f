import { type HttpPeer, httpPeer, pages } from './http-peer.ts'

/** What a simulated Vantage domain is like. Times are ms since 1970. */
export type VantageState = {
  online: boolean
  load: number
  services: { Identifier: string; accepting: boolean; unlicensed: number }[]
  machines: string[]
  stores: { Name: string; Offline: boolean; AvailableSpace: number; TotalSpace: number }[]
  failed: number[]
  active: number[]
}

const guid = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`

/** A domain in which all is well. */
export const soundVantage = (): VantageState => ({
  online: true,
  load: 35,
  services: [
    { Identifier: guid(1), accepting: true, unlicensed: 0 },
    { Identifier: guid(2), accepting: true, unlicensed: 0 },
  ],
  machines: [guid(3)],
  stores: [{ Name: 'Store', Offline: false, AvailableSpace: 600, TotalSpace: 1_000 }],
  failed: [Date.now() - 7 * 3_600_000],
  active: [Date.now() - 5 * 60_000],
})

/** A server that speaks what public clients show of Vantage's REST interface. */
export function vantage(state: VantageState): Promise<HttpPeer> {
  const job = (state: number) => (time: number) => ({
    Identifier: guid(5),
    Name: 'clip',
    State: state,
    Started: `/Date(${time}-0700)/`,
    Updated: `/Date(${time}-0700)/`,
  })
  return httpPeer(
    pages(() => ({
      '/Rest/Domain/Online': { Online: state.online },
      '/Rest/Domain/Version': { Version: '8.1.0' },
      '/Rest/Domain/Load/CPU': { Load: state.load },
      '/Rest/Services': { Services: state.services.map(({ Identifier }) => ({ Identifier, Name: 'Transport' })) },
      ...Object.fromEntries(
        state.services.map(({ Identifier, accepting, unlicensed }) => [
          `/Rest/Services/${Identifier}/Metrics`,
          { Metric: { AcceptingWork: accepting, FailedLicenseCount: unlicensed } },
        ]),
      ),
      '/Rest/Machines': { Machines: state.machines.map((Identifier) => ({ Identifier })) },
      '/Rest/Stores': { Stores: state.stores },
      '/Rest/Workflows': { Workflows: [{ Identifier: guid(4), Name: 'Proxy', State: 1 }] },
      [`/Rest/Workflows/${guid(4)}/Jobs?filter=Failed`]: { Jobs: state.failed.map(job(4)) },
      [`/Rest/Workflows/${guid(4)}/Jobs?filter=Active`]: { Jobs: state.active.map(job(0)) },
    })),
  )
}
