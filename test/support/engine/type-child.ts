/** Runs one type of a svc.yaml as this process sees its machine, and writes the reports: see `mount-namespace.ts`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../../src/core/config/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { runConfig } from './run-config.ts'

const [, , yaml = '', mode = 'Standard', host = 'false'] = process.argv
const home = mkdtempSync(join(tmpdir(), 'svc-type-'))
try {
  const path = join(home, 'svc.yaml')
  writeFileSync(path, yaml, { mode: 0o600 })
  const config = await loadConfig({ env: process.env, platform: process.platform, home, path })
  const reports = await runConfig(config, 'App', mode as ExecutionMode, { host: host === 'true' })
  process.stdout.write(JSON.stringify(reports))
} finally {
  rmSync(home, { recursive: true, force: true })
}
