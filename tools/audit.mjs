/**
 * Fails on known vulnerabilities in any dependency of package-lock.json, and if nobody could answer: what was not asked is
 * not known. With SVC_AUDIT_OFFLINE=1, for a machine without a network, the latter does not fail. Usage: node
 * tools/audit.mjs. Exit codes: 1 for vulnerabilities, 3 if the registry has no audit endpoint, 2 for no other answer.
 */
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const print = (line) => process.stdout.write(`${line}\n`)
const complain = (line) => process.stderr.write(`${line}\n`)

const cwd = join(dirname(fileURLToPath(import.meta.url)), '..')
const { stdout } = spawnSync('npm', ['audit', '--json'], {
  cwd,
  encoding: 'utf8',
  timeout: 60_000,
  maxBuffer: 64 * 1024 * 1024,
  shell: process.platform === 'win32',
})

const answer = (() => {
  try {
    return JSON.parse(stdout)
  } catch {
    return {}
  }
})()

if (typeof answer.metadata?.vulnerabilities?.total !== 'number') {
  const reason =
    typeof answer.message === 'string' ? answer.message.replace(/\s*(?:-\s*)?(?:GET|POST) \S+$/, '') : 'no answer'
  print(`Known vulnerabilities: not checked, because no audit endpoint is reachable (${reason})`)
  const hasNoEndpoint = [404, 405, 501].includes(answer.statusCode)
  if (process.env.SVC_AUDIT_OFFLINE !== '1') process.exitCode = hasNoEndpoint ? 3 : 2
} else if (answer.metadata.vulnerabilities.total === 0) {
  print(`Known vulnerabilities: none in ${answer.metadata.dependencies?.total ?? 'the'} dependencies`)
} else {
  for (const { name, severity, range } of Object.values(answer.vulnerabilities)) {
    complain(`Known vulnerability: ${name} ${range} (${severity})`)
  }
  process.exitCode = 1
}
