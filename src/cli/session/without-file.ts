import { serveDefaults } from '../../core/protocol/service/service.ts'
import type { OpenOptions } from '../../core/service/open.ts'

/** The configuration of a command that does not read svc.yaml. */
export const withoutFile: OpenOptions['config'] = {
  origin: undefined,
  types: {},
  serve: { ...serveDefaults },
  warnings: [],
}
