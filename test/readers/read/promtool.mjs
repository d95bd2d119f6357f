/** Promtool: whether `check metrics` has nothing to say. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const [outputs] = process.argv.slice(2)
const promtool = (args, input) => spawnSync('promtool', args, { encoding: 'utf8', input })
const answer = promtool(['--version'])
const version = /version (\S+)/.exec(answer.stdout + answer.stderr)?.[1].replace(/\+.*/, '')
const runs = Object.fromEntries(
  readdirSync(outputs).map((file) => {
    const { status, stdout, stderr } = promtool(['check', 'metrics'], readFileSync(join(outputs, file)))
    return [file, status === 0 && stdout + stderr === '' ? { figures: {} } : { error: stdout + stderr }]
  }),
)
process.stdout.write(JSON.stringify({ version, runs }))
