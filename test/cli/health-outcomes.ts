import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Home, svcHome } from '../support/program/svc.ts'
import { type HealthServer, healthServer } from '../support/simulated/health-answers.ts'

export type OutcomeFixture = { readonly server: HealthServer; readonly home: Home; readonly remove: () => void }

/** A simulated server with every answer, and a home with a svc.yaml that works and one that does not. */
export async function outcomeFixture(): Promise<OutcomeFixture> {
  const server = await healthServer()
  const home = svcHome()
  const yaml =
    'types:\n  Batch:\n    host: false\n    monitors:\n      - {kind: tcp, name: worker, host: 127.0.0.1, port: 1}\n'
  writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
  writeFileSync(join(home.folder, 'wrong.yaml'), yaml.replace('host: 127', 'hst: 127'), { mode: 0o600 })
  const remove = (): void => {
    server.close()
    home.remove()
  }
  return { server, home, remove }
}

export type Outcome = {
  readonly args: (fixture: OutcomeFixture) => readonly string[]
  /** The exit code without a format of a plugin. */
  readonly exit: number
  readonly state: 'OK' | 'WARNING' | 'CRITICAL' | 'UNKNOWN'
  readonly message: RegExp
  /** Whether there is no answer at all. */
  readonly isError: boolean
}
const app = (...args: readonly string[]): readonly string[] => ['-t', 'App', ...args]
/** Asks the simulated server for the answer of that name. */
export const at =
  (path: Parameters<HealthServer['url']>[0]) =>
  ({ server }: OutcomeFixture): readonly string[] =>
    app('--server', server.url(path))
/** Each way in which `svc health` ends. */
export const outcomes: Readonly<Record<string, Outcome>> = {
  healthy: { args: at('healthy'), exit: 0, state: 'OK', message: /healthy/, isError: false },
  warning: { args: at('warning'), exit: 0, state: 'WARNING', message: /expires in 12 d/, isError: false },
  unhealthy: { args: at('unhealthy'), exit: 3, state: 'CRITICAL', message: /502 instead of 200/, isError: false },
  'not checked': {
    args: ({ home }) => ['-t', 'Batch', '--config', join(home.folder, 'wrong.yaml')],
    exit: 12,
    state: 'UNKNOWN',
    message: /not checked: .*wrong\.yaml:5/,
    isError: false,
  },
  usage: { args: () => ['-t', 'Sqll'], exit: 2, state: 'UNKNOWN', message: /unknown --type "Sqll"/, isError: true },
  configuration: {
    args: () => ['-t', 'Ftp'],
    exit: 12,
    state: 'UNKNOWN',
    message: /does not configure Ftp/,
    isError: true,
  },
  'sign-in needed': { args: at('sign-in'), exit: 4, state: 'UNKNOWN', message: /Not Authenticated/, isError: true },
  forbidden: { args: at('forbidden'), exit: 5, state: 'UNKNOWN', message: /Invalid Role/, isError: true },
  unreachable: {
    args: () => app('--server', 'http://127.0.0.1:1'),
    exit: 6,
    state: 'CRITICAL',
    message: /127\.0\.0\.1:1/,
    isError: true,
  },
  timeout: {
    args: (fixture) => [...at('silent')(fixture), '--timeout', '300ms'],
    exit: 7,
    state: 'CRITICAL',
    message: /No answer within 0\.3 s/,
    isError: true,
  },
  'timeout with --nagios-timeout unknown': {
    args: (fixture) => [...at('silent')(fixture), '--timeout', '300ms', '--nagios-timeout', 'unknown'],
    exit: 7,
    state: 'UNKNOWN',
    message: /No answer within 0\.3 s/,
    isError: true,
  },
  'server error': { args: at('server-error'), exit: 8, state: 'CRITICAL', message: /failed/, isError: true },
  'unreadable answer': { args: at('unreadable'), exit: 8, state: 'CRITICAL', message: /./, isError: true },
  rejected: { args: at('rejected'), exit: 9, state: 'UNKNOWN', message: /ServerType is unknown/, isError: true },
  'partly done': {
    args: ({ server }) => ['-t', 'App,Sql', '--server', server.url('mixed')],
    exit: 10,
    state: 'UNKNOWN',
    message: /Not Authenticated/,
    isError: false,
  },
  'local file': {
    args: () => app('--config', '/nowhere/svc.yaml'),
    exit: 12,
    state: 'UNKNOWN',
    message: /nowhere/,
    isError: true,
  },
}
