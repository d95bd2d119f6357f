import { hostname } from 'node:os'
import { integer } from '@oclif/core/flags'
import { lists, SvcCommand } from '../cli/command/base.ts'
import { boolean, custom, delayFlag, oneOf, repeatable, text } from '../cli/command/flags.ts'
import { limitGarbage } from '../cli/io/heap.ts'
import { machine, packageJson, thisMachine } from '../cli/io/process.ts'
import { refuseSmallAddressSpace } from '../cli/serve/address-space.ts'
import { configuration, loadWarnings, storePath } from '../cli/session/session.ts'
import { Fault } from '../core/base/errors.ts'
import { isLoopbackHost } from '../core/base/loopback.ts'
import type { LoadOptions } from '../core/config/index.ts'

/** Milliseconds. Service managers stop waiting for a service sooner than that. */
const maxDrainDelayMs = 600_000

const usualPort = 8790

/** Two servers of one machine differ by their ports. One that selects a free port gets another name at each start. */
const nodeName = (port: number): string =>
  port === usualPort ? hostname() : `${hostname()}:${port === 0 ? `pid-${machine.pid}` : port}`

export default class Serve extends SvcCommand {
  static override summary = 'Run the monitors by a schedule, and the HTTP server'
  static override description =
    `With a svc.yaml, svc serve runs the monitors every minute in Standard and every hour in Advanced, until
Ctrl-C. The setting every: in svc.yaml changes these intervals; serve: {every: off} turns the schedule
off.

Browsers, curl, PRTG, Prometheus and svc health --server get the results over HTTP. The server also
signs users in and administers roles. Without TLS, it listens only on loopback; with --only health, it
also accepts other addresses, with a warning.

With --rehearse, it is a drill for what reads svc, such as gates, dashboards and people on call: no monitor
runs, the faults are those of a script, and every answer is marked DRILL. The exit code is then 10 unless
every fault was active for its full time and somebody asked meanwhile. svc drill tests whether alarms arrive.`
  static override examples = [
    '<%= config.bin %> serve',
    '<%= config.bin %> serve --port 0 --port-file ./port',
    '<%= config.bin %> serve --rehearse drill.yaml --port 8791',
    '<%= config.bin %> serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem',
  ]
  static override flags = {
    host: text('host')({ description: 'Address to listen on', default: '127.0.0.1' }),
    port: integer({ description: 'Port; 0 selects a free one', default: usualPort, min: 0, max: 65_535 }),
    'port-file': text('port-file')({ description: 'Write the port into this file once the server listens' }),
    store: text('store')({ description: "The embedded store's file (SVC_STORE)" }),
    config: text('config')({ description: 'The svc.yaml to use (SVC_CONFIG)' }),
    only: custom<'health'>({
      helpValue: '<health>',
      description: 'health: no sign-in, roles or store; writes nothing to disk',
      parse: async (input) => oneOf('only', ['health'] as const, input, 'Values'),
    })(),
    rehearse: text('rehearse')({
      description:
        'Script of faults for testing gates, dashboards and on-call: no monitor runs, every answer is marked DRILL',
    }),
    'tls-cert': text('tls-cert')({ description: 'PEM file of the certificate chain', dependsOn: ['tls-key'] }),
    'tls-key': text('tls-key')({ description: 'PEM file of the private key', dependsOn: ['tls-cert'] }),
    'allowed-host': text('allowed-host')({
      description: 'Accept this host name in requests too; repeatable',
      ...repeatable,
    }),
    'behind-proxy': text('behind-proxy')({
      description: 'Address of the reverse proxy through which all callers come; repeatable',
      helpValue: '<address>',
      ...repeatable,
    }),
    'local-account': text('local-account')({
      description: 'Let processes of this account read details without sign-in (Linux); repeatable',
      helpValue: '<account>',
      ...repeatable,
    }),
    'bootstrap-admin': text('bootstrap-admin')({
      description: 'Create this user with the role Admin if there are no users yet',
      dependsOn: ['bootstrap-password-file'],
    }),
    'bootstrap-password-file': text('bootstrap-password-file')({
      description: 'File with the password of that user',
      dependsOn: ['bootstrap-admin'],
    }),
    'drain-delay': delayFlag(
      'drain-delay',
      maxDrainDelayMs,
    )({
      description: 'How long /readyz reports 503 after SIGTERM before the server stops listening (default 300ms)',
    }),
    'insecure-listen': boolean({ description: 'Listen beyond loopback without TLS' }),
    'debug-errors': boolean({ description: 'Include stack traces in error responses; not for production' }),
  }

