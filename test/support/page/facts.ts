import type { ServerType } from '../../../src/core/protocol/index.ts'
import type { RuntimeFacts } from '../../../src/core/protocol/service/service.ts'
import type { BoardFacts } from '../../../src/core/server/pages/board-markup.ts'
import type { PageFacts } from '../../../src/core/server/pages/page-markup.ts'

/** The one place of the tests that knows which facts are required. A test states those that it is about. */

/** The facts of a core without a store and without svc.yaml. */
export const runtimeFacts = (more: Partial<RuntimeFacts> = {}): RuntimeFacts => ({
  store: undefined,
  configuration: undefined,
  types: [],
  ownTypes: ['App', 'Sql', 'Identity'],
  ...more,
})

/** The facts of a status page for a stranger, on which these types are configured. */
export const pageFacts = (types: readonly ServerType[], more: Partial<PageFacts> = {}): PageFacts => ({
  base: 'http://svc',
  user: undefined,
  configuration: undefined,
  configured: types,
  answered: types,
  others: [],
  at: new Date(0),
  report: undefined,
  refusal: undefined,
  ...more,
})

/** The facts of a board of all types, for a stranger who may read everything. */
export const boardFacts = (more: Partial<BoardFacts> = {}): BoardFacts => ({
  user: undefined,
  types: undefined,
  incidents: undefined,
  reads: () => true,
  at: new Date(0),
  target: '/board',
  ...more,
})
