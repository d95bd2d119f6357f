import { Fault } from '../../core/base/errors.ts'
import { sanitizeLine } from '../../core/base/sanitize.ts'
import { nearestHint } from '../../core/base/suggest.ts'
import type { FleetServer } from '../../core/config/index.ts'
import { nameMatcher } from '../../core/protocol/index.ts'
import { variable } from '../command/flags.ts'
import { limitGarbage } from '../io/heap.ts'
import type { Io } from '../io/io.ts'
import { machine } from '../io/process.ts'
import { readSettings, type SessionFlags } from '../session/session.ts'
import type { ServerProfile } from '../settings/profiles.ts'
import type { FleetShape } from './fold.ts'

/** The flags that ask one server again and again. */
const watchFlags = ['watch', 'interval', 'until', 'within', 'wait'] as const

export type FleetFlags = Omit<SessionFlags, 'server'> & {
  readonly server?: readonly string[] | undefined
  readonly fleet?: string | undefined
  readonly tag?: readonly string[] | undefined
  readonly 'at-once'?: number | undefined
} & { readonly [flag in (typeof watchFlags)[number]]?: unknown }

/** One of many servers. */
export type FleetTarget = Pick<
  FleetServer,
  'types' | 'mode' | 'credential' | 'caFile' | 'proxy' | 'proxyUsername' | 'proxyPassword'
> & {
  readonly name: string
  readonly url: string
  readonly insecureHttp: boolean
  readonly profile?: ServerProfile | undefined
}

export type FleetTargets = FleetShape & {
  readonly targets: readonly FleetTarget[]
  readonly warnings: readonly string[]
}

/**
 * The servers that the command line names. Throws Usage for flags that name other places too, for SVC_TOKEN, and where
 * nothing matches, and Local for a fleet file with a mistake.
 */
export async function fleetTargets(flags: FleetFlags, io: Io, say: (line: string) => void): Promise<FleetTargets> {
  const chooser = refuseOtherPlaces(flags, io.env)
  for (const name of ['SVC_CONFIG', 'SVC_STORE', 'SVC_PROFILE', 'SVC_SERVER']) {
    const value = variable(io.env, name)
    if (value !== undefined && (chooser !== '--server' || name !== 'SVC_SERVER')) {
      say(`Note: ${chooser} takes precedence over ${name}`)
    }
  }
  if (flags.fleet !== undefined) return await fromFile(flags.fleet, flags, io)
  const shape = { before: new Map(), devices: [], warnings: [] }
  if (flags.profile !== undefined) {
    return { ...shape, label: flags.profile, targets: await fromProfiles(flags.profile, io) }
  }
  const { readAddress } = await import('../../core/client/index.ts')
  const insecureHttp = flags['insecure-http'] ?? false
  // One server twice is one.
  const urls = new Set((flags.server ?? []).map((url) => readAddress(url, insecureHttp).label))
  const targets = [...urls].map((url) => ({ name: url, url, insecureHttp }))
  return { ...shape, label: '', targets }
}

/** Returns the flag that chooses the servers. */
function refuseOtherPlaces(flags: FleetFlags, env: Io['env']): '--server' | '--profile' | '--fleet' {
  const { fleet } = flags
  const places = ['fleet', 'server', 'profile', 'config', 'store', 'local'] as const
  const [chooser, other] = places.filter((name) => flags[name]).map((name) => `--${name}`)
  if (other !== undefined) {
    throw new Fault('Usage', `${chooser} and ${other} cannot be combined`, { hints: ['Omit one of them.'] })
  }
  const watch = watchFlags.find((name) => flags[name])
  if (watch !== undefined) {
    throw new Fault('Usage', `--${watch} takes one server`, { hints: ['Watch each server with a command of its own.'] })
  }
  if (flags.tag !== undefined && fleet === undefined) throw tagAlone()
  if (variable(env, 'SVC_TOKEN') !== undefined) {
    throw new Fault('Usage', 'SVC_TOKEN is set, and several servers would get it', {
      hints: ['Unset it, and sign in at each server (svc login), or give each a credential in a fleet file.'],
    })
  }
  return chooser as '--server' | '--profile' | '--fleet'
}

const tagAlone = (): Fault =>
  new Fault('Usage', '--tag has an effect only with --fleet', { hints: ['Add --fleet FILE, or omit --tag.'] })

/** Throws Usage for a flag that only means something for many servers. */
export function refuseFleetFlags(flags: FleetFlags): void {
  if (flags.tag !== undefined) throw tagAlone()
  if (flags['at-once'] === undefined) return
  throw new Fault('Usage', '--at-once has an effect only with several servers', {
    hints: ["Repeat --server, or add --fleet FILE or --profile 'NAME*', or omit --at-once."],
  })
}

async function fromProfiles(pattern: string, { env }: Io): Promise<readonly FleetTarget[]> {
  const { profiles } = await readSettings(env)
  const matches = nameMatcher(pattern)
  const matching = profiles.filter(({ name }) => matches(name.toLowerCase()))
  if (matching.length > 0) {
    return matching.map((profile) => ({ name: profile.name, url: profile.server, insecureHttp: false, profile }))
  }
  const names = profiles.map(({ name }) => name).join(' ')
  throw new Fault('Usage', `no profile matches "${pattern}" (--profile)`, {
    hints: [names === '' ? 'There is no profile yet. To create one: svc login --server URL' : `Profiles: ${names}`],
  })
}

/** Characters. Parsing YAML takes a hundred times as much memory. */
const longFile = 128 * 1_024

async function fromFile(path: string, flags: FleetFlags, { env }: Io): Promise<FleetTargets> {
  const { loadFleetFile } = await import('../../core/config/index.ts')
  const { servers, devices, before, warnings } = await (await loadFleetFile()).loadFleet({
    path,
    env,
    platform: machine.platform,
    onLength: (characters) => (characters > longFile ? limitGarbage() : undefined),
    uid: machine.accountId(),
    insecureHttp: flags['insecure-http'] ?? false,
    keychain: async (name) => await (await import('../keychain/secrets.ts')).readSecret(name, env),
  })
  const tags = new Set(flags.tag)
  const targets = tags.size === 0 ? servers : servers.filter((server) => server.tags?.some((tag) => tags.has(tag)))
  if (targets.length === 0) {
    const all = [...new Set(servers.flatMap((server) => server.tags ?? []))].toSorted()
    const list = all.length > 0 ? `Tags: ${all.slice(0, 40).join(' ')}` : 'No server there has tags.'
    throw new Fault('Usage', `no server of ${path} has the tag ${[...tags].join(' or ')}`, {
      hints: [...[...tags].flatMap((tag) => nearestHint(tag, all)), list],
    })
  }
  return { targets, before, devices, warnings, label: sanitizeLine(path) }
}