  protected async perform(signal: AbortSignal): Promise<number> {
    // Before anything is loaded: that may already end the process.
    refuseSmallAddressSpace()
    limitGarbage()
    const { flags } = await this.parse(Serve)
    const behindProxy = flags['behind-proxy'] ?? []
    for (const proxy of behindProxy) await refuseUnless('behind-proxy', proxy)
    const localAccounts = flags['local-account'] ?? []
    for (const account of localAccounts) await refuseUnless('local-account', account)
    const [{ serve }, { filesNotedIn }] = await Promise.all([
      import('../cli/serve/serve-run.ts'),
      import('../cli/serve/config-files.ts'),
    ])
    const rehearsed = flags.rehearse === undefined ? undefined : await rehearsalOf(flags.rehearse, flags, this.io.env)
    const configRead = new Map<string, string>()
    const { config, invalidEntries } = rehearsed
      ? { config: rehearsed.config, invalidEntries: [] }
      : await loaded(flags, this.io.env, filesNotedIn(configRead))
    const { isConfigured } = await import('../core/checks/plan/index.ts')
    const requireConfig =
      rehearsed !== undefined || (await import('../cli/health/health-types.ts')).requiresConfig(this.io.env)
    const proxied = behindProxy.length > 0 || config.serve.behindProxy.length > 0
    const clear = !isLoopbackHost(flags.host) && flags['tls-cert'] === undefined && !proxied
    if (clear && flags.only === undefined && !flags['insecure-listen']) throw openListening(flags.host)
    if (flags.only === undefined && !rehearsed) {
      const { secondStore } = await import('../cli/session/service-store.ts')
      const second = await secondStore(flags, this.io.env)
      if (second?.fault) throw second.fault
    }
    return await serve(
      {
        version: packageJson().version,
        config,
        configRead,
        load: async (reload, read) =>
          await configurationForReload(flags, this.io.env, { reload, files: filesNotedIn(read) }),
        requireConfig,
        store: flags.only === 'health' || rehearsed ? undefined : await storePath(flags, this.io.env),
        rehearsal: rehearsed?.rehearsal,
        host: flags.host,
        port: flags.port,
        node: config.serve.node ?? nodeName(flags.port),
        portFile: flags['port-file'],
        tls:
          flags['tls-cert'] !== undefined && flags['tls-key'] !== undefined
            ? { cert: flags['tls-cert'], key: flags['tls-key'] }
            : undefined,
        allowedHosts: flags['allowed-host'] ?? [],
        behindProxy,
        localAccounts,
        debug: flags['debug-errors'],
        drainDelayMs: flags['drain-delay'],
        bootstrap:
          flags['bootstrap-admin'] !== undefined && flags['bootstrap-password-file'] !== undefined
            ? { userName: flags['bootstrap-admin'], passwordFile: flags['bootstrap-password-file'] }
            : undefined,
        loopback: isLoopbackHost(flags.host),
        warnings: flags.quiet
          ? []
          : [
              ...(clear && flags.only !== undefined
                ? [`${flags.host} accepts other machines without TLS: the network can read the health of this one`]
                : []),
              ...(requireConfig && !Object.values(config.types).some(({ monitors }) => isConfigured(monitors))
                ? [nothingConfigured(config.origin)]
                : []),
              ...config.warnings,
              ...(rehearsed ? [] : await loadWarnings(config, this.io.env)),
            ],
        mistakes: invalidEntries,
      },
      this.io,
      signal,
    )
  }
}

