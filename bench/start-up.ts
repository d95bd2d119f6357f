/**
 * The cost of a command before and after its work: whole processes against `node -e 0`, in one run.
 *
 *     npm run build && node bench/start-up.ts [rounds] [folder] [goss]
 *
 * With the folder of another checkout that is built, its commands run beside these. With the path of goss
 * (github.com/goss-org/goss/cmd/goss), it checks the same 20 pages. What stands below the first heading of the page of
 * results is kept.
 * The floor is the runtime's own start: nothing written in JavaScript on Node can be below 1.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Candidate, median, pairRatio, timeRounds } from './compare.ts'

const rounds = Number(process.argv[2] ?? 30)
const [, , , other, goss] = process.argv
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

const monitors = join(home, 'monitors.yaml')
const pages = Array.from({ length: 20 }, (_, at) => `${url}/livez?${at}`)
const all = pages.map((page, at) => `{kind: http, name: m${at}, url: '${page}'}`)
writeFileSync(monitors, `types: {App: [${all.join(', ')}]}`, { mode: 0o600 })

const gossFile = join(home, 'goss.json')
writeFileSync(gossFile, JSON.stringify({ http: Object.fromEntries(pages.map((page) => [page, { status: 200 }])) }))

const gossName = 'goss, 20 http checks'
const ownName = 'health, 20 http monitors'

/** The commands of a checkout. */
const commandsOf = (name: string, folder: string): readonly Candidate[] =>
  (
    [
      ['--version', ['--version'], [0]],
      ['health --server (shared answer)', ['health', '-m', 'Basic', '-t', 'App', '--cached', '--server', url], [0]],
      ['health, in process, Basic App', ['health', '-m', 'Basic', '-t', 'App'], [0, 3]],
      ['health, in process, Basic Sql', ['health', '-m', 'Basic', '-t', 'Sql'], [0, 3]],
      [ownName, ['health', '-m', 'Basic', '-t', 'App', '--config', monitors], [0, 3]],
      ['roles show, an unknown user', ['roles', 'show', 'nobody'], [9]],
      ['health --help', ['health', '--help'], [0]],
    ] as const
  ).map(([what, args, exits]) => ({
    name: `${name} ${what}`,
    command: [node, join(folder, 'bin/run.js'), ...args],
    env,
    exits,
  }))

try {
  const timed = await timeRounds(
    [
      { name: 'node -e 0', command: [node, '-e', '0'] },
      { name: 'a bare node:http script', command: [node, bare] },
      ...(goss === undefined ? [] : [{ name: gossName, command: [goss, '-g', gossFile, 'validate'] }]),
      ...(other === undefined ? [] : commandsOf('before: svc', other)),
      ...commandsOf('svc', root),
    ],
    rounds,
  )
  const [floor] = timed
  if (!floor) throw new Error('nothing was timed')
  const rows = timed.map((one) => {
    const times = [Math.min(...one.ms), median(one.ms), median(one.cpuMs)].map((ms) => ms.toFixed(0))
    const ratios = [pairRatio(one, floor), pairRatio(one, floor, 'cpuMs')].map((ratio) => ratio.toFixed(2))
    return `| ${[one.name, ...times, ...ratios].join(' | ')} |`
  })
  const peer = timed.find(({ name }) => name === gossName)
  const besidePeer = timed
    .filter(({ name }) => peer && name.endsWith(ownName))
    .map((one) => `${one.name}: ${pairRatio(one, peer ?? floor, 'cpuMs').toFixed(1)} times the CPU of goss.`)
  const load = loadavg().map((value) => value.toFixed(0))
  const table = [
    '# Start-up: whole processes against `node -e 0`',
    '',
    `${rounds} interleaved rounds, Node ${process.versions.node}, ${process.platform}, ${availableParallelism()} processors, load averages ${load.join(', ')}. Milliseconds; a ratio is the median of the pairs of each round.`,
    '',
    '| command | min ms | median ms | CPU ms | ÷ node -e 0 | CPU ÷ node -e 0 |',
    '|---|---|---|---|---|---|',
    ...rows,
    '',
    ...besidePeer,
    ...(besidePeer.length > 0 ? [''] : []),
    'Goals: by the clock, `svc --version` ≤ 1.2, `svc health --server` ≤ 1.8; by CPU, Basic Sql ≤ 2.5, `roles show` ≤ 3. A bare',
    'node:http script stands beside `svc health --server`. [Decision 1](../../docs/decisions/0001-start-up.md) says what is paid for.',
    '',
  ].join('\n')
  const page = join(root, 'bench/results/start-up.md')
  mkdirSync(join(root, 'bench/results'), { recursive: true })
  const [, ...sections] = existsSync(page) ? readFileSync(page, 'utf8').split(/^(?=## )/m) : []
  writeFileSync(page, sections.length > 0 ? `${table}\n${sections.join('')}` : table)
  process.stdout.write(table)
} finally {
  server.kill('SIGTERM')
  await once(server, 'exit')
  rmSync(home, { recursive: true, force: true })
}
