/** What a terminal or a pipe gets. */
export { renderError } from './errors.ts'
export { renderHealth, type Screen } from './health.ts'
export { type Cell, type Column, type Line, type Shrink, type Table, table } from './listing.ts'
export { cut, padEnd, width, wrap } from './width.ts'
