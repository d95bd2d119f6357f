import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { type ServeProcess, startServe } from '../support/program/serve-child.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const windows = process.platform === 'win32'
const hasPython = spawnSync('python3', ['-c', 'import pty, termios'], { timeout: 60_000 }).status === 0
const terminalScript = new URL('../support/program/terminal.py', import.meta.url).pathname

/** Bytes that may wait for the log, as docs/serve.md says. */
const maxWaitingBytes = 1024 * 1024
/** Bytes that the kernel holds between the two ends, whatever stands there: pipes and sockets have less. */
const maxKernelBytes = 512 * 1024
/** Long enough that a few thousand of them fill everything between svc and its reader. */
const longPath = `/${'x'.repeat(240)}`
/** Their lines are more than may wait, in JSON and on a terminal. */
const tooMany = 4_500
/** Their lines are more than a pipe or terminal holds. */
const enoughToStall = 500

const folder = temporaryFolder()
const running: ServeProcess[] = []
const readers: ChildProcess[] = []
afterEach(async () => {
  for (const reader of readers.splice(0)) reader.kill('SIGKILL')
  for (const serve of running.splice(0)) await serve.remove()
})

async function serving(options: Parameters<typeof startServe>[0]): Promise<ServeProcess> {
  const serve = await startServe(options)
  running.push(serve)
  return serve
}

/** No answer takes as long: a test that waits longer would wait for ever. */
const maxAnswerMs = 20_000

async function ask(serve: ServeProcess, path: string): Promise<{ readonly status: number; readonly text: string }> {
  const answer = await fetch(`${serve.url}${path}`, { signal: AbortSignal.timeout(maxAnswerMs) })
  return { status: answer.status, text: await answer.text() }
}

const status = async (serve: ServeProcess, path: string): Promise<number> => (await ask(serve, path)).status

/** Makes so many requests on one connection, 50 at a time, and gives how often each status came. */
async function flood(serve: ServeProcess, requests: number): Promise<Readonly<Record<string, number>>> {
  const socket = connect(Number(new URL(serve.url).port), '127.0.0.1')
  const counts: Record<string, number> = {}
  const request = `GET ${longPath} HTTP/1.1\r\nHost: localhost\r\n\r\n`
  let [sent, answered, text] = [0, 0, '']
  try {
    await new Promise<void>((resolve, reject) => {
      const send = (): void => {
        const more = Math.min(50, requests - sent)
        if (more === 0) resolve()
        else socket.write(request.repeat(more))
        sent += more
      }
      socket.setTimeout(maxAnswerMs, () => reject(new Error(`no answer after ${answered} of ${requests}`)))
      socket.on('error', reject)
      socket.on('close', () => reject(new Error(`closed after ${answered} answers`)))
      socket.on('data', (chunk) => {
        text += String(chunk)
        for (const [, code = ''] of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
          counts[code] = (counts[code] ?? 0) + 1
          answered += 1
        }
        // The beginning of the next one may be cut.
        text = /HTTP\/1\.1[ \d]{0,4}$|H[TP/1.]{0,7}$/.exec(text)?.[0] ?? ''
        if (answered === sent) send()
      })
      send()
    })
  } finally {
    socket.destroy()
  }
  return counts
}

async function droppedLines(serve: ServeProcess): Promise<number> {
  const { text } = await ask(serve, '/metrics')
  return Number(/^svc_log_lines_dropped_total (\d+)$/m.exec(text)?.[1])
}

const answersIn = (log: string): number =>
  log.split('\n').filter((line) => line.includes(longPath.slice(0, 200))).length
const gapsIn = (log: string): readonly number[] =>
  [...log.matchAll(/(\d+) log lines? (?:was|were) dropped/g)].map(([, lines]) => Number(lines))
const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)

/** A named pipe with a reader that can be stopped, and what it has read. */
async function pipe(name: string): Promise<{ path: string; log: () => string; reader: () => ChildProcess }> {
  const [path, file] = [join(folder, name), join(folder, `${name}.log`)]
  execFileSync('mkfifo', [path])
  writeFileSync(file, '')
  return {
    path,
    log: () => readFileSync(file, 'utf8'),
    reader: () => {
      const output = openSync(file, 'a')
      const child = spawn('cat', [path], { stdio: ['ignore', output, 'ignore'] })
      closeSync(output)
      readers.push(child)
      return child
    },
  }
}

