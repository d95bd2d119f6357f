import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, cpSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compiledCode } from '../support/program/compiled-code.ts'
import { entry } from '../support/program/svc.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const root = new URL('../..', import.meta.url).pathname
const windows = process.platform === 'win32'
const hasPython = spawnSync('python3', ['-c', 'import pty'], { timeout: 60_000 }).status === 0

const folder = temporaryFolder()
let server: Server
/** At which `svc health` asks: healthy at /, unhealthy at /sick. */
let url: string
beforeAll(async () => {
  server = createServer((request, response) => {
    const sick = request.url?.startsWith('/sick/')
    response.statusCode = sick ? 503 : 200
    response.setHeader('content-type', 'application/json')
    response.end(
      `{"Status":"${sick ? 'Failure' : 'Success'}","StatusMessage":"so it is","FailedMonitorCount":${sick ? 1 : 0},"MonitorSummaries":[{"MonitorName":"Sql","Status":"${sick ? 'Failure' : 'Success'}"}]}`,
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  server.close()
})

type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string }
type Streams = { readonly stdout?: number; readonly stderr?: number; readonly preload?: string }

const env = (): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  HOME: folder,
  SVC_HOME: join(folder, 'home'),
  NO_COLOR: '1',
  ...compiledCode,
})

async function collect(child: ReturnType<typeof spawn>): Promise<Ran> {
  let [stdout, stderr] = ['', '']
  child.stdout?.on('data', (chunk) => {
    stdout += String(chunk)
  })
  child.stderr?.on('data', (chunk) => {
    stderr += String(chunk)
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), 25_000)
  const [code] = (await once(child, 'close')) as [number | null]
  clearTimeout(timer)
  return { code, stdout, stderr }
}

/** Runs svc with the given descriptors; without one, a pipe that is read. */
const svc = (args: readonly string[], { stdout, stderr, preload }: Streams = {}): Promise<Ran> => {
  const imports = preload === undefined ? [] : ['--import', `data:text/javascript,${encodeURIComponent(preload)}`]
  return collect(
    spawn(process.execPath, [...imports, entry, ...args], {
      env: env(),
      stdio: ['ignore', stdout ?? 'pipe', stderr ?? 'pipe'],
    }),
  )
}

