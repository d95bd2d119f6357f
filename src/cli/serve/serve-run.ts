import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { Fault } from '../../core/base/errors.ts'
import { fileProblem, isFileOutage } from '../../core/base/file-errors.ts'
import { filesWithin, isThere, patienceMs, readNamed, shareOf } from '../../core/base/files/index.ts'
import { preload } from '../../core/base/preload.ts'
import {
  type Config,
  type InvalidEntry,
  linkMistake,
  loadReading,
  loadRestartSettings,
  loadScheduleLoad,
} from '../../core/config/index.ts'
import { type Log, type RunningServer, type StartOptions, stackOf, startServer } from '../../core/server/index.ts'
import { type OpenOptions, type OwnAccounts, openCore } from '../../core/service/open.ts'
import { collectStart, suitGarbageTo } from '../io/heap.ts'
import type { Io } from '../io/io.ts'
import { homeOf, machine } from '../io/process.ts'
import { testCommand } from '../render/hints.ts'
import { announce, type ReloadRequest, type Reloads, requestFile, servesHere, takeRequest } from '../session/running.ts'
import { accountFiles, localCall, usedStores } from '../session/session.ts'
import { replaceFile } from '../settings/private-file.ts'
import type { Rehearsal } from './rehearse.ts'
import { type ReloadWork, reloader } from './reload.ts'
import { sentFile } from './sent-file.ts'
import { openServeLog, type ServeLog } from './serve-log.ts'
import { soleServer } from './sole-server.ts'
import { standIn } from './stand-in.ts'
import { configWatcher } from './watch-config.ts'

/**
 * Writes a file that others wait for, atomically. An existing device or pipe is written to directly. Throws file system
 * errors and leaves nothing behind then.
 */
export async function writeWhole(file: string, content: string, mode = 0o666): Promise<void> {
  const there = await stat(file).catch(() => undefined)
  if (there !== undefined && !there.isFile()) return await writeFile(file, content)
  replaceFile(file, content, mode)
}

export type ServeRequest = {
  readonly version: string
  readonly config: Config
  /** The files from which it was read. */
  readonly configRead: ReadonlyMap<string, string>
  /** Reads svc.yaml again, for a reload. Rejects with a Fault for any mistake. */
  readonly load: ReloadWork['load']
  /** Whether svc answers 503 instead of checking itself while there is no configuration (K10). */
  readonly requireConfig: boolean
  /** Undefined without a store. */
  readonly store: string | undefined
  readonly host: string
  readonly port: number
  /** Its name among the nodes that share a PostgreSQL store. */
  readonly node: string
  readonly portFile: string | undefined
  /** Paths of the files. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  readonly allowedHosts: readonly string[]
  /** Addresses or networks, in addition to those of svc.yaml. */
  readonly behindProxy: readonly string[]
  /** Names or numbers, in addition to those of svc.yaml. */
  readonly localAccounts: readonly string[]
  readonly debug: boolean
  /** Milliseconds to keep listening after the signal to stop. Undefined means the default. */
  readonly drainDelayMs: number | undefined
  /** Creates the first Admin (P6). */
  readonly bootstrap: { readonly userName: string; readonly passwordFile: string } | undefined
  readonly loopback: boolean
  /** Makes the server one that rehearses, without a store. */
  readonly rehearsal?: Rehearsal | undefined
  /** Warnings for the operator, logged at the start. */
  readonly warnings: readonly string[]
  /** Entries of svc.yaml with mistakes: their types are unhealthy until the file is corrected and svc restarted. */
  readonly mistakes: readonly InvalidEntry[]
}

/** Milliseconds until a file that a full or read-only file system has refused is written again. */
const writeAgainMs = 5_000

/**
 * The work of writing a file, which no full or read-only file system ends (W16): it is logged once, with `effect`, and
 * tried again until it succeeds. `now` rejects with any other error of the first attempt.
 */
