import { accessSync, constants, readFileSync, realpathSync, statSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { exits, Fault } from '../../core/base/errors.ts'
import { count } from '../../core/base/format.ts'
import { othersMayWrite } from '../../core/base/own-files.ts'
import { linkMistake } from '../../core/config/index.ts'
import type { Io, ProcessEnvironment } from '../io/io.ts'
import { homeOf, machine, packageRoot } from '../io/process.ts'
import { openStore } from '../session/admin.ts'
import { waysToConfigure } from '../session/first-config.ts'
import { otherStoreWarning, servesHere } from '../session/running.ts'
import {
  configuration,
  connectionOf,
  localCall,
  openClientAt,
  type SessionFlags,
  shownUrl,
} from '../session/session.ts'
import { settingsFolder } from '../settings/private-file.ts'
import type { Settings } from '../settings/profiles.ts'
import { type CommandTarget, chooseTarget } from '../settings/target.ts'
import { type InForce, inForce } from './in-force.ts'

/** The finding of one check of the installation. */
export type InstallationFinding = {
  readonly check: string
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped' | 'not checked'
  readonly message: string
  /** The next step, where something is to be done. */
  readonly next?: string | undefined
  /** The exit code that a command would end with for the same reason. Present on failures. */
  readonly exitCode?: number | undefined
}

type Outcome = Omit<InstallationFinding, 'check'>
const ok = (message: string, next?: string): Outcome => ({ status: 'ok', message, next })
const skipped = (message: string, next?: string): Outcome => ({ status: 'skipped', message, next })
/** The outcome of a check that should have run and could not. */
const notChecked = (message: string): Outcome => ({ status: 'not checked', message })
const warning = (message: string, next?: string): Outcome => ({ status: 'warning', message, next })
const failed = (message: string, next?: string, exitCode: number = exits.local.code): Outcome => ({
  status: 'failed',
  message,
  next,
  exitCode,
})
const failure = (fault: Fault): Outcome =>
  failed(fault.message, fault.details.hints?.at(-1)?.replace(/ svc COMMAND$/, ' svc doctor'), fault.exitCode)

type Examination = {
  readonly flags: SessionFlags
  readonly io: Io
  readonly env: ProcessEnvironment
  readonly signal: AbortSignal
  readonly settings: Settings | undefined
}

/** Milliseconds that the server may take to answer. */
const serverMs = 10_000

const checks: Readonly<Record<string, (examination: Examination) => Outcome | Promise<Outcome>>> = {
  node: () => ok(`Node ${machine.node} (${machine.execPath})`),
  settings: ({ env, settings }) => checkSettings(env, settings),
  'svc.yaml': checkConfig,
  drivers: checkDrivers,
  store: checkStore,
  keychain: checkKeychain,
  server: checkServer,
  'sign-in': checkSignIn,
  clock: checkClock,
  'svc serve': checkServing,
  path: ({ env }) => checkPath(env),
  completion: ({ env }) => checkCompletion(env),
}

/**
 * Checks this installation. A failed check never prevents the next one; only an interruption rejects. Contacts the
 * server that commands would use, and writes and removes a test entry in the keychain.
 */
export async function examine(
  flags: SessionFlags,
  io: Io,
  signal: AbortSignal,
): Promise<readonly InstallationFinding[]> {
  const { env } = io
  const findings: InstallationFinding[] = []
  const { readSettings } = await import('../settings/profiles.ts')
  let settings: Settings | undefined
  try {
    settings = await readSettings(env)
  } catch (error) {
    // The check of the settings reports it.
    if (!(error instanceof Fault)) throw error
  }
  for (const [check, look] of Object.entries(checks)) {
    signal.throwIfAborted()
    findings.push({ check, ...(await outcomeOf(() => look({ flags, io, env, signal, settings }))) })
  }
  return findings
}

async function outcomeOf(look: () => Outcome | Promise<Outcome>): Promise<Outcome> {
  try {
    return await look()
  } catch (error) {
    if (error instanceof Fault && error.fault !== 'Interrupted') return failure(error)
    throw error
  }
}

/** 0 without a failure; the exit code that all failures share; otherwise that of a local problem. */
export function examinationExit(findings: readonly InstallationFinding[]): number {
  const codes = new Set(findings.flatMap(({ exitCode }) => exitCode ?? []))
  const [only, another] = codes
  return only === undefined ? 0 : another === undefined ? only : exits.local.code
}

function checkSettings(env: ProcessEnvironment, settings: Settings | undefined): Outcome {
  const folder = settingsFolder(env)
  const stat = statSync(folder, { throwIfNoEntry: false })
  if (!stat) return ok(`${folder} does not exist yet; svc creates it when there is something to write`)
  if (machine.platform !== 'win32') {
    const mode = (stat.mode & 0o777).toString(8).padStart(4, '0')
    if (othersMayWrite(stat)) return failed(`others can write ${folder} (mode ${mode})`, `chmod 700 '${folder}'`)
    if ((stat.mode & 0o077) !== 0) return warning(`others can read ${folder} (mode ${mode})`, `chmod 700 '${folder}'`)
  }
  if (!settings) return failed(`the settings in ${folder} cannot be read`, 'svc profile list shows why.')
  const { length } = settings.profiles
  return ok(`${folder}: ${count(length, 'profile')}`)
}

async function readInForce({ flags, env, settings }: Examination, key: string): Promise<Omit<InForce, 'key'>> {
  const readers = await inForce(settings ?? { path: '', current: undefined, profiles: [] }, flags, env)
  return (await readers.get(key)?.()) ?? { value: undefined, origin: 'default' }
}

async function checkConfig(examination: Examination): Promise<Outcome> {
  const { flags, env } = examination
  const { value, note } = await readInForce(examination, 'config')
  if (value === undefined) return warning(`no svc.yaml: ${note}`, 'svc init writes one for this machine.')
  const config = await configuration(flags, env)
  const { types, warnings } = config
  const monitors = Object.values(types).reduce((sum, entry) => sum + entry.monitors.length, 0)
  if (monitors === 0) return warning(`${value} configures no monitor`, waysToConfigure(value, env).at(-1))
  const [first] = warnings
  if (first !== undefined) return warning(first, 'svc monitors validate shows all warnings.')
  const noLink = linkMistake(config)
  if (noLink !== undefined) return warning(noLink, 'serve: {url: https://svc.example.com}')
  return ok(`${value}: ${count(monitors, 'monitor')}`)
}

/** How many foreign objects are named. */
const maxNamed = 3

/** The drivers that monitors of svc.yaml need: each must be there, and is best in the version that was tested with svc. */
async function checkDrivers({ flags, env }: Examination): Promise<Outcome> {
  const config = await configuration(flags, env, { tolerant: true }).catch((error: unknown) => {
    // The check of svc.yaml reports it.
    if (!(error instanceof Fault) || error.fault === 'Interrupted') throw error
  })
  if (!config) return skipped('svc.yaml cannot be read')
  const { listDrivers } = await import('../drivers/list.ts')
  const needed = (await listDrivers(config, env)).filter(({ monitors }) => monitors.length > 0)
  const [unusable] = needed.filter(({ state }) => state === 'missing' || state === 'not trusted')
  if (unusable) return failed(unusable.problem ?? '', unusable.next)
  const [other] = needed.filter(({ state }) => state === 'other version')
  if (other) return warning(other.problem ?? '', other.next)
  if (needed.length === 0) return ok('no monitor needs a driver')
  return ok(needed.map(({ name, version }) => `${name} ${version}`).join(', '))
}

async function checkStore(examination: Examination): Promise<Outcome> {
  const { flags, env, signal } = examination
  const { value = '', note } = await readInForce(examination, 'store')
  const { secondStore } = await import('../session/service-store.ts')
  const second = await secondStore(flags, env)
  if (second?.fault) {
    const { message, next } = failure(second.fault)
    return warning(message, next)
  }
  if (second) return warning(second.warning.replace(/^Warning: /, ''), 'Name that store with --store or SVC_STORE.')
  if (note !== undefined) return ok(`${value} ${note}; svc serve and svc users add create it`)
  await using session = await openStore(flags, env)
  const { Users } = await session.service.getUsers({ Take: 1 }, localCall(signal))
  const other = otherStoreWarning(value, homeOf(env))
  if (other !== undefined) return warning(other.replace(/^Warning: /, ''), 'Name that store with --store or SVC_STORE.')
  const { shareOf } = await import('../../core/base/files/index.ts')
  const share = value.includes('://') ? undefined : shareOf(value)
  if (share !== undefined) {
    const message = `${value} opens, but it is on the share ${share}: svc serve answers no request while that does not answer`
    return warning(message, 'Keep the store on a disk of this machine, or in PostgreSQL.')
  }
  const foreign = await session.foreign()
  if (foreign.length > 0) {
    const labels =
      foreign.slice(0, maxNamed).join(', ') +
      (foreign.length > maxNamed ? ` and ${foreign.length - maxNamed} more` : '')
    return warning(
      `${value} opens, but has what svc did not make and does not use: ${labels}`,
      'Remove it, or keep it in a database of its own.',
    )
  }
  return Users?.length ? ok(`${value} opens`) : ok(`${value} opens; it has no users`, 'svc users add NAME --role Admin')
}

async function checkKeychain({ env, settings }: Examination): Promise<Outcome> {
  const { proveKeychain } = await import('../keychain/secrets.ts')
  try {
    await proveKeychain(env)
    return ok('the OS keychain stores, returns and removes an entry')
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const needed = settings?.profiles.find(({ user, storage }) => user !== undefined && storage !== 'file')
    const message = error.details.hints?.[0] ?? error.message
    if (needed) return failed(`${message} Profile ${needed.name} keeps its token there.`, undefined, error.exitCode)
    return warning(message, 'Without it: SVC_TOKEN in CI, or svc login --insecure-storage.')
  }
}

type ServerTarget = Extract<CommandTarget, { kind: 'server' }>

async function serverOf({ flags, env, settings }: Examination): Promise<ServerTarget | undefined> {
  const target = await chooseTarget(flags, env, async () => settings ?? { path: '', current: undefined, profiles: [] })
  return target.kind === 'server' ? target : undefined
}

const onThisMachine = 'no server is chosen: commands act on this machine'

/** Any answer of a server over a connection that svc trusts. */
async function answerOf(target: ServerTarget, { flags, env, signal }: Examination) {
  const { openClient } = await import('../../core/client/index.ts')
  using client = openClient(connectionOf(target, flags, env))
  return await client.ask(
    { method: 'GET', path: '/livez', headers: [], body: undefined },
    localCall(signal, { timeoutMs: serverMs }),
  )
}

async function checkServer(examination: Examination): Promise<Outcome> {
  const target = await serverOf(examination)
  if (!target) return skipped(onThisMachine)
  await answerOf(target, examination)
  const url = shownUrl(target.url)
  return ok(`${url} answers${url.startsWith('https:') ? ', and its certificate is valid' : ''} (${target.origin})`)
}

async function checkSignIn(examination: Examination): Promise<Outcome> {
  const { flags, io, env, signal } = examination
  const target = await serverOf(examination)
  if (!target) return skipped(onThisMachine)
  using client = await openClientAt(target, flags, io)
  try {
    const call = localCall(signal, { verb: 'GET', timeoutMs: serverMs })
    const { UserName = 'a user', Roles } = await client.authenticate({}, call)
    const roles = Roles && (Roles.length > 0 ? Roles.join(', ') : 'none')
    return ok(
      `signed in as ${UserName} (${roles === undefined ? 'this server does not report roles' : `roles: ${roles}`})`,
    )
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    if (error.fault !== 'Unauthorized') return notChecked(error.message)
    const isExpected = env['SVC_TOKEN'] !== undefined || target.profile?.user !== undefined
    const next = `svc login --server ${shownUrl(target.url)}`
    return isExpected ? failed(error.message, next, error.exitCode) : warning('nobody is signed in there', next)
  }
}

/** Milliseconds by which this clock may differ from the server's. */
const clockWarnMs = 30_000
const clockFailMs = 300_000

async function checkClock(examination: Examination): Promise<Outcome> {
  const target = await serverOf(examination)
  if (!target) return skipped('no server, so no clock to compare with')
  const { rawHeaders } = await answerOf(target, examination)
  const at = rawHeaders.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'date')
  const theirs = Date.parse(at === -1 ? '' : (rawHeaders[at + 1] ?? ''))
  if (Number.isNaN(theirs)) return notChecked('the server sends no date')
  const off = Math.abs(examination.io.clock.now().getTime() - theirs)
  const message = `the clocks of this machine and of the server differ by ${Math.round(off / 1_000)} s`
  const next = 'Synchronize both with NTP: certificates and tokens depend on the time.'
  if (off > clockFailMs) return failed(message, next)
  return off > clockWarnMs ? warning(message, next) : ok('the clocks of this machine and of the server agree')
}