/** Runs a shell line in which `$@` is svc with these arguments. */
const shell = (line: string, args: readonly string[]): Promise<Ran> =>
  collect(
    spawn('sh', ['-c', line, 'sh', process.execPath, entry, ...args], {
      env: env(),
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  )

async function withFile<T>(path: string, flags: string, use: (descriptor: number) => Promise<T>): Promise<T> {
  const descriptor = openSync(path, flags)
  try {
    return await use(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

const health = (...more: readonly string[]): readonly string[] => ['health', '-t', 'App', '--server', url, ...more]

/** Every way to standard output: rendered, a document, records, a report, without oclif, by oclif's help, bytes. */
const commands = (): Record<string, readonly string[]> => ({
  'health, a table': health(),
  'health, json': health('--json'),
  'health, csv': health('-o', 'csv'),
  'health, prometheus': health('-o', 'prometheus'),
  'health, nagios': health('-o', 'nagios'),
  '--version': ['--version'],
  version: ['version'],
  '--help': ['--help'],
  'help of a command': ['health', '--help'],
  'help of a subject': ['help', 'exit-codes'],
  'monitors kinds --json': ['monitors', 'kinds', '--json'],
  'config list': ['config', 'list'],
  api: ['api', 'GET', '/', '--server', url],
})
const names = [
  'health, a table',
  'health, json',
  'health, csv',
  'health, prometheus',
  'health, nagios',
  '--version',
  'version',
  '--help',
  'help of a command',
  'help of a subject',
  'monitors kinds --json',
  'config list',
  'api',
]
/** One for each way there. */
const some = ['health, a table', 'health, json', '--version', '--help', 'help of a subject', 'api']
const commandsNamed = (name: string): readonly string[] => commands()[name] ?? []

const cannotWrite = (reason: string): string => `Error: cannot write to standard output: ${reason}\n`

describe.skipIf(windows)('standard output that cannot be written', () => {
  test('the table names each command that is tested', () => {
    expect(Object.keys(commands())).toEqual(names)
    expect(some.filter((name) => !names.includes(name))).toEqual([])
  })

  test.each(names)(
    '%s on a full disk is one line on standard error and exit code 12, or 3 for nagios',
    async (name) => {
      const ran = await withFile('/dev/full', 'w', (stdout) => svc(commandsNamed(name), { stdout }))
      const code = name.includes('nagios') ? 3 : 12
      expect(ran).toEqual({ code, stdout: '', stderr: cannotWrite('no space left on device') })
    },
  )

  test.each(some)('%s is exit code 12 when standard error is on the full disk too', async (name) => {
    const ran = await withFile('/dev/full', 'w', (full) => svc(commandsNamed(name), { stdout: full, stderr: full }))
    expect(ran).toEqual({ code: 12, stdout: '', stderr: '' })
  })

  test.each(some)('%s that is not open for writing is one line on standard error and exit code 12', async (name) => {
    const ran = await withFile('/dev/null', 'r', (stdout) => svc(commandsNamed(name), { stdout }))
    expect(ran).toEqual({ code: 12, stdout: '', stderr: cannotWrite('bad file descriptor') })
  })

  test.each(names)('%s into a pipe whose reader has closed is silent and exit code 0', async (name) => {
    const ran = await shell('{ "$@"; echo "code $?" >&2; } | true', commandsNamed(name))
    expect(ran.stderr).toBe('code 0\n')
  })

  test.each(['--help', 'monitors kinds --json', 'help of a command'])(
    'svc %s into head -1 is silent and exit code 0',
    async (name) => {
      const ran = await shell('{ "$@"; echo "code $?" >&2; } | head -1', commandsNamed(name))
      expect(ran.stderr).toBe('code 0\n')
      expect(ran.stdout.split('\n')).toHaveLength(2)
    },
  )

  // Node opens /dev/null in place of a closed standard output, before any program runs, and a parent
  // that wants no output passes the same: the two cannot be distinguished.
  test.each(names)('%s with a closed standard output does its work, and its output goes nowhere', async (name) => {
    const ran = await shell('"$@" >&-', commandsNamed(name))
    expect(ran).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  test('an answer that fits the disk only in part is an error, and never silently truncated', async () => {
    const whole = await svc(['monitors', 'kinds', '--json'])
    const ran = await shell('trap "" XFSZ; ulimit -f 8; "$@" > part.json', ['monitors', 'kinds', '--json'])
    expect(ran).toEqual({ code: 12, stdout: '', stderr: cannotWrite('file too large') })
    const part = readFileSync(join(folder, 'part.json'), 'utf8')
    expect(part.length).toBeGreaterThan(0)
    expect(part.length).toBeLessThan(whole.stdout.length)
    expect(whole.stdout.startsWith(part)).toBe(true)
  })

  test.runIf(hasPython)('an answer into a full non-blocking pipe arrives once there is room', async () => {
    const program = `import os, subprocess, sys, time
reader, writer = os.pipe()
os.set_blocking(writer, False)
filled = 0
try:
    while True: filled += os.write(writer, b'x' * 4096)
except BlockingIOError: pass
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=writer)
os.close(writer)
time.sleep(1)
whole = b''
while True:
    part = os.read(reader, 65536)
    if not part: break
    whole += part
os.write(1, whole[filled:])
sys.exit(child.wait())`
    const args = ['-c', program, process.execPath, entry, '--version']
    const ran = await collect(spawn('python3', args, { env: env(), stdio: ['ignore', 'pipe', 'pipe'] }))
    expect(ran).toEqual({ code: 0, stdout: expect.stringMatching(/^svc \d+\.\d+\.\d+\n$/), stderr: '' })
  })

  test.runIf(hasPython).each(some)('%s on a terminal that is gone is exit code 12', async (name) => {
    const program = `import os, pty, subprocess, sys
master, slave = pty.openpty()
os.close(master)
sys.exit(subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=slave))`
    const args = ['-c', program, process.execPath, entry, ...commandsNamed(name)]
    const ran = await collect(spawn('python3', args, { env: env(), stdio: ['ignore', 'pipe', 'pipe'] }))
    expect(ran).toEqual({ code: 12, stdout: '', stderr: cannotWrite('i/o error') })
  })

  test('a command that fails keeps its own exit code, and reports both failures', async () => {
    const unhealthy = ['health', '-t', 'App', '--server', `${url}/sick`]
    const ran = await withFile('/dev/full', 'w', (stdout) => svc(unhealthy, { stdout }))
    expect(ran).toEqual({ code: 3, stdout: '', stderr: cannotWrite('no space left on device') })
    const usage = await withFile('/dev/full', 'w', (stdout) => svc(['health', '-t', 'Sqll', '--json'], { stdout }))
    expect(usage.code).toBe(2)
    expect(usage.stderr).toContain('Error: unknown --type "Sqll"')
    expect(usage.stderr).toContain(cannotWrite('no space left on device'))
    expect((await shell('{ "$@"; echo "code $?" >&2; } | true', unhealthy)).stderr).toBe('code 3\n')
  })
})

describe.skipIf(windows)('standard error that cannot be written', () => {
  test.each([
    ['a full disk', '/dev/full', 'w'],
    ['a descriptor that is not open for writing', '/dev/null', 'r'],
  ])('%s changes no exit code and no answer', async (_, path, flags) => {
    const [usage, answer] = await withFile(path, flags, (stderr) =>
      Promise.all([svc(['nonsense'], { stderr }), svc(health('-t', 'App'), { stderr })]),
    )
    expect(usage).toEqual({ code: 2, stdout: '', stderr: '' })
    expect(answer.code).toBe(0)
    expect(answer.stdout).toContain('App')
  })

  test('a pipe whose reader has closed changes no exit code', async () => {
    const file = join(folder, 'code')
    await shell(`{ "$@"; echo "code $?" > ${file}; } 2>&1 | true`, ['nonsense'])
    expect(readFileSync(file, 'utf8')).toBe('code 2\n')
  })
})

describe('an unexpected exception', () => {
  const planted: readonly (readonly [string, string])[] = [
    ['an exception that nobody catches', "process.nextTick(() => { throw new TypeError('planted') })"],
    ['a rejection that nobody handles', "void Promise.reject(new TypeError('planted'))"],
    [
      "an 'error' event without a listener",
      "new (process.getBuiltinModule('events'))().emit('error', new TypeError('planted'))",
    ],
  ]
  /** Happens while the command waits for its server. */
  const whileItWaits = (statement: string): string => `setTimeout(() => { ${statement} }, 400)`
  let silent: Server
  let waiting: readonly string[]
  beforeAll(async () => {
    silent = createServer(() => {}).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    waiting = ['health', '-t', 'App', '--server', `http://127.0.0.1:${(silent.address() as AddressInfo).port}`]
  })
  afterAll(() => {
    silent.closeAllConnections()
    silent.close()
  })

  test.each(planted)('%s is two lines on standard error and exit code 1', async (_, statement) => {
    const ran = await svc(waiting, { preload: whileItWaits(statement) })
    expect(ran).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'Error: svc failed unexpectedly: TypeError: planted\n' +
        '  This is a defect of svc. Run the command again with --debug and report what it prints.\n',
    })
  })

  test('has its stack with --debug, and no source', async () => {
    const ran = await svc([...waiting, '--debug'], { preload: whileItWaits("throw new TypeError('planted')") })
    expect(ran.code).toBe(1)
    expect(ran.stderr).toMatch(/^Error: svc failed unexpectedly: TypeError: planted\n.*\nTypeError: planted\n {4}at /)
    expect(ran.stderr).not.toContain('throw new')
  })

  test('is the one JSON value on standard output with --json', async () => {
    const ran = await svc([...waiting, '--json'], { preload: whileItWaits("throw new TypeError('planted')") })
    expect([ran.code, ran.stderr]).toEqual([1, ''])
    expect(JSON.parse(ran.stdout)).toMatchObject({
      error: { exitCode: 1, message: expect.stringContaining('planted') },
    })
  })

  test('is one line even when the modules that render it are damaged', () => {
    const copy = mkdtempSync(join(folder, 'chunks-'))
    for (const part of ['bin', 'dist', 'package.json']) cpSync(join(root, part), join(copy, part), { recursive: true })
    for (const chunk of readdirSync(join(copy, 'dist'))) {
      if (/^(?!main\.|eager-start-|rolldown-runtime-).*\.cjs$/.test(chunk))
        writeFileSync(join(copy, 'dist', chunk), 'const x = {')
    }
    const ran = spawnSync(process.execPath, [join(copy, 'bin/run.js'), 'version'], { encoding: 'utf8', env: env() })
    expect([ran.status, ran.stdout]).toEqual([1, ''])
    expect(ran.stderr).toMatch(/^Error: svc failed unexpectedly: "SyntaxError: .*"\n$/)
  })

  test('a damaged program is reported in two lines', () => {
    const copy = mkdtempSync(join(folder, 'damaged-'))
    cpSync(join(root, 'bin'), join(copy, 'bin'), { recursive: true })
    mkdirSync(join(copy, 'dist'))
    writeFileSync(join(copy, 'dist/main.cjs'), 'const x = {')
    const ran = spawnSync(process.execPath, [join(copy, 'bin/run.js'), '--version'], { encoding: 'utf8', env: env() })
    expect([ran.status, ran.stdout]).toEqual([12, ''])
    expect(ran.stderr).toMatch(/^Error: svc is damaged: .*\n {2}.*\n$/)
  })
})
