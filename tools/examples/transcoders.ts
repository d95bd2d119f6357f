import { utimesSync } from 'node:fs'
import { carbon, soundCarbon } from '../../test/support/simulated/carbon.ts'
import { qc, soundQc } from '../../test/support/simulated/qc.ts'
import { soundVantage, vantage } from '../../test/support/simulated/vantage.ts'
import { during, type Example } from './example.ts'

const hour = 3_600_000

export const vantageExample: Example = {
  type: 'XcodeV',
  title: 'Transcoder (Vantage)',
  meaning:
    'Telestream Vantage, asked by its REST interface. That is an inference from the letter V and from what transcoders there are; if yours is something else, write other monitors. What the interface answers is taken from public client code.',
  peers: '**A simulated Vantage domain.** No real one was ever asked.',
  show: (stage) =>
    during(async (onEnd) => {
      const state = soundVantage()
      const server = await vantage(state)
      onEnd(() => server[Symbol.asyncDispose]())
      stage.port(server.port, 18_676)
      const clip = stage.file('watch/clip-0412.mxf', 'x')
      const folder = `${stage.folder}/watch`
      await stage.yaml(`types:
  XcodeV:
    host: false
    monitors:
      - profile: vantage
        name: west
        host: 127.0.0.1                # the domain controller; 8676 is its usual port
        port: ${server.port}
        folder: ${folder}
        failedJobs: {warn: 0, limit: 5}
        activeFor: {warn: 4h, limit: 12h}
`)
      await stage.list()
      await stage.green()

      state.active.push(Date.now() - 13 * hour)
      for (let n = 0; n < 7; n += 1) state.failed.push(Date.now() - (n + 1) * 5 * 60_000)
      const old = new Date(Date.now() - 3 * hour)
      utimesSync(clip, old, old)
      await stage.red('A stuck job, failing jobs, and files that nobody takes', {
        happened:
          'The simulated domain told of a job that has been active for 13 hours and of seven that failed within the last hour; a clip in the watch folder was three hours old. The domain is online all the while: only Advanced looks at jobs.',
        says: [
          /oldest 13 h \(warn 4 h, fail 12 h\)/,
          /7 \(warn 0, fail 5\)/,
          /clip-0412\.mxf: age 3 h \(warn 30 min, fail 2 h\)/,
        ],
      })
      state.active.length = 1
      state.failed.length = 1
      utimesSync(clip, new Date(), new Date())

      Object.assign(state.services[0] ?? {}, { accepting: false, unlicensed: 4 })
      state.stores.push({ Name: 'Archive', Offline: true, AvailableSpace: 0, TotalSpace: 0 })
      Object.assign(state.stores[0] ?? {}, { AvailableSpace: 60 })
      await stage.red('A service without a licence, and full stores', {
        happened:
          'One of the two services takes no work any more and had refused four sessions for want of a licence; one store was offline, another 6 % free.',
        says: [/AcceptingWork/, /stores offline/, /6 %/],
      })

      Object.assign(state, soundVantage(), { online: false })
      await stage.red('The domain is offline', {
        happened:
          'The REST service answered, and said that its domain is offline: `{"Online": false}`. Basic only sees that it answers.',
        says: [/\$\.Online is /],
        mode: 'Standard',
      })
    }),
}

