import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** One command line or more for each answer of the table of commands. */

export type Line = {
  /** The answer of the table of commands. */
  readonly name: string
  readonly args: readonly string[]
  readonly stdin?: string
}
const line = (name: string, rest: readonly string[] = [], stdin = ''): Line => ({
  name,
  args: [...name.split(' '), ...rest],
  stdin,
})

export const password = 'violet-harbour-42'
/** Lines on one home. The order counts: later lines use what earlier ones made. */
export const here = (folder: string): readonly Line[] => [
  line('users add', ['ann', '--role', 'Admin', '--email', 'ann@example.com', '--password-stdin'], password),
  line('users add', ['bob', '--no-password', '--permission', 'heartbeat']),
  line('users list'),
  line('users show', ['ann']),
  line('users disable', ['bob']),
  line('users disable', ['bob']),
  line('users enable', ['bob']),
  line('users unlock', ['bob']),
  line('users passwd', ['bob', '--password-stdin'], 'quiet meadow 17'),
  line('users passwd', ['bob', '--no-digest']),
  line('users link', ['bob', '--provider', 'https://login.example.com', '--subject', 'b']),
  line('users unlink', ['bob', '--provider', 'https://login.example.com']),
  line('roles assign', ['bob', '--role', 'Ops']),
  line('roles assign --from-file', [join(folder, 'changes.csv'), '--dry-run']),
  line('roles assign', ['bob', '--role', 'Deploy', '--for', '2h']),
  line('roles extend', ['bob', '--role', 'Deploy', '--for', '1h', '--reason', 'why']),
  line('roles show', ['bob']),
  line('roles holders', ['Ops']),
  line('roles holders', ['Nobody']),
  line('roles unassign --from-file', [join(folder, 'changes.csv')]),
  line('roles unassign', ['bob', '--role', 'Ops']),
  line('keys create', ['ci', '--user', 'ann', '--expires', '90d']),
  line('keys create', ['limited', '--user', 'bob', '--permission', 'heartbeat']),
  line('keys list'),
  line('keys revoke', ['ci']),
  line('keys list'),
  line('heartbeat', ['nightly', '--message', 'done', '--interval', '1d', '--backlog', '7']),
  line('heartbeats list'),
  line('heartbeats remove', ['nightly']),
  line('heartbeats list'),
  line('sessions list', ['--user', 'ann']),
  line('sessions end', ['--all', '--user', 'ann']),
  line('history'),
  line('impact', ['nobody', '--config', join(folder, 'monitors.yaml')]),
  line('silence', ['tcp nobody', '--for', '1h', '--reason', 'x', '--config', join(folder, 'monitors.yaml')]),
  line('silence list'),
  line('audit list'),
  line('audit head'),
  line('audit verify'),
  line('audit export', [join(folder, 'audit.jsonl')]),
  line('audit verify', ['--export', join(folder, 'audit.jsonl')]),
  line('roles holders --at', ['0m', 'Ops']),
  line('roles history', ['bob']),
  line('users remove', ['bob', '--yes']),
  line('backup', [join(folder, 'backup.db')]),
  line('restore', [join(folder, 'backup.db')]),
  line('drivers list'),
  line('drivers add', ['sftp']),
  line('monitors kinds'),
  line('monitors kinds', ['postgres']),
  line('monitors profiles'),
  line('monitors profiles', ['vantage']),
  line('monitors list'),
  line('monitors list', ['--type', 'Sql']),
  line('monitors validate', ['--config', join(folder, 'monitors.yaml')]),
  line('monitors test', ['nobody', '--config', join(folder, 'monitors.yaml')]),
  line('notify list', ['--config', join(folder, 'monitors.yaml')]),
  line('notify preview', ['chat', '--config', join(folder, 'monitors.yaml')]),
  line('notify test', ['--config', join(folder, 'monitors.yaml')]),
  line('health', ['-m', 'Basic', '-t', 'App', '--config', join(folder, 'monitors.yaml')]),
  line('health', ['-m', 'Basic', '-t', 'App,Sql', '--server-state', '--config', join(folder, 'monitors.yaml')]),
  line('secrets list'),
  line('profile add', ['prod', '--server', 'https://svc.example.com', '--credentials', 'always']),
  line('profile use', ['prod']),
  line('profile list'),
  line('profile show'),
  line('config set', ['credentials', 'when-asked']),
  line('config get', ['credentials']),
  line('config get', ['proxy']),
  line('config list'),
  line('config path'),
  line('config unset', ['credentials']),
  line('profile remove', ['prod']),
  line('profile list'),
  line('whoami', ['--local']),
  line('logout', ['--all']),
  line('doctor', ['--local']),
  line('completion', ['bash']),
  line('version'),
]
export const atServer = (url: string): readonly Line[] => [
  line('login', ['--server', url, '-u', 'bob', '--password-stdin', '--insecure-storage'], password),
  line('whoami'),
  line('whoami', ['--verify']),
  line('roles give-back', ['Deploy']),
  line('profile list'),
  line('sessions list'),
  line('history'),
  line('silence list'),
  line('passwd', ['--password-stdin'], `${password}\ncopper-lantern-77`),
  line('sessions end', ['--others']),
  line('config list'),
  line('logout'),
]

/** Answers that need a keychain or a machine of their own: the test that validates them. */
export const elsewhere: Readonly<Record<string, string>> = {
  'secrets set': 'secrets.peers.test.ts',
  'secrets remove': 'secrets.peers.test.ts',
  'monitors add': 'monitor-entries.test.ts',
  'monitors discover': 'init.test.ts',
  'monitors edit': 'monitor-entries.test.ts',
  'monitors remove': 'monitor-entries.test.ts',
  'notify add': 'notify-add.test.ts',
  import: 'import.test.ts',
  init: 'init.test.ts',
  drill: 'drill.test.ts',
  nodes: 'nodes.test.ts',
  'nodes forget': 'nodes.test.ts',
  'silence end': 'silence.test.ts',
  ack: 'silence.test.ts',
  'serve reload': 'serve-reload.long.test.ts',
}

/** The files that the lines of `here` read. */
export function writeFiles(folder: string): void {
  writeFileSync(join(folder, 'changes.csv'), 'UserName,Roles\nbob,[Ops]\n')
  const monitors = `types:
  App:
    - {kind: tcp, name: nobody, host: 127.0.0.1, port: 1}
notify: [{name: chat, webhook: {url: 'http://127.0.0.1:1/'}}]
`
  writeFileSync(join(folder, 'monitors.yaml'), monitors, { mode: 0o600 })
}
