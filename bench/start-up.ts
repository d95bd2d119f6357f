/**
 * The cost of a command before and after its work: whole processes against `node -e 0`, in one run.
 *
 *     npm run build && node bench/start-up.ts [rounds]
 *
 * The floor is the runtime's own start: nothing written in JavaScript on Node can be below 1.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { median, pairRatio, timeRounds } from './compare.ts'

const rounds = Number(process.argv[2] ?? 30)
const root = new URL('..', import.meta.url).pathname
const node = process.execPath
const svc = [node, join(root, 'bin/run.js')]
const home = mkdtempSync(join(tmpdir(), 'svc-bench-'))
const env = { SVC_HOME: join(home, 'svc'), HOME: home, XDG_CACHE_HOME: join(home, 'cache') }

const portFile = join(home, 'port')
const server = spawn(node, [...svc.slice(1), 'serve', '--port', '0', '--port-file', portFile], {
  env: { ...process.env, ...env },
  stdio: 'ignore',
})
while (!existsSync(portFile) || readFileSync(portFile, 'utf8') === '') await pause(20)
const url = `http://127.0.0.1:${readFileSync(portFile, 'utf8').trim()}`

// The peer of a remote check: the least that one HTTP question can cost in this runtime.
const bare = join(home, 'bare.cjs')
writeFileSync(
  bare,
  `require('node:http').get(${JSON.stringify(`${url}/healthcheck?ExecutionMode=Basic&ServerType=App`)}, (answer) => {
  let body = ''
  answer.on('data', (chunk) => { body += chunk })
  answer.on('end', () => { console.log(JSON.parse(body).Status) })
})`,
)

try {
  const timed = await timeRounds(
    [
      { name: 'node -e 0', command: [node, '-e', '0'] },
      { name: 'svc --version', command: [...svc, '--version'], env },
      { name: 'a bare node:http script', command: [node, bare] },
      {
        name: 'svc health --server (shared answer)',
        command: [...svc, 'health', '-m', 'Basic', '-t', 'App', '--cached', '--server', url],
        env,
      },
      {
        name: 'svc health, in process, Basic App',
        command: [...svc, 'health', '-m', 'Basic', '-t', 'App'],
        env,
        exits: [0, 3],
      },
      { name: 'svc health --help', command: [...svc, 'health', '--help'], env },
    ],
    rounds,
  )
  const [floor] = timed
  if (!floor) throw new Error('nothing was timed')
  const rows = timed.map(
    (one) =>
      `| ${one.name} | ${Math.min(...one.ms).toFixed(1)} | ${median(one.ms).toFixed(1)} | ${pairRatio(one, floor).toFixed(2)} |`,
  )
  const table = [
    '# Start-up: whole processes against `node -e 0`',
    '',
    `${rounds} interleaved rounds, Node ${process.versions.node}, ${process.platform}. Milliseconds; the ratio is the median of the pairs of each round.`,
    '',
    '| command | min ms | median ms | ÷ node -e 0 |',
    '|---|---|---|---|',
    ...rows,
    '',
    'Goals: `svc --version` ≤ 1.2, `svc health --server` ≤ 1.7. A bare node:http script stands beside the latter.',
    '',
  ].join('\n')
  mkdirSync(join(root, 'bench/results'), { recursive: true })
  writeFileSync(join(root, 'bench/results/start-up.md'), table)
  process.stdout.write(table)
} finally {
  server.kill('SIGTERM')
  await once(server, 'exit')
  rmSync(home, { recursive: true, force: true })
}
