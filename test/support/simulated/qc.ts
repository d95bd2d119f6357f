import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { type HttpPeer, httpPeer, pages } from './http-peer.ts'

/** The state of a simulated quality control of files; no product's interface is public. */
export type QcState = {
  expires: Date
  freeSeats: number
  workers: { state: string }[]
  tasks: { state: string; updated: string }[]
  /** Returns the verdict on a clip. */
  verdict: (file: string) => string
  /** How often a job is read before it ends. */
  looks: number
  /** The state in which a job ends. */
  ends: string
  /** The verdict of a job that has not ended. */
  early: string | undefined
  /** The status that a submitted job gets; below 300 it is made. */
  accepts: number
  /** Jobs that are there, by id. */
  readonly jobs: Map<string, { readonly file: string; looks: number }>
}

const ago = (ms: number): string => new Date(Date.now() - ms).toISOString()

/** The clips of a test, by the paths that the analyser knows them by. */
export const goodClip = 'D:\\probe\\good "2 s".mxf'
export const badClip = 'D:\\probe\\bad.mxf'

/** One in which all is well. */
export const soundQc = (): QcState => ({
  expires: new Date(Date.now() + 200 * 86_400_000),
  freeSeats: 3,
  workers: [{ state: 'idle' }, { state: 'offline' }],
  tasks: [
    { state: 'running', updated: ago(60_000) },
    { state: 'done', updated: ago(86_400_000) },
  ],
  verdict: (file) => (file.includes('bad') ? 'failed' : 'passed'),
  looks: 1,
  ends: 'done',
  early: undefined,
  accepts: 201,
  jobs: new Map(),
})

export const qc = (state: QcState): Promise<HttpPeer> => {
  let made = 0
  return httpPeer((request, response) => {
    if (request.url !== '/' && request.headers['x-api-key'] !== 'qc-key-123') {
      response.writeHead(401).end()
      return
    }
    if (request.url?.startsWith('/api/jobs')) {
      const id = `qc/${made + 1}`
      if (request.method === 'POST') made += 1
      void job(state, id, request, response)
      return
    }
    pages(() => ({
      '/': '<html>QC</html>',
      '/licence': { expires: state.expires.toISOString(), freeSeats: state.freeSeats },
      '/workers': { workers: state.workers },
      '/tasks': { tasks: state.tasks },
    }))(request, response)
  })
}

/** Takes, tells of and removes jobs, each of one clip. */
async function job(state: QcState, id: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const answer = (status: number, body?: unknown): void => {
    response.writeHead(status, { 'Content-Type': 'application/json' })
    response.end(body === undefined ? undefined : JSON.stringify(body))
  }
  if (request.method === 'POST') {
    const { file } = JSON.parse(await text(request)) as { file: string }
    if (state.accepts < 300) state.jobs.set(id, { file, looks: 0 })
    return answer(state.accepts, state.accepts < 300 ? { id } : { error: 'full' })
  }
  const jobName = decodeURIComponent(request.url?.replace('/api/jobs/', '') ?? '')
  const result = state.jobs.get(jobName)
  if (!result) return answer(404)
  if (request.method === 'DELETE') {
    state.jobs.delete(jobName)
    return answer(204)
  }
  result.looks += 1
  const ended = result.looks > state.looks
  const verdict = ended ? state.verdict(result.file) : state.early
  return answer(200, { id: jobName, state: ended ? state.ends : 'running', verdict })
}
