import type { OpenOptions } from '../../core/open.ts'
import { serveDefaults } from '../../core/service.ts'

/** The configuration of a command that does not read svc.yaml. */
export const withoutFile: OpenOptions['config'] = {
  origin: undefined,
  types: {},
  serve: { ...serveDefaults },
  warnings: [],
}
