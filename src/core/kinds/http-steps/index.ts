import { loadXmlParser } from '../../assert/xml.ts'
import { includes, monitorKind } from '../../engine/index.ts'
import { urlTarget } from '../../net/http/route.ts'
import { loadFtpLists } from '../ftp/index.ts'
import { evaluateStep } from './judge.ts'
import { stepsProblem } from './problem.ts'
import { runSteps, signsAnywhere } from './run.ts'
import { stepsSettings } from './settings.ts'

/** Does what a client does, step by step: signs in, reads, makes, uses and removes. */
export default monitorKind({
  name: 'http-steps',
  title: 'A sequence of HTTP requests does what a client does',
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
  signsIn: (given, mode) => includes(mode, 'Advanced') && signsAnywhere(given),
  validate: stepsProblem,
  observe: runSteps,
  evaluate: (seen, given) => evaluateStep(seen, given.latency),
})