/** Looks at what the servers of this account on this machine have noticed themselves. */
function checkServing({ env }: Examination): Outcome {
  const serves = servesHere(homeOf(env))
  const relayed = serves.find(({ undeclaredProxy }) => undeclaredProxy)
  if (relayed) {
    const message = `${relayed.url} answers requests of a proxy that is not declared: all its callers share one limit on failed sign-ins`
    return warning(message, 'svc serve --behind-proxy 127.0.0.1, or serve.behindProxy in svc.yaml')
  }
  const urls = serves.map(({ url }) => url).join(', ')
  return serves.length === 0 ? skipped('no svc serve of this account runs here') : ok(`${urls} runs here`)
}

const programs = machine.platform === 'win32' ? ['svc.cmd', 'svc.exe', 'svc.ps1'] : ['svc']

function checkPath(env: ProcessEnvironment): Outcome {
  const own = real(join(packageRoot(), 'bin', 'run.js'))
  const all = (env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .flatMap((folder) => programs.map((name) => join(folder, name)))
    .filter(isProgram)
  const [first] = all
  if (first === undefined) return warning('svc is not on the PATH', `This one is ${own}.`)
  const others = [...new Set(all.map(real))].filter((path) => path !== own && !isLauncher(path))
  if (others.length === 0) return ok(first)
  if (!others.includes(real(first))) return warning(`another svc is on the PATH, after this one: ${others.join(', ')}`)
  return warning(`svc on the PATH is ${first}, not this one (${own})`, 'svc version tells them apart.')
}

/** Whether a file is the script that starts this svc: the Debian package has one, and npm has them on Windows. */
const isLauncher = (path: string): boolean =>
  ['../lib/svc', 'node_modules/@svc-cli/svc'].some(
    (folder) => real(join(dirname(path), folder, 'bin', 'run.js')) === real(join(packageRoot(), 'bin', 'run.js')),
  )

const real = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** Files that contain the script, and files that may load it, by shell. */
const completionPlaces: Readonly<
  Record<string, { readonly scripts: readonly string[]; readonly profiles: readonly string[] }>
> = {
  bash: {
    scripts: [
      '~/.local/share/bash-completion/completions/svc',
      '/usr/share/bash-completion/completions/svc',
      '/etc/bash_completion.d/svc',
    ],
    profiles: ['~/.bashrc', '~/.bash_profile', '~/.profile'],
  },
  zsh: {
    scripts: ['/usr/share/zsh/vendor-completions/_svc', '/usr/local/share/zsh/site-functions/_svc'],
    profiles: ['~/.zshrc'],
  },
  fish: {
    scripts: ['~/.config/fish/completions/svc.fish', '/usr/share/fish/vendor_completions.d/svc.fish'],
    profiles: ['~/.config/fish/config.fish'],
  },
}

function checkCompletion(env: ProcessEnvironment): Outcome {
  const shell = /([^/\\]*)$/.exec(env['SHELL'] ?? '')?.[1] ?? ''
  const places = Object.hasOwn(completionPlaces, shell) ? completionPlaces[shell] : undefined
  if (!places) return skipped('svc completes command lines in bash, zsh and fish')
  const home = (path: string): string => path.replace(/^~/, homeOf(env))
  const script = places.scripts.map(home).find((path) => statSync(path, { throwIfNoEntry: false }))
  const profile = places.profiles.map(home).find((path) => mentionsCompletion(path))
  const place = script ?? profile
  if (place !== undefined) return ok(`${shell}: ${place}`)
  return skipped(`not installed for ${shell}`, `svc completion ${shell} prints it, and where to put it.`)
}

function mentionsCompletion(path: string): boolean {
  try {
    return readFileSync(path, 'utf8').includes('svc completion')
  } catch {
    return false
  }
}