function despiteOutages(effect: string, log: Log, work: () => Promise<void>) {
  let timer: NodeJS.Timeout | undefined
  let hasFailed = false
  const now = async (): Promise<void> => {
    clearTimeout(timer)
    try {
      await work()
      hasFailed = false
    } catch (error) {
      if (!isFileOutage(error) && !hasFailed) throw error
      if (!hasFailed) log({ level: 'warn', msg: `${reasonOf(error)}: ${effect}` })
      hasFailed = true
      timer = setTimeout(() => void now(), writeAgainMs).unref()
    }
  }
  return { now, end: (): void => clearTimeout(timer) }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Milliseconds within which the server ends after a signal to stop, with some left for Node's own exit (S9). */
const maxStopMs = 9_900
/** Milliseconds that an unread log may delay the exit: at most, and at least even if everything else took long. */
const maxLogMs = 2_000
const minLogMs = 100

/**
 * Serves until the signal aborts, then answers pending requests and closes. Resolves with the exit code: 0, or for a
 * rehearsal what it proved.
 */
export async function serve(request: ServeRequest, io: Io, ended: AbortSignal): Promise<number> {
  const serveLog = await openServeLog(io)
  const { log } = serveLog
  const hangup = onHangup(io)
  const { rehearsal } = request
  const signal = AbortSignal.any([ended, hangup.signal, ...(rehearsal ? [rehearsal.ends] : [])])
  const { reportUncaught } = io
  io.reportUncaught = async (error) => {
    log({ level: 'error', msg: 'svc failed unexpectedly and ends', stack: stackOf(error) })
    await serveLog.close(maxLogMs)
  }
  let stopBy = Number.POSITIVE_INFINITY
  const stopping = (): void => {
    stopBy = performance.now() + maxStopMs
  }
  signal.addEventListener('abort', stopping, { once: true })
  try {
    for (const warning of [...request.warnings, ...(await storeOnShare(request)), ...(await exposedSecrets(request))])
      log({ level: 'warn', msg: warning })
    for (const { type, name, lines } of request.mistakes) {
      log({ level: 'error', msg: `${type} is unhealthy: ${name} is not checked: ${lines.join('; ')}` })
    }
    await answer(request, serveLog, io, { signal, hangup })
    const code = rehearsal?.finish() ?? 0
    log({ level: 'info', msg: 'stopped' })
    return code
  } finally {
    signal.removeEventListener('abort', stopping)
    hangup.release()
    await serveLog.close(Math.min(maxLogMs, Math.max(minLogMs, stopBy - performance.now())))
    io.reportUncaught = reportUncaught
  }
}

/** SQLite blocks this process while it waits for its file, and nothing can end that. */
async function storeOnShare({ store }: ServeRequest): Promise<readonly string[]> {
  const { storeKind } = await import('../../core/store/index.ts')
  const share = store === undefined || storeKind(store) !== 'sqlite' ? undefined : shareOf(store)
  if (share === undefined) return []
  const advice = 'keep it on a disk of this machine, or in PostgreSQL'
  return [`the store ${store} is on the share ${share}: svc answers no request while that does not answer; ${advice}`]
}

/**
 * SIGHUP ends a server only if it was started on a terminal, which has gone then. Anywhere else it asks a server to read
 * its configuration again.
 */
function onHangup({ signals, stdin, stderr }: Io): Hangup {
  const controller = new AbortController()
  const isOnTerminal = stdin.isTTY || stderr.isTTY
  let reload: (() => Promise<void>) | undefined
  let isPending = false
  const release = signals.take(['SIGHUP'], () => {
    if (isOnTerminal) controller.abort(new Fault('Interrupted', 'The terminal has closed'))
    else if (reload) void reload()
    else isPending = true
  })
  return {
    isOnTerminal,
    signal: controller.signal,
    release,
    reloadWith: (next) => {
      reload = next
      if (isPending) void reload()
    },
  }
}

type Hangup = {
  readonly isOnTerminal: boolean
  /** Aborts when the terminal has closed. */
  readonly signal: AbortSignal
  readonly release: () => void
  /** Sets the reload that a SIGHUP starts from now on, and starts it at once if one has come before. */
  readonly reloadWith: (reload: () => Promise<void>) => void
}

/** How often a server looks for the request of a command. Milliseconds. */
const lookForRequestMs = 500

/** Takes requests to reload, which commands leave in a file: also on a terminal, and on Windows, which has no SIGHUP. */
function followRequests(home: string, ask: (request: ReloadRequest) => Promise<void>): () => void {
  let timer: NodeJS.Timeout | undefined
  let hasEnded = false
  const look = async (): Promise<void> => {
    // The home folder may be on a share that does not answer.
    const isLeft = await isThere(requestFile(home, machine.pid)).catch(() => false)
    if (hasEnded) return
    const request = isLeft ? takeRequest(home) : undefined
    if (request) void ask(request)
    next()
  }
  const next = (): void => {
    timer = setTimeout(() => void look(), lookForRequestMs).unref()
  }
  next()
  return () => {
    hasEnded = true
    clearTimeout(timer)
  }
}

/** A warning for each secret file of the command line that every account of this machine can read. */
async function exposedSecrets({ tls, bootstrap }: ServeRequest): Promise<readonly string[]> {
  const pathByFlag = { 'tls-key': tls?.key, 'bootstrap-password-file': bootstrap?.passwordFile }
  const files = filesWithin(patienceMs)
  const warnings = Object.entries(pathByFlag).map(async ([flag, path]) => {
    if (path === undefined) return []
    const state = await files('exposure', { path }).catch((error: unknown) => {
      throw unusable(path, flag, error)
    })
    if (state !== 'readable by everyone') return []
    return [`--${flag} names ${path}, which every account of this machine can read: chmod o= ${path}`]
  })
  return (await Promise.all(warnings)).flat()
}

async function certificateOf({ tls }: ServeRequest): Promise<{ cert: string; key: string } | undefined> {
  return tls && { cert: await pem(tls.cert, 'tls-cert'), key: await pem(tls.key, 'tls-key') }
}

async function answer(
  request: ServeRequest,
  { log, droppedLines }: ServeLog,
  { env, clock }: Io,
  { signal, hangup }: { readonly signal: AbortSignal; readonly hangup: Hangup },
): Promise<void> {
  const tls = await certificateOf(request)
  const options = {
    ...request.config.serve,
    allowedHosts: [...request.config.serve.allowedHosts, ...request.allowedHosts],
    behindProxy: [...request.config.serve.behindProxy, ...request.behindProxy],
    localAccounts: [...request.config.serve.localAccounts, ...request.localAccounts],
    debug: request.debug,
    // The socket belongs to the server that checks something.
    ...(request.rehearsal ? { socket: undefined } : {}),
  }
  const { rehearsal } = request
  // Loaded now, because every run of a monitor with a keychain secret needs it.
  if (!rehearsal) await preload(() => import('../keychain/secrets.ts'))
  // A reload needs them.
  await preload(
    async () => await (await loadReading())(),
    () => import('../settings/private-file.ts'),
  )
  const restartSettings = await loadRestartSettings()
  const embedded = request.store === undefined || isUrl(request.store) ? undefined : request.store
  using sole =
    embedded === undefined
      ? undefined
      : await claim(embedded, request, { options, tls, log, signal, hangup, used: usedStores(env) })
  if (embedded !== undefined && sole === undefined) return
  const {
    service,
    runtime,
    reload,
    configurationWaits = () => {},
  } = await openCore({
    rehearses: rehearsal !== undefined,
    ...(rehearsal
      ? {}
      : {
          ...accountFiles(env),
          usedStores: usedStores(env),
          sentFile: sentFile(env),
          // Callers read it on other machines, and a sign-in by another account does not end the pause here.
          tryNow: async (...monitor: Parameters<NonNullable<OpenOptions['tryNow']>>) => {
            const command = testCommand({ config: request.config.origin }, ...monitor)
            return `try now on ${hostname()} as ${machine.accountName()}: ${command}`
          },
        }),
    version: request.version,
    config: request.config,
    requireConfig: request.requireConfig,
    store: request.store,
    env,
    log,
    shared: true,
    node: request.node,
    details: options.details,
    firstUse: async (accounts) => await firstAdmin(request, accounts),
  }).finally(async () => await sole?.standIn?.stop())
  const { storeFiles } = runtime.facts
  try {
    const { host, drainDelayMs } = request
    const port = sole?.standIn?.port ?? request.port
    const limits = drainDelayMs === undefined ? {} : { drainDelayMs }
    let url = ''
    let undeclaredProxy = false
    let reloads: Reloads = { latest: 0 }
    // Other commands must not take a rehearsal for the server of this account.
    let forget = (): void => {}
    const register = despiteOutages('commands do not find this server yet', log, async () => {
      if (rehearsal) return
      const { store = 'none', configuration } = runtime.facts
      forget = announce({ pid: machine.pid, url, store, undeclaredProxy, configuration, reloads }, homeOf(env))
    })
    const writePort = despiteOutages('those who wait for the port go on waiting', log, async () => {
      if (request.portFile !== undefined) await write(request.portFile, `${server.port}\n`, 'port-file')
    })
    const { scheduledRuns } = await loadScheduleLoad()
    const suitTo = ({ types, serve: settings }: Config): void => suitGarbageTo(scheduledRuns(types, settings))
    suitTo(request.config)
    // Nobody waits for an answer yet.
    collectStart()
    const server = await startServer({
      service,
      runtime,
      options,
      host,
      port,
      tls,
      log,
      limits,
      droppedLogLines: droppedLines,
      rehearsal: rehearsal?.server,
      undeclaredProxy: () => {
        undeclaredProxy = true
        if (url !== '') void register.now()
      },
    }).catch((error: unknown) => {
      throw namingHolder(error, port, env)
    })
    runtime.answersAt?.(server.url, server.peer)
    rehearsal?.begin(log)
    url = server.url
    let unmark = (): void => {}
    const expiry = tls && (await import('./own-certificate.ts'))
    const certificate = expiry?.certificateInUse(log, () => clock.now())
    const endings: (() => void)[] = []
    try {
      sole?.watch()
      if (embedded !== undefined && storeFiles) {
        const { loadMarkers } = await import('../../core/store/index.ts')
        const keepMarker = await loadMarkers()
        unmark = await keepMarker(embedded, { url: server.url, files: storeFiles, log })
      }
      const { facts } = runtime
      await register.now()
      // Last, because programs that wait for this file then use the server.
      await writePort.now()
      log({
        level: 'info',
        msg: `svc ${request.version} listens on ${server.url}`,
        url: server.url,
        store: facts.store ?? 'none',
        configuration: facts.configuration ?? 'none',
        types: facts.types.length > 0 ? facts.types.join(' ') : 'none configured',
        ...(rehearsal ? {} : receiversOf(request.config)),
        ...(tls && expiry ? { certificateEnds: expiry.endOf(tls.cert) } : {}),
        ...(rehearsal || facts.schedule === undefined ? {} : { schedule: facts.schedule }),
        ...(rehearsal || facts.notKept === undefined ? {} : { notKept: facts.notKept }),
      })
      if (tls) certificate?.use(tls.cert)
      const noLink = linkMistake(request.config)
      if (!rehearsal && noLink !== undefined) log({ level: 'info', msg: noLink })
      if (reload && !rehearsal) {
        const { load } = request
        const report = (now: Reloads): void => {
          reloads = now
          // A server that stops is about to remove its entry.
          if (!signal.aborted) void register.now()
        }
        const watcher = configWatcher(request.configRead)
        const reloading = reloader({
          restartSettings,
          load,
          inForce: suitTo,
          certificate: () => certificateOf(request),
          reload,
          watcher,
          server: {
            certificate: (pair) => {
              const use = server.certificate(pair)
              return () => {
                use()
                certificate?.use(String(pair.cert))
              }
            },
          },
          log,
          facts,
          report,
        })
        hangup.reloadWith(async () => await reloading.ask({ emptyInclude: false }))
        endings.push(followRequests(homeOf(env), reloading.ask), watcher.end)
        // An earlier process may have told something that is over.
        configurationWaits(undefined)
        if (options.watchConfig ?? embedded !== undefined) watcher.begin(reloading.offer, configurationWaits)
      }
      if (!signal.aborted) await once(signal, 'abort')
      // The configuration no longer matters.
      hangup.reloadWith(async () => {})
      for (const end of endings) end()
      log({ level: 'info', msg: 'stopping: finishing requests in progress' })
    } finally {
      certificate?.end()
      await server.stop()
      register.end()
      writePort.end()
      unlessImpossible('the entry of this server cannot be removed', forget, log)
      unlessImpossible('the marker of this server cannot be removed', unmark, log)
      await forgetPort(request.portFile, server, log)
    }
  } finally {
    await runtime.close()
  }
}

/** The receivers in the line of a start: whoever reads it sees whether anybody is told. */
const receiversOf = ({ notify = [] }: Config): { readonly notify?: string } =>
  notify.length === 0 ? {} : { notify: notify.map(({ name }) => name).join(', ') }

/** Waits for the store if another `svc serve` uses it. Those who wait for the port learn it meanwhile. */
const claim = async (
  store: string,
  { host, port, portFile, version }: ServeRequest,
  {
    hangup,
    signal,
    used,
    ...server
  }: Pick<StartOptions, 'options' | 'tls' | 'log'> & {
    readonly hangup: Hangup
    readonly signal: AbortSignal
    readonly used: OpenOptions['usedStores']
  },
) =>
  await soleServer(store, {
    used,
    isOnTerminal: hangup.isOnTerminal,
    signal,
    log: server.log,
    standIn: async (reason) => {
      const running = await standIn({ ...server, host, port, version, reason })
      await despiteOutages('those who wait for the port go on waiting', server.log, async () => {
        if (portFile !== undefined) await write(portFile, `${running.port}\n`, 'port-file')
      }).now()
      const stop = async (): Promise<void> => {
        await running.stop()
        await forgetPort(portFile, running, server.log)
      }
      return { port: running.port, stop }
    },
  })

/**
 * Creates the first Admin if requested and there is none (P6). Beyond loopback, a store without an Admin is refused:
 * the first caller could be anyone.
 */
async function firstAdmin(request: ServeRequest, { any, anyAdmin, administration }: OwnAccounts): Promise<void> {
  if (request.bootstrap && !(await any())) {
    const { userName, passwordFile } = request.bootstrap
    const password = (await pem(passwordFile, 'bootstrap-password-file')).replace(/\r?\n$/, '')
    const { caller, correlationId, signal } = localCall(new AbortController().signal)
    const who = caller.kind === 'local' ? `local:${caller.account}` : '-'
    try {
      const { addUser } = await administration()
      const by = { who, correlationId, signal }
      await addUser({ UserName: userName, Password: password, Roles: ['Admin'] }, by)
    } catch (error) {
      // Another node that started at the same time may have created it.
      if (!(error instanceof Fault && error.fault === 'Conflict' && (await anyAdmin()))) throw error
    }
  }
  if (request.loopback || (await anyAdmin())) return
  throw new Fault('Local', 'There is no Admin yet: svc serve accepts other machines only when there is one', {
    hints: [
      'svc users add NAME --role Admin                                      on this machine',
      'svc serve --bootstrap-admin NAME --bootstrap-password-file FILE      in a container',
      'svc serve --only health                                              without sign-in',
    ],
  })
}

/** The refusal of a port in use, with the `svc serve` of this account that has it. Another error stays as it is. */
function namingHolder(error: unknown, port: number, env: Io['env']): unknown {
  if (!(error instanceof Fault) || (error.details.cause as NodeJS.ErrnoException)?.code !== 'EADDRINUSE') return error
  const holder = servesHere(homeOf(env)).find(({ url }) => new URL(url).port === String(port))
  if (!holder) return error
  const { pid, store } = holder
  const hints = [...(error.details.hints ?? []), `Or stop the other one: kill ${pid}`]
  const message = `${error.message}: the svc serve with the process id ${pid} has it, whose store is ${store}`
  return new Fault('Local', message, { ...error.details, hints })
}

/** Removes the port file, but no other than its own: another server may have replaced it. */
async function forgetPort(file: string | undefined, { port }: Pick<RunningServer, 'port'>, log: Log): Promise<void> {
  if (file === undefined) return
  // Reading a pipe or a terminal would wait for somebody to write.
  if (!(await stat(file).catch(() => undefined))?.isFile()) return
  const content = await readFile(file, 'utf8').catch(() => '')
  if (content.trim() === String(port))
    unlessImpossible(`${file} cannot be removed`, () => rmSync(file, { force: true }), log)
}

/** Logs what fails at the end, as on a read-only file system: the server has stopped all the same. */
function unlessImpossible(what: string, work: () => void, log: Log): void {
  try {
    work()
  } catch (error) {
    log({ level: 'warn', msg: `${what}: ${reasonOf(error)}` })
  }
}

const isUrl = (store: string): boolean => store.includes('://')

/** Bytes. A chain of certificates has some thousand. */
const maxPem = 1024 * 1024

async function pem(file: string, flag: string): Promise<string> {
  try {
    return await readNamed(file, maxPem)
  } catch (error) {
    throw unusable(file, flag, error)
  }
}

async function write(file: string, content: string, flag: string): Promise<void> {
  try {
    await writeWhole(file, content)
  } catch (error) {
    throw unusable(file, flag, error)
  }
}

const unusable = (file: string, flag: string, error: unknown): Fault =>
  new Fault('Local', `--${flag}: ${file} ${fileProblem(error)}`, { cause: error })
