import { checksOn, fail, machineKind, warn } from '../engine/index.ts'

const configured = checksOn<object>()({
  depth: 'Basic',
  results: { configured: 'Something of this type is configured' },
  settings: {
    message: { type: 'text', required: true, doc: 'The line to say' },
    level: { type: 'choice', values: ['warn', 'fail'], required: true, doc: 'How bad it is' },
  },
  observe: () => Promise.resolve(undefined),
  evaluate: (_, { message, level }) =>
    level === 'warn' ? warn('configured', message) : fail('configured', 'data', message),
})

/** Reports what the configuration lacks for a type: a warning if svc's own parts were checked, otherwise a failure. */
export default machineKind({
  name: 'configuration',
  title: 'What the configuration lacks',
  settings: {},
  internal: true,
  open: () => ({}),
  checks: [configured],
})
