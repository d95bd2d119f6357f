import { fail, monitorKind, warn } from '../engine/index.ts'

/** Says what the configuration lacks for a type: a warning where svc's own parts were checked, else a failure. */
export default monitorKind({
  name: 'configuration',
  title: 'What the configuration lacks',
  settings: {
    message: { type: 'text', required: true, doc: 'The line to say' },
    level: { type: 'choice', values: ['warn', 'fail'], required: true, doc: 'How bad it is' },
  },
  checks: [{ name: 'configured', depth: 'Basic', doc: 'Something of this type is configured' }],
  internal: true,
  async *observe(settings): AsyncGenerator<string> {
    yield settings.message
  },
  evaluate: (message, settings) =>
    settings.level === 'warn' ? warn('configured', message) : fail('configured', 'data', message),
})
