import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { until } from '../support/suite/until.ts'

const program = new URL('../../bin/run.js', import.meta.url).pathname

test('svc serve writes the port file last: its reader finds a server that has started, and can stop it', async () => {
  const home = temporaryHome()
  const pipe = join(home.folder, 'port')
  const store = join(home.folder, 'svc.db')
  // The server cannot finish writing to a pipe before somebody reads it.
  execFileSync('mkfifo', [pipe])
  const args = [program, 'serve', '--port', '0', '--port-file', pipe, '--store', store]
  const child = spawn(process.execPath, args, { env: home.env, stdio: 'ignore' })
  const closed = once(child, 'close')
  try {
    await until(() => existsSync(`${store}.serve.json`))
    const { url } = JSON.parse(await readFile(`${store}.serve.json`, 'utf8')) as { readonly url: string }
    const port = (await readFile(pipe, 'utf8')).trim()
    expect(url).toBe(`http://127.0.0.1:${port}`)
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
  } finally {
    child.kill('SIGTERM')
    await closed
  }
  expect(child.exitCode).toBe(0)
})
