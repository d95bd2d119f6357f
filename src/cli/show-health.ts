import { HealthCheckResponse } from '../core/protocol/index.ts'
import type { Entry } from '../core/reports/index.ts'
import { isReport, type Outcome, type Output } from './health-run.ts'
import { renderError } from './render/errors.ts'
import { showsUnicode, useColour } from './terminal.ts'

type Shown = {
  readonly text: string /** Where the format has codes of its own. */
  readonly exitCode?: number | undefined
}

/** Prints what was asked, in the format asked for. */
export async function showHealth(
  outcomes: readonly Outcome[],
  as: { readonly output: Output; readonly target: string; readonly mode: string },
): Promise<Shown> {
  if (as.output === 'json') return { text: await json(outcomes, as) }
  const entries = outcomes.map((outcome) => entry(outcome, as))
  if (isReport(as.output)) {
    const { nagiosState, reports } = await import('../core/reports/index.ts')
    const { default: report } = await reports[as.output]()
    return { text: report.render(entries), exitCode: as.output === 'nagios' ? nagiosState(entries) : undefined }
  }
  const { renderHealth, renderPlain } = await import('./render/index.ts')
  if (!process.stdout.isTTY) return { text: renderPlain(entries) }
  return {
    text: renderHealth(entries, {
      width: process.stdout.columns || 80,
      colour: useColour(process.stdout),
      unicode: showsUnicode(process.env, process.platform),
      ages: outcomes.map((outcome) => outcome.ageSeconds),
    }),
  }
}

function entry(outcome: Outcome, as: { readonly target: string; readonly mode: string }): Entry {
  const base = { Target: as.target, ServerType: outcome.type, ExecutionMode: as.mode, ExitCode: outcome.exitCode }
  return outcome.response
    ? { ...base, Response: outcome.response }
    : { ...base, Error: renderError.json(outcome.fault, as.target).error }
}

/** The protocol's own document; for several types, an array of them with what they were asked. */
async function json(
  outcomes: readonly Outcome[],
  as: { readonly target: string; readonly mode: string },
): Promise<string> {
  const { encodeJson } = await import('../core/wire/index.ts')
  const [only] = outcomes
  if (outcomes.length === 1 && only?.response) return encodeJson(HealthCheckResponse, only.response)
  const results = outcomes.map((outcome) => {
    const head = JSON.stringify({
      Target: as.target,
      ServerType: outcome.type,
      ExecutionMode: as.mode,
      ExitCode: outcome.exitCode,
    }).slice(0, -1)
    const tail = outcome.response
      ? `"Response":${encodeJson(HealthCheckResponse, outcome.response)}`
      : `"Error":${JSON.stringify(renderError.json(outcome.fault, as.target).error)}`
    return `${head},${tail}}`
  })
  return `{"Results":[${results.join(',')}]}`
}
