import type { Json } from './open-json.ts'

/** Parameters that are no fields of a request. */
export const parameters: Json = {
  correlationId: {
    name: 'X-Correlation-Id',
    in: 'header',
    description: 'An id of the caller for this request; else that of traceparent, else a new one',
    schema: { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$' },
  },
  traceparent: {
    name: 'traceparent',
    in: 'header',
    description: 'W3C Trace Context: its trace id names the request where X-Correlation-Id does not',
    schema: { type: 'string' },
  },
  fresh: {
    name: 'Cache-Control',
    in: 'header',
    description: 'no-cache asks for a run that begins after this request',
    schema: { type: 'string' },
  },
  methodOverride: {
    name: 'X-Http-Method-Override',
    in: 'header',
    description: 'The verb that this POST stands for',
    schema: { type: 'string' },
  },
  callback: {
    name: 'callback',
    in: 'query',
    description: 'JSONP: the function that the JSON is handed to',
    schema: { type: 'string', pattern: '^([A-Za-z_$][A-Za-z0-9_$]{0,49})?(\\.[A-Za-z_$][A-Za-z0-9_$]{0,49})*$' },
  },
  continue: {
    name: 'continue',
    in: 'query',
    description: 'Where a page goes on after signing in: an address of this server',
    schema: { type: 'string' },
  },
}
