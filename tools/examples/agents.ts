import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { during, type Example } from './example.ts'

export const agents: Example = {
  type: 'Agents',
  title: 'Remote agents',
  meaning:
    'Programs on other machines that report by themselves: each sends `svc heartbeat NAME` now and then, and it is their silence that is found. An agent that can be asked is a matter of `http`, `tcp` or `svc` monitors.',
  peers:
    'Heartbeats that the real `svc heartbeat` sent to the real store. Time was not waited for: see below. The agent that is asked for an echo is a server of our own.',
  show: (stage) =>
    during(async (onEnd) => {
      const report = (name: string, ...more: string[]) =>
        stage.svc('heartbeat', name, '--interval', '5m', '--version', '2.4.1', ...more)
      // As the agents would have it: an account whose key may do nothing else. It makes the store, too.
      await stage.svc('users', 'add', 'agents', '--no-password', '--permission', 'heartbeat')
      for (const name of ['edge-berlin', 'edge-oslo', 'edge-rome']) await report(name, '--backlog', '3')
      // What an agent that can be reached would run.
      const echo = createServer((socket) => {
        socket.on('error', () => {})
        socket.on('data', (data) => socket.write(muted ? 'ECHO 0000000000000000\n' : data))
      }).listen(0, '127.0.0.1')
      await once(echo, 'listening')
      onEnd(() => void echo.close())
      let muted = false
      const { port } = echo.address() as AddressInfo
      stage.port(port, 14_100)
      stage.replace(/(?<=ECHO )(?!0{16})[0-9a-f]{16}/, '5c1f0e9ab2d34768')
      await stage.yaml(`types:
  Agents:
    host: false
    monitors:
      - kind: heartbeat
        name: edge
        agents: [edge-berlin, edge-oslo, edge-rome]
        late: {warn: 2, limit: 5}      # intervals, and each agent says how long its own is
        backlog: {warn: 50, limit: 200}
      - kind: tcp                      # this one can be reached, and answers what it is asked
        name: edge-rome echo
        host: 127.0.0.1
        port: ${port}
        depth: Advanced
        timeout: 5s
        send: "ECHO {nonce}\\n"
        expect: '/^ECHO {nonce}\\r?$/m'
`)
      stage.replace(/\bedge-\w+(?=: clock off)/, 'edge-rome')
      stage.replace(/\b40\.\d min/, '40 min')
      stage.text(
        'Where `svc serve` runs, once: `svc users add agents --no-password --permission heartbeat` and `svc keys create edge --user agents --permission heartbeat`. On each agent, from cron or a timer: `SVC_TOKEN=KEY svc heartbeat edge-oslo --interval 5m --version 2.4.1 --backlog 3 --server https://svc.example.com`.',
      )
      await stage.list()
      await stage.green()

      setBack(stage.folder, 'edge-oslo', 40 * 60_000)
      await stage.red('An agent that has fallen silent', {
        happened:
          'The time of the last heartbeat of edge-oslo was set back by 40 minutes in the store, in place of waiting: eight of its intervals of five minutes. The others report, so it is that one, and not the way to us.',
        says: [/2 of 3 agents report; missing: edge-oslo/, /1 silent agent/],
      })

      await report('edge-oslo', '--status', 'warn', '--message', 'disk is slow', '--backlog', '320')
      await stage.svc('heartbeat', 'edge-rome', '--interval', '5m', '--version', '2.3.9', '--backlog', '3')
      await stage.red('Work that piles up, and two versions side by side', {
        happened:
          'edge-oslo reported again, with a warning of its own and 320 pieces of waiting work; edge-rome reported that it runs 2.3.9.',
        says: [/320 \(warn 50, fail 200\)/, /disk is slow/, /2 versions are running/],
      })

      await report('edge-oslo', '--backlog', '3')
      await report('edge-rome', '--backlog', '3')
      muted = true
      await stage.red('An agent that answers, and not what it was asked', {
        happened:
          'All agents reported that they are well. The one that can be reached answered every question with the same line, as a process does that hangs behind a proxy which answers for it.',
        says: [/edge-rome echo/, /expected/],
      })
    }),
}

/** Lets time pass for one agent. */
function setBack(folder: string, name: string, ms: number): void {
  const file = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((one) => /\.(db|sqlite3?)$/.test(one))
  if (file === undefined) throw new Error('no store')
  const database = new DatabaseSync(join(folder, file))
  database.prepare('UPDATE heartbeats SET at = at - ? WHERE name = ?').run(ms, name)
  database.close()
}
