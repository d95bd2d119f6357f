import { runCommand } from '../../src/cli/base.ts'
import { commands } from '../../src/registry.ts'
import type { GateCommand, GateReport } from './gate-commands.ts'

// Runs `svc health` again and again in one process, as main.ts runs a command line that it knows: starting the program
// each time would take thirty times as long. Each message is a command line with its variables; the reply is what the
// program would exit with.
const inherited = { ...process.env }

process.on('message', async ({ argv, env }: GateCommand) => {
  for (const name of Object.keys(process.env)) if (!(name in inherited)) delete process.env[name]
  Object.assign(process.env, env)
  process.exitCode = undefined
  await runCommand(commands['health'] as (typeof commands)[string], argv, 'health')
  const report: GateReport = { code: Number(process.exitCode ?? 0) }
  process.exitCode = undefined
  process.send?.(report)
})
process.once('disconnect', () => process.exit())
