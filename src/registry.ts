import type { CommandClass } from './cli/base.ts'

type Load = () => Promise<{ readonly default: CommandClass }>

/** Every command: its id and how to load it. A known command goes straight to its own chunk. */
export const commands: Record<string, Load> = {
  health: () => import('./commands/health.ts'),
  'monitors:kinds': () => import('./commands/monitors/kinds.ts'),
  'monitors:list': () => import('./commands/monitors/list.ts'),
  'monitors:validate': () => import('./commands/monitors/validate.ts'),
  serve: () => import('./commands/serve.ts'),
  version: () => import('./commands/version.ts'),
}

export const topics: Record<string, string> = {
  monitors: 'What runs for a server type and mode, and every kind of monitor',
}