export class ServeReload extends SvcCommand {
  static override summary = 'Make the running svc serve reload svc.yaml and its certificate'
  static override description =
    `Asks the svc serve of this account, and waits for the outcome. If svc.yaml has a mistake, svc reports it
with its line, the server keeps the previous configuration, and the exit code is 12. The exit code is 6
if no svc serve runs. For the service of the Debian package, use systemctl reload svc. With an embedded
store, svc serve also reloads by itself when svc.yaml changes (serve.watchConfig), unless the change has
a mistake, ends an open incident, or removes a receiver or more than a tenth of the monitors.`
  static override answers = { '': lists(async () => (await import('../cli/serve/lists.ts')).reloads) }
  static override examples = ['<%= config.bin %> serve reload', '<%= config.bin %> serve reload --config ./svc.yaml']
  static override flags = {
    config: text('config')({ description: 'The server that uses this svc.yaml (SVC_CONFIG)' }),
    store: text('store')({ description: 'The server that uses this store (SVC_STORE)' }),
    pid: integer({ description: 'The server with this process id', min: 1 }),
    'empty-include': boolean({
      description: 'Accept that patterns of include: which matched files match none now',
    }),
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(ServeReload)
    const { requestReload } = await import('../cli/serve/request-reload.ts')
    const { reloadText } = await import('../cli/serve/lists.ts')
    const reloaded = await requestReload(flags, this.io.env, signal)
    for (const warning of reloaded.warnings) this.say(`Warning: ${warning}`)
    this.printList(reloadText(reloaded, thisMachine, this.output))
  }
}

async function loaded(
  flags: Parameters<typeof configuration>[0],
  env: Parameters<typeof configuration>[1],
  files: LoadOptions['files'],
) {
  const config = await configuration(flags, env, { tolerant: 'entries', files })
  return { config, invalidEntries: config.invalidEntries }
}

/**
 * The rehearsal for `--rehearse`, and its configuration. Throws a Fault for flags that it cannot have, and for mistakes
 * in svc.yaml or the script.
 */
async function rehearsalOf(
  file: string,
  flags: Parameters<typeof configuration>[0] & Readonly<Record<string, unknown>> & { readonly port: number },
  env: Parameters<typeof configuration>[1],
) {
  const { readScript, refuseFlags, rehearse } = await import('../cli/serve/rehearse.ts')
  refuseFlags(flags, usualPort)
  const real = await configuration(flags, env)
  const rehearsal = await rehearse(await readScript(file, real), real)
  return { rehearsal, config: rehearsal.config }
}

/** As `svc monitors validate` reads it: any mistake is a Fault, and so is a monitor that cannot run here. */
async function configurationForReload(
  flags: Parameters<typeof configuration>[0],
  env: Parameters<typeof configuration>[1],
  reading: Pick<LoadOptions, 'reload' | 'files'>,
): ReturnType<typeof configuration> {
  const config = await configuration(flags, env, reading)
  const lines = config.cannotRun.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`)
  const [first] = lines
  if (first !== undefined) throw new Fault('Local', first, { places: config.cannotRun, hints: lines.slice(1) })
  return { ...config, warnings: [...config.warnings, ...(await loadWarnings(config, env))] }
}

const nothingConfigured = (origin: string | undefined): string =>
  `SVC_REQUIRE_CONFIG=1 and ${origin === undefined ? 'there is no svc.yaml' : `${origin} configures no monitors`}: every server type answers 503`

/** Without TLS, other machines would exchange passwords and answers with this server in clear text. */
const openListening = (host: string): Fault =>
  new Fault('Usage', `--host ${host} requires TLS: other machines can connect`, {
    hints: [
      'With a certificate:   --tls-cert cert.pem --tls-key key.pem',
      'Behind a TLS proxy:   --behind-proxy ADDRESS',
      'On this machine only: omit --host',
      'Without TLS:          --insecure-listen',
    ],
  })

/** Throws Usage for a text that is not the address or network of a proxy, or not the name of an account. */
async function refuseUnless(flag: 'behind-proxy' | 'local-account', text: string): Promise<void> {
  const { accountProblem, proxyProblem } = await import('../core/config/index.ts')
  const problem = flag === 'behind-proxy' ? proxyProblem(text) : accountProblem(text)
  if (problem !== undefined) throw new Fault('Usage', `--${flag} ${text} ${problem}`)
}
