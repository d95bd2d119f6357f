import { includes } from '../engine.ts'
import { loadFtpLists } from '../files/ftp-list.ts'
import { monitorKind } from '../monitor.ts'
import { urlTarget } from '../probe/http-route.ts'
import { loadXmlParser } from '../probe/xml.ts'
import { judgeStep } from '../steps/judge.ts'
import { stepsProblem } from '../steps/problem.ts'
import { runSteps, signsAnywhere } from '../steps/run.ts'
import { stepsSettings } from '../steps/settings.ts'

/** Does what a client does, step by step: signs in, reads, makes, uses and removes. */
export default monitorKind({
  kind: 'http-steps',
  title: 'A sequence of HTTP requests does what a client does',
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
  contradiction: stepsProblem,
  preload: () => Promise.all([loadXmlParser(), loadFtpLists()]),
  observe: runSteps,
  judge: (seen, given) => judgeStep(seen, given.latency),
})
