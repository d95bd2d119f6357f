/**
 * node_exporter: what a scrape finds of the files in the folder of its textfile collector. The files of a run have its
 * name before the `@`. The reader in the second argument takes the numbers from the answer.
 */
import { execFileSync, spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const [program, reader, outputs] = process.argv.slice(2)
const home = mkdtempSync(join(tmpdir(), 'svc-node-exporter-'))
const [collected, scraped] = [join(home, 'collected'), join(home, 'scraped')]
mkdirSync(scraped)
// It was built without a stamp of its own, but says which module it is.
const modules = execFileSync('go', ['version', '-m', program], { encoding: 'utf8' })
const version = /prometheus\/node_exporter\s+v(\S+)/.exec(modules)?.[1]

const child = spawn(
  program,
  ['--collector.disable-defaults', '--collector.textfile', `--collector.textfile.directory=${collected}`].concat([
    '--web.listen-address=127.0.0.1:0',
    '--web.disable-exporter-metrics',
  ]),
  { stdio: ['ignore', 'ignore', 'pipe'] },
)
const port = await new Promise((resolve, reject) => {
  let log = ''
  child.on('exit', () => reject(new Error(log)))
  child.stderr.on('data', (text) => {
    log += text
    const found = /Listening on" address=127\.0\.0\.1:(\d+)/.exec(log)
    if (found) resolve(found[1])
  })
})
try {
  const files = readdirSync(outputs)
  const errors = {}
  for (const [run, own] of Map.groupBy(files, (file) => file.replace(/[@.].*/, ''))) {
    rmSync(collected, { recursive: true, force: true })
    mkdirSync(collected)
    for (const file of own) copyFileSync(join(outputs, file), join(collected, file))
    const response = await fetch(`http://127.0.0.1:${port}/metrics`)
    const text = await response.text()
    if (!response.ok || !/^node_textfile_scrape_error 0$/m.test(text)) errors[run] = { error: text.slice(0, 200) }
    writeFileSync(join(scraped, run), text)
  }
  const { runs } = JSON.parse(execFileSync(reader, ['prometheus', scraped], { encoding: 'utf8', maxBuffer: 1e8 }))
  process.stdout.write(JSON.stringify({ version, runs: { ...runs, ...errors } }))
} finally {
  child.removeAllListeners('exit')
  child.kill()
  rmSync(home, { recursive: true, force: true })
}
