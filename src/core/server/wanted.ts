import { overHttp, type ReportName } from '../reports/index.ts'
import { formatNamed, negotiate } from '../wire/index.ts'
import type { Exchange } from './exchange.ts'
import type { FoundOperation } from './routes.ts'
import type { Site } from './site.ts'
import type { Target, Wanted } from './target.ts'

/** F1, F5. Throws BadRequest for a callback that is no name (F2). Remembers what the last caller of a target wanted. */
export function wantedOf(site: Site, { request, told }: Exchange, found: FoundOperation, target: Target): Wanted {
  const { method } = told
  // R2: routes that are named after the request do not look at Accept.
  const accept = found.style === 'route' ? request.headers.accept : undefined
  const { wanted: before, format, jsconfig } = target
  if (before !== undefined && before.method === method && before.accept === accept) return before
  const callback = site.options.jsonp ? target.callback : undefined
  const negotiated = negotiate({
    method,
    suffix: found.format,
    format,
    accept,
    callback,
    jsconfig,
    names: site.options.names,
  })
  const free = found.operation === 'healthCheck' && found.format === undefined && negotiated.callback === undefined
  const wanted = { method, accept, negotiated, report: free ? reportOf(format, accept) : undefined }
  target.wanted = wanted
  return wanted
}

/** The report that `?format=` or `Accept` asks for, where a path or a callback has not decided already. */
function reportOf(format: string | undefined, accept: string | undefined): ReportName | undefined {
  if (format !== undefined) {
    const name = overHttp.format.find((known) => known === format.toLowerCase())
    // A format of the interface decides; an unknown one falls through to Accept (F1).
    if (name !== undefined || formatNamed(format) !== undefined) return name
  }
  return accept === undefined
    ? undefined
    : Object.entries(overHttp.accept).find(([type]) => type === preferred(accept))?.[1]
}

/** The media type of the highest quality; of equals the one listed first. */
function preferred(accept: string): string | undefined {
  const ranges = accept.split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const quality = parameters.find((parameter) => parameter.startsWith('q='))
    return { type, quality: quality === undefined ? 1 : Number(quality.slice(2)) }
  })
  return ranges.filter(({ quality }) => quality > 0).sort((a, b) => b.quality - a.quality)[0]?.type
}
