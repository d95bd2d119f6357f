import type { Run } from './engine/index.ts'
import type { HealthCheckResponse, RunDocument, ServerType } from './protocol/index.ts'
import { healthCheckResponse, type RunDocumentOptions, type RunView, runDocument } from './reports/index.ts'

export type RunDocuments = { readonly run: RunDocument; readonly response: HealthCheckResponse }
type Flags = RunDocumentOptions['flags']
export type DocumentsOf = (run: Run, type: ServerType, flags: Flags, view: RunView) => RunDocuments

/**
 * The documents of a run without the correlation id, each made once and kept as long as the run. Callers that share the
 * run with the same options share them, and so can keep what they write of them.
 */
export function rememberDocuments(): DocumentsOf {
  const documentsByRun = new WeakMap<Run, Map<string, RunDocuments>>()
  return (run, type, flags, view) => {
    const ofRun = documentsByRun.get(run) ?? new Map<string, RunDocuments>()
    documentsByRun.set(run, ofRun)
    const key = `${view} ${flags.IncludeServerStateInformation === true} ${flags.SuppressDeploymentErrors === true}`
    const before = ofRun.get(key)
    if (before) return before
    const document = runDocument(run, { type, correlationId: '', flags, view })
    const made = { run: document, response: healthCheckResponse(document) }
    ofRun.set(key, made)
    return made
  }
}