export const carbonExample: Example = {
  type: 'XcodeC',
  title: 'Transcoder (Carbon Coder)',
  meaning:
    'Carbon Coder (Rhozet, Harmonic), asked by its XML over TCP. That is an inference from the letter C; the interface is known from public client code only. svc sends nothing but questions: never a job, never a command that acts.',
  peers: '**A simulated Carbon Coder.** No real one was ever asked.',
  show: (stage) =>
    during(async (onEnd) => {
      const state = soundCarbon()
      const server = await carbon(state)
      onEnd(() => server.close())
      stage.port(server.port, 11_120)
      await stage.yaml(`types:
  XcodeC:
    host: false
    monitors:
      - profile: carbon
        name: node1
        host: 127.0.0.1                # 1120 is its usual port
        port: ${server.port}
        failedJobs: {warn: 0, limit: 5}
        runningFor: {warn: 4h, limit: 12h}
`)
      await stage.list()
      await stage.green()

      state.jobs.push({ Status: 'STARTED', start: Date.now() - 14 * hour })
      for (let n = 0; n < 6; n += 1) state.jobs.push({ Status: 'ERROR', completed: Date.now() - (n + 1) * 60_000 })
      await stage.red('A stuck job, and jobs that fail', {
        happened:
          'The simulated node told of a job that was started 14 hours ago, and of six jobs that failed within the last hour.',
        says: [/oldest 14 h \(warn 4 h, fail 12 h\)/, /6 \(warn 0, fail 5\)/],
      })
      state.jobs.length = 2

      Object.assign(state, { enabled: 0, freeSlots: 0 })
      await stage.red('The node is disabled', {
        happened: 'Somebody had disabled the node, and none of its slots was free.',
        says: [/Enabled/],
      })

      await server.close()
      await stage.red('The program is gone', {
        happened:
          'The simulated Carbon Coder was ended. There is one cause; what depends on it was not run, and raises no alarm of its own.',
        says: [/refused the connection/, /not run: tcp node1 port failed/],
      })
    }),
}

export const qcExample: Example = {
  type: 'Qc',
  title: 'Quality control of media files',
  meaning:
    'Quality control of media files, of the sort of Interra Baton, Telestream Vidchecker or Venera Pulsar. That is an inference from two letters. No such product documents its interface in public, so you say where its answers hold what; what you do not name is not looked at.',
  peers: '**A simulated QC server** with an interface of our own making.',
  show: (stage) =>
    during(async (onEnd) => {
      const state = soundQc()
      // A few minutes more, so that the day is not over before the page is written.
      const daysLeft = (days: number): Date => new Date(Date.now() + days * 24 * hour + 5 * 60_000)
      state.expires = daysLeft(200)
      const server = await qc(state)
      onEnd(() => server[Symbol.asyncDispose]())
      stage.port(server.port, 18_080)
      stage.file('qc-key', 'qc-key-123')
      stage.file('reports/clip-0412.xml', '<report/>')
      stage.file('watch/clip-0413.mxf', 'x')
      const at = `http://127.0.0.1:${server.port}`
      await stage.yaml(`types:
  Qc:
    host: false
    monitors:
      - profile: file-qc
        name: qc1
        host: 127.0.0.1
        port: ${server.port}
        url: ${at}/
        token: {file: qc-key}
        tokenHeader: X-Api-Key
        licence: ${at}/licence
        licenceExpiry: $.expires
        seats: $.freeSeats
        workers: ${at}/workers
        tasks: ${at}/tasks
        reports: ${stage.folder}/reports
        folder: ${stage.folder}/watch
        allowWrites: true              # submits two clips in every Advanced run
        api: ${at}/api
        goodClip: /probe/good.mxf      # as the analyser sees them
        badClip: /probe/bad.mxf
        jobRemove: /jobs/\${job}
        jobEvery: 500ms
`)
      await stage.list()
      await stage.green()

      state.verdict = () => 'passed'
      await stage.red('The analyser is blind', {
        happened:
          'The simulated analyser passed whatever it was given, as one does whose template was emptied. All else was well: only a clip that is known to be bad shows it.',
        says: [/a bad clip passed/],
      })
      state.verdict = soundQc().verdict

      Object.assign(state, { expires: daysLeft(6), freeSeats: 0 })
      await stage.red('The licence ends in six days', {
        happened: 'The simulated server told of a licence with six days left, and of no free seat.',
        says: [/6 d left \(warn below 30 d, fail below 7 d\)/, /free seats: 0/],
        mode: 'Standard',
      })
      Object.assign(state, { expires: daysLeft(200), freeSeats: 3 })

      Object.assign(state, { workers: [{ state: 'offline' }, { state: 'offline' }] })
      state.tasks.push({ state: 'running', updated: new Date(Date.now() - 25 * 60_000).toISOString() })
      await stage.red('A task without progress, and no worker', {
        happened: 'Both workers were offline, and a task that is called running had made no progress for 25 minutes.',
        says: [/workers online: 0/, /oldest 25 min \(fail 15 min\)/],
      })
    }),
}
