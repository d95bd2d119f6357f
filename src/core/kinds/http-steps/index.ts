import { loadXmlParser } from '../../assert/xml.ts'
import { includes, type Kind } from '../../engine/index.ts'
import { urlTarget } from '../../net/http/route.ts'
import { loadFtpLists } from '../ftp/index.ts'
import { runSteps } from './sequence.ts'
import { signsAnywhere, stepsSettings } from './settings.ts'
import { validate } from './validate.ts'

/**
 * Does what a client does, step by step: signs in, reads, makes, uses and removes. Its settings say which checks there
 * are, and a step that fails decides what follows: so it runs by itself instead of being made of checks.
 */
const steps: Kind<typeof stepsSettings> = {
  name: 'http-steps',
  title: 'A sequence of HTTP requests does what a client does',
  runsOn: 'network',
  preload: () => Promise.all([loadXmlParser(), loadFtpLists()]),
  settings: stepsSettings,
  checks: [
    {
      name: 'connect',
      depth: 'Advanced',
      doc: 'The port accepts a connection; over https the server is who it should be',
    },
    {
      name: 'step',
      depth: 'Advanced',
      doc: 'Each of `steps` is answered as expected, in time; the first that fails ends the sequence',
    },
    {
      name: 'cleanup',
      depth: 'Advanced',
      doc: 'With `cleanup`: what the steps made is removed, or named as left behind',
      when: ['cleanup'],
    },
  ],
  target: urlTarget,
  signsIn: (settings, mode) => includes(mode, 'Advanced') && signsAnywhere(settings),
  validate,
  run: runSteps,
}
export default steps
