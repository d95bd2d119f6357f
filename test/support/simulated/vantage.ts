import { text } from 'node:stream/consumers'
import { type HttpPeer, httpPeer, pages } from './http-peer.ts'

/** The state of a simulated Vantage domain. Times are ms since 1970. */
export type VantageState = {
  online: boolean
  load: number
  services: { Identifier: string; accepting: boolean; unlicensed: number }[]
  machines: string[]
  stores: { Name: string; Offline: boolean; AvailableSpace: number; TotalSpace: number }[]
  failed: number[]
  active: number[]
  /** Bodies of the jobs that were submitted. */
  submitted: string[]
  /** How often a submitted job is read before it ends, and the state in which it does. */
  looks: number
  ends: number
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
  submitted: [],
  looks: 1,
  ends: 5,
})

/** The workflow of the domain, to which a test job may be submitted. */
export const testWorkflow = guid(4)

/** A server that speaks what public clients show of Vantage's REST interface. */
export function vantage(state: VantageState): Promise<HttpPeer> {
  const job = (state: number) => (time: number) => ({
    Identifier: guid(5),
    Name: 'clip',
    State: state,
    Started: `/Date(${time}-0700)/`,
    Updated: `/Date(${time}-0700)/`,
  })
  let looked = 0
  const answers = pages(() => ({
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
  }))
  return httpPeer((request, response) => {
    const { method, url } = request
    const json = { 'Content-Type': 'application/json' }
    if (method === 'POST' && url === `/Rest/Workflows/${testWorkflow}/Submit`) {
      void text(request).then((body) => {
        state.submitted.push(body)
        response.writeHead(200, json).end(JSON.stringify({ JobIdentifier: guid(6) }))
      })
      return
    }
    if (method === 'GET' && url === `/Rest/Jobs/${guid(6)}`) {
      looked += 1
      const State = looked > state.looks ? state.ends : 0
      response.writeHead(200, json).end(JSON.stringify({ Job: { Identifier: guid(6), State } }))
      return
    }
    // Whatever else is not a question would change the domain.
    if (method === 'GET') answers(request, response)
    else response.writeHead(405).end()
  })
}