describe.skipIf(windows)('the log of svc serve never stops it', () => {
  test('W8 on a full disk it starts, answers, counts the lines that it drops and ends', async () => {
    const full = openSync('/dev/full', 'w')
    const serve = await serving({ stderr: full })
    closeSync(full)
    expect(await status(serve, '/livez')).toBe(200)
    expect(await flood(serve, tooMany)).toEqual({ 404: tooMany })
    expect(await droppedLines(serve)).toBeGreaterThan(0)
    expect(await serve.stop()).toBe(0)
  }, 90_000)

  test('W8 with a pipe that nobody reads it answers and ends, and a reader that returns learns the number of lost lines', async () => {
    const { path, log, reader } = await pipe('stalled')
    const cat = reader()
    const end = openSync(path, 'w')
    const serve = await serving({ stderr: end })
    closeSync(end)
    await until(() => log().includes('listens on'))
    cat.kill('SIGSTOP')
    const before = log().length

    expect(await flood(serve, tooMany)).toEqual({ 404: tooMany })
    const dropped = await droppedLines(serve)
    expect(dropped).toBeGreaterThan(0)
    expect(await status(serve, '/livez')).toBe(200)

    cat.kill('SIGCONT')
    await until(() => sum(gapsIn(log())) >= dropped)
    // What was waiting is bounded, and stands before the line that tells of the gap.
    const waited = log().slice(before, log().search(/.*log lines? (?:was|were) dropped/))
    expect(waited.length).toBeGreaterThan(maxWaitingBytes / 2)
    expect(waited.length).toBeLessThan(maxWaitingBytes + maxKernelBytes)
    // Every line is whole, and each request has one or was counted.
    const lines = log().trimEnd().split('\n')
    expect(lines.map((line) => typeof (JSON.parse(line) as { msg: unknown }).msg)).toEqual(lines.map(() => 'string'))
    const others = lines.filter((line) => /"path":"\/(?:metrics|livez)"/.test(line)).length
    expect(answersIn(log()) + others + sum(gapsIn(log()))).toBe(tooMany + 2)
    expect(await droppedLines(serve)).toBe(sum(gapsIn(log())))

    // Stalled again, and now it has to end.
    cat.kill('SIGSTOP')
    await flood(serve, enoughToStall)
    expect(await serve.stop()).toBe(0)
  }, 120_000)

  test('W8 with a socket that nobody reads, such as the journal, it answers and ends', async () => {
    const serve = await serving({ stderr: 'pipe' })
    expect(await flood(serve, tooMany)).toEqual({ 404: tooMany })
    expect(await droppedLines(serve)).toBeGreaterThan(0)

    let log = ''
    serve.child.stderr?.on('data', (chunk) => {
      log += String(chunk)
    })
    await until(() => gapsIn(log).length > 0)
    serve.child.stderr?.pause()
    await flood(serve, enoughToStall)
    expect(await serve.stop()).toBe(0)
  }, 120_000)

  test('W8 a reader that closes does not end it, and the next reader gets lines again', async () => {
    const { path, log, reader } = await pipe('closed')
    const first = reader()
    const end = openSync(path, 'w')
    const serve = await serving({ stderr: end })
    closeSync(end)
    await until(() => log().includes('listens on'))
    first.kill('SIGKILL')
    await once(first, 'exit')

    expect(await flood(serve, tooMany)).toEqual({ 404: tooMany })
    const dropped = await droppedLines(serve)
    expect(dropped).toBeGreaterThan(0)

    reader()
    await until(() => sum(gapsIn(log())) >= dropped)
    const answersBefore = answersIn(log())
    expect(await status(serve, longPath)).toBe(404)
    await until(() => answersIn(log()) > answersBefore)
    expect(await serve.stop()).toBe(0)
  }, 120_000)

  const noPython = hasPython ? '' : ' (skipped: no python3 to make a terminal with)'
  describe.skipIf(!hasPython)(`on a terminal${noPython}`, () => {
    const onTerminal = { stderr: 'pipe', command: ['python3', terminalScript] } as const

    test('W8 a terminal that nobody reads does not stop it, and a later reader sees the lines and the gap', async () => {
      const serve = await serving(onTerminal)
      expect(await flood(serve, tooMany)).toEqual({ 404: tooMany })
      const dropped = await droppedLines(serve)
      expect(dropped).toBeGreaterThan(0)

      let screen = ''
      serve.child.stdout?.on('data', (chunk) => {
        screen += String(chunk)
      })
      serve.child.stdin?.write('read\n')
      await until(() => sum(gapsIn(screen)) >= dropped)
      expect(screen).toContain('listens on')
      expect(screen).toMatch(/^\d\d:\d\d:\d\d WARN \d+ log lines were dropped/m)
      expect(answersIn(screen)).toBeGreaterThan(100)

      serve.child.stdin?.write('off\n')
      await flood(serve, enoughToStall)
      expect(await serve.stop()).toBe(0)
    }, 120_000)

    test('W8 a terminal paused with Ctrl-S does not stop it, and Ctrl-Q shows the rest', async () => {
      const serve = await serving(onTerminal)
      let screen = ''
      serve.child.stdout?.on('data', (chunk) => {
        screen += String(chunk)
      })
      serve.child.stdin?.write('read\n')
      await until(() => screen.includes('listens on'))
      serve.child.stdin?.write('off\n')
      expect(await flood(serve, enoughToStall)).toEqual({ 404: enoughToStall })
      const before = answersIn(screen)
      expect(before).toBeLessThan(enoughToStall)

      serve.child.stdin?.write('on\n')
      await until(() => answersIn(screen) === enoughToStall)
      expect(await serve.stop()).toBe(0)
    }, 120_000)
  })

  test('a warning of Node is a line of the log', async () => {
    const { path, log, reader } = await pipe('warned')
    reader()
    const end = openSync(path, 'w')
    const preload = "process.on('SIGUSR2', () => process.emitWarning('planted', 'PlantedWarning', 'PLANTED1'))"
    const serve = await serving({ stderr: end, preload })
    closeSync(end)
    serve.child.kill('SIGUSR2')
    await until(() => log().includes('planted'))
    const line =
      log()
        .split('\n')
        .find((each) => each.includes('planted')) ?? ''
    expect(JSON.parse(line)).toMatchObject({
      level: 'warn',
      msg: expect.stringMatching(/^\(node:\d+\) \[PLANTED1\] PlantedWarning: planted/),
    })
    expect(await serve.stop()).toBe(0)
    expect(
      log()
        .trimEnd()
        .split('\n')
        .every((each) => each.startsWith('{')),
    ).toBe(true)
  })

  test.each([
    ['exception', "throw new TypeError('planted')"],
    ['rejection', "void Promise.reject(new TypeError('planted'))"],
  ])('an unexpected %s is one line of the log with its stack, and the exit code is 1', async (_, statement) => {
    const { path, log, reader } = await pipe(statement.startsWith('throw') ? 'thrown' : 'rejected')
    reader()
    const end = openSync(path, 'w')
    const serve = await serving({ stderr: end, preload: `process.on('SIGUSR2', () => { ${statement} })` })
    closeSync(end)
    const ended = once(serve.child, 'exit')
    serve.child.kill('SIGUSR2')
    expect(await ended).toEqual([1, null])
    await until(() => log().includes('planted'))
    const lines = log().trimEnd().split('\n')
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({
      level: 'error',
      stack: expect.stringMatching(/^TypeError: planted\n +at /),
    })
    expect(lines.every((each) => each.startsWith('{'))).toBe(true)
  })

  test('an unexpected exception ends it with exit code 1 even when nobody reads the log', async () => {
    const preload = "process.on('SIGUSR2', () => { throw new TypeError('planted') })"
    const serve = await serving({ stderr: 'pipe', preload })
    await flood(serve, enoughToStall)
    const ended = once(serve.child, 'exit')
    serve.child.kill('SIGUSR2')
    expect(await ended).toEqual([1, null])
  }, 60_000)

  test('standard output of svc serve stays empty', async () => {
    const { path, log, reader } = await pipe('quiet')
    reader()
    const end = openSync(path, 'w')
    const serve = await serving({ stderr: end })
    closeSync(end)
    let text = ''
    serve.child.stdout?.on('data', (chunk) => {
      text += String(chunk)
    })
    expect(await status(serve, '/livez')).toBe(200)
    expect(await serve.stop()).toBe(0)
    await until(() => log().includes('"stopped"'))
    expect(text).toBe('')
  })
})
