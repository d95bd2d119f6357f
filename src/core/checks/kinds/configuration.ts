import { checksOn, fail, machineKind, notChecked, warn } from '../engine/index.ts'

const configured = checksOn<object>()({
  depth: 'Basic',
  results: { configured: 'Monitors are configured for this type' },
  settings: {
    message: { type: 'text', required: true, doc: 'Message of the result' },
    level: { type: 'choice', values: ['warn', 'fail', 'not checked'], required: true, doc: 'Severity of the result' },
  },
  observe: () => Promise.resolve(undefined),
  evaluate: (_, { message, level }) => {
    if (level === 'not checked') return notChecked('configured', 'configuration', message)
    return level === 'warn' ? warn('configured', message) : fail('configured', 'data', message)
  },
})

/**
 * Reports what the configuration lacks for a type: a warning if svc's own parts were checked, otherwise a failure. An
 * entry with mistakes is not checked.
 */
export default machineKind({
  name: 'configuration',
  title: 'What is missing from the configuration',
  cost: { machine: 'It reads svc.yaml.' },
  internal: true,
  open: () => ({}),
  checks: [configured],
})
