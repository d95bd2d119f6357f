import { type HttpPeer, httpPeer, pages } from './http-peer.ts'

/** What a simulated quality control of files is like; no product's interface is public. */
export type QcState = {
  expires: Date
  freeSeats: number
  workers: { state: string }[]
  tasks: { state: string; updated: string }[]
}

const ago = (ms: number): string => new Date(Date.now() - ms).toISOString()

/** One in which all is well. */
export const soundQc = (): QcState => ({
  expires: new Date(Date.now() + 200 * 86_400_000),
  freeSeats: 3,
  workers: [{ state: 'idle' }, { state: 'offline' }],
  tasks: [
    { state: 'running', updated: ago(60_000) },
    { state: 'done', updated: ago(86_400_000) },
  ],
})

export const qc = (state: QcState): Promise<HttpPeer> =>
  httpPeer((request, response) => {
    if (request.url !== '/' && request.headers['x-api-key'] !== 'qc-key-123') {
      response.writeHead(401).end()
      return
    }
    pages(() => ({
      '/': '<html>QC</html>',
      '/licence': { expires: state.expires.toISOString(), freeSeats: state.freeSeats },
      '/workers': { workers: state.workers },
      '/tasks': { tasks: state.tasks },
    }))(request, response)
  })
