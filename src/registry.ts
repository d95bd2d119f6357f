import type { CommandClass } from './cli/base.ts'

type Load = () => Promise<{ readonly default: CommandClass }>

/** Every command: its id and how to load it. A known command goes straight to its own chunk. */
export const commands: Record<string, Load> = {
  'audit:list': () => import('./commands/audit/list.ts'),
  'config:get': () => import('./commands/config/get.ts'),
  'config:list': () => import('./commands/config/list.ts'),
  'config:path': () => import('./commands/config/path.ts'),
  'config:set': () => import('./commands/config/set.ts'),
  'config:unset': () => import('./commands/config/unset.ts'),
  health: () => import('./commands/health.ts'),
  'keys:create': () => import('./commands/keys/create.ts'),
  'keys:list': () => import('./commands/keys/list.ts'),
  'keys:revoke': () => import('./commands/keys/revoke.ts'),
  login: () => import('./commands/login.ts'),
  logout: () => import('./commands/logout.ts'),
  'monitors:kinds': () => import('./commands/monitors/kinds.ts'),
  'monitors:list': () => import('./commands/monitors/list.ts'),
  'monitors:validate': () => import('./commands/monitors/validate.ts'),
  'profile:add': () => import('./commands/profile/add.ts'),
  'profile:list': () => import('./commands/profile/list.ts'),
  'profile:remove': () => import('./commands/profile/remove.ts'),
  'profile:show': () => import('./commands/profile/show.ts'),
  'profile:use': () => import('./commands/profile/use.ts'),
  'roles:assign': () => import('./commands/roles/assign.ts'),
  'roles:holders': () => import('./commands/roles/holders.ts'),
  'roles:show': () => import('./commands/roles/show.ts'),
  'roles:unassign': () => import('./commands/roles/unassign.ts'),
  serve: () => import('./commands/serve.ts'),
  'users:add': () => import('./commands/users/add.ts'),
  'users:disable': () => import('./commands/users/disable.ts'),
  'users:enable': () => import('./commands/users/enable.ts'),
  'users:list': () => import('./commands/users/list.ts'),
  'users:passwd': () => import('./commands/users/passwd.ts'),
  'users:remove': () => import('./commands/users/remove.ts'),
  'users:show': () => import('./commands/users/show.ts'),
  version: () => import('./commands/version.ts'),
  whoami: () => import('./commands/whoami.ts'),
}

export const topics: Record<string, string> = {
  monitors: 'What runs for a server type and mode, and every kind of monitor',
  users: "The users of this machine's store",
  roles: 'What users hold: roles and permissions',
  keys: 'Keys with which machines act as a user',
  audit: 'Who did what',
  profile: 'Servers by name, and which one commands act at',
  config: 'What svc goes by here, and where that comes from',
}
