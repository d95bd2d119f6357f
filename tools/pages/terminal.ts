import { spawn } from 'node:child_process'

/** How a program ended, and all that a terminal showed of it. */
export type Session = { readonly status: number | null; readonly output: string }

/**
 * Runs a bash script on a terminal of its own, with `columns`, and types what `answer` gives for each piece of text
 * that is shown. `timeoutMs` ends the script and everything that it started.
 */
export function onTerminal(
  script: string,
  options: {
    readonly cwd: string
    readonly env: Readonly<Record<string, string>>
    readonly columns?: number
    readonly rows?: number | undefined
    readonly timeoutMs?: number
    readonly answer?: ((output: string) => string | undefined) | undefined
  },
): Promise<Session> {
  const { cwd, env, columns = 100, rows = 40, timeoutMs = 60_000, answer = () => undefined } = options
  const line = `stty cols ${columns} rows ${rows} -echo; exec bash -c "$SCREEN_SCRIPT"`
  return new Promise((resolve, reject) => {
    const child = spawn('script', ['-qefc', line, '/dev/null'], {
      cwd,
      env: { ...env, SHELL: '/bin/bash', TERM: 'xterm', SCREEN_SCRIPT: script },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    let output = ''
    const timer = setTimeout(() => child.kill('SIGHUP'), timeoutMs)
    // A chunk may end within a sign.
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      output += String(chunk)
      const keys = answer(String(chunk))
      if (keys !== undefined) child.stdin.write(keys)
    })
    child.stdin.on('error', () => {})
    child.once('error', reject)
    child.once('close', (status) => {
      clearTimeout(timer)
      resolve({ status, output: output.replaceAll('\r\n', '\n') })
    })
  })
}
