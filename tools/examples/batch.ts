import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { utimesSync } from 'node:fs'
import { administrator, rabbitmqMissing, startRabbitmq } from '../../test/support/servers/rabbitmq.ts'
import { httpPeer, pages } from '../../test/support/simulated/http-peer.ts'
import { during, type Example, until } from './example.ts'

const hour = 3_600_000

export const batch: Example = {
  type: 'Batch',
  title: 'Batch job runner',
  meaning:
    'Whatever runs jobs: a worker, a scheduler, the queue between them. That is wide on purpose, so it is made of generic monitors: the process or service, the age of what the last success left behind, the queue, and the answers of a scheduler.',
  peers:
    'RabbitMQ with its management, and a process of this machine, both real. The scheduler with its list of jobs is **simulated**.',
  missing: rabbitmqMissing,
  show: (stage) =>
    during(async (onEnd) => {
      const server = await startRabbitmq()
      onEnd(server.remove)
      for (const name of ['jobs', 'jobs.dead']) await server.api('PUT', `queues/%2f/${name}`, { durable: true })
      let consumer = await server.consume('jobs', 1)
      onEnd(() => consumer.destroy())
      const jobs = [{ name: 'import', state: 'done', started: ago(26 * hour), ended: ago(25 * hour) }]
      const scheduler = await httpPeer(
        pages(() => ({ '/jobs': { jobs: [...jobs, { name: 'report', state: 'running', started: ago(hour / 6) }] } })),
      )
      onEnd(() => scheduler[Symbol.asyncDispose]())
      const worker = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
      const stopWorker = async (): Promise<void> => {
        if (worker.exitCode !== null || worker.signalCode !== null) return
        const gone = once(worker, 'exit')
        worker.kill('SIGKILL')
        await gone
      }
      onEnd(stopWorker)
      stage.port(server.port, 15_672)
      stage.port(scheduler.port, 19_000)
      stage.replace(/\bsvc\d+@localhost/, 'rabbit@localhost')
      stage.replace(new RegExp(`\\b${worker.pid}\\b`), '4711')
      stage.replace(/\b\d+ MiB(?=\s+of [\d.]+ [MG]iB\s+\(high)/, '92 MiB')
      stage.replace(/(?<=MiB\s+of )[\d.]+ [MG]iB(?=\s+\(high)/, '4 GiB')
      stage.replace(/(?<=watermark\):\s+)[\d.]+(?= %)/, '2.2')
      stage.replace(/\b\d+(?=\s+of \d+\s+file\s+descriptors)/, '40')
      stage.replace(/(?<=\bof )\d+(?=\s+file\s+descriptors)/, '20000')
      stage.replace(/(?<=descriptors:\s+)[\d.]+(?=\s+%)/, '0.2')
      stage.replace(/\b\d+(?=\s+of \d+\s+open)/, '20')
      stage.replace(/(?<=\bup )[\d.]+(?= s\b)/, '5')
      stage.replace(/(?<=\bwaits\s+)10\.\d/, '10.1')
      stage.file('rabbitmq', administrator.password)
      stage.file('worker.pid', String(worker.pid))
      const success = stage.file('last-success', 'import')
      const set = (hours: number): void =>
        utimesSync(success, new Date(Date.now() - hours * hour), new Date(Date.now() - hours * hour))
      set(8)
      const figures = async (ready: number, consumers: number): Promise<boolean> => {
        const observed = (await server.api('GET', 'queues/%2f/jobs')) as Record<string, unknown>
        return observed['messages_ready'] === ready && observed['consumers'] === consumers
      }
      await until('the consumer is counted', () => figures(0, 1))
      await stage.yaml(`types:
  Batch:
    host: false                        # else disks, memory and processors of this machine too
    monitors:
      - kind: process                  # or kind: service, where systemd, Windows or launchd runs it
        name: worker
        pidFile: ${stage.folder}/worker.pid
        restarted: off                 # this one was started a moment ago
      - kind: file-age                 # the last success: 1.5 and 3 times the interval of a day
        name: nightly import
        path: ${success}
        age: {warn: 36h, limit: 72h}
      - kind: rabbitmq
        name: queue
        url: ${server.url}
        username: ${administrator.username}
        password: {file: rabbitmq}
        queues:
          - {name: jobs, ready: {warn: 2, limit: 5}, consumers: 1}
        deadLetters:
          - {name: jobs.dead, messages: {limit: 2}}
      - kind: http
        name: scheduler
        url: http://127.0.0.1:${scheduler.port}/jobs
        measure:
          - {name: failed jobs, path: '$.jobs[*]', where: {state: failed}, time: ended, last: 1d, count: {warn: 0, limit: 3}}
          - {name: running jobs, path: '$.jobs[*]', where: {state: running}, time: started, age: {warn: 2h, limit: 6h}}
`)
      await stage.list()
      await stage.green()

      consumer.destroy()
      for (let n = 0; n < 8; n += 1) await server.publish('jobs', { timestamp: Math.floor(Date.now() / 1_000) - 600 })
      for (let n = 0; n < 3; n += 1) await server.publish('jobs.dead')
      await until('the queue is counted', () => figures(8, 0))
      await stopWorker()
      await stage.red('A full queue that nobody empties', {
        happened:
          'The worker was killed; with it went the only consumer. Eight messages lay in the queue, the oldest published ten minutes before, and three in the queue of dead letters.',
        says: [
          /0 consumers \(fail below 1\)/,
          /messages ready: 8 \(warn 2, fail 5\)/,
          /oldest message has waited/,
          /not running|no process|is gone/,
        ],
      })

      consumer = await server.consume('jobs', 10)
      await server.api('DELETE', 'queues/%2f/jobs.dead/contents')
      set(80)
      for (const minutes of [300, 200, 100, 30]) {
        jobs.push({ name: 'import', state: 'failed', started: ago(hour * 6), ended: ago(minutes * 60_000) })
      }
      await until('the queue is empty', () => figures(0, 1))
      await stage.red('The nightly import fails, night after night', {
        happened:
          'The file that the last success touches was 80 hours old, more than three nights; the scheduler told of four jobs that failed within a day. The queue is well again, so it is the import and not the worker. The worker of this example is still dead, and is told too.',
        says: [/80 h|3\.3 d/, /failed jobs: 4 \(warn 0, fail 3\)/],
      })
    }),
}

const ago = (ms: number): string => new Date(Date.now() - ms).toISOString()
