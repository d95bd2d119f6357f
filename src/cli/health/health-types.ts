import { Fault } from '../../core/base/errors.ts'
import type { LoadedConfig } from '../../core/config/index.ts'
import {
  type HealthCheckResponse,
  type MonitorSummary,
  type RunDocument,
  ServerType,
  warningIn,
} from '../../core/protocol/index.ts'
import type { Call, RuntimeFacts } from '../../core/protocol/service/service.ts'
import { type TypeOrAll, variable } from '../command/flags.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { waysToConfigure } from '../session/first-config.ts'
import type { CommandSession } from '../session/session.ts'

export type TypesQuestion = {
  /** As the command line names them. Empty: all that are configured. */
  readonly requested: readonly TypeOrAll[]
  /** Without a configuration, nothing passes: not even the checks of svc itself. */
  readonly requireConfig: boolean
}

/** The types of a health check, and those that it leaves out. */
export type ChosenTypes = {
  readonly checked: readonly ServerType[]
  /** Named types that are not configured on this machine. */
  readonly refused: readonly { readonly type: ServerType; readonly fault: Fault }[]
  /** The types that a check of everything leaves out. Empty without a configuration. */
  readonly notConfigured: readonly ServerType[]
  /** Set if a configuration is required and the server cannot say whether it has one: why a pass there counts as none. */
  readonly doubt?: Doubt | undefined
}

/** The fault that a pass of an older svc may hide, or undefined for a pass that counts. */
export type Doubt = (type: ServerType, answer: HealthCheckResponse, run: RunDocument | undefined) => Fault | undefined

/** Whether `SVC_REQUIRE_CONFIG` is 1. Throws Usage for a value other than 0 or 1. */
export function requiresConfig(env: ProcessEnvironment): boolean {
  const value = variable(env, 'SVC_REQUIRE_CONFIG')
  if (value === undefined || value === '0') return false
  if (value === '1') return true
  throw new Fault('Usage', 'SVC_REQUIRE_CONFIG must be 1 or 0', {
    hints: ['SVC_REQUIRE_CONFIG=1 is the same as svc health --require-config.'],
  })
}

/**
 * Decides which types are checked. A server is asked for its configured types: named ones need no decision there. The
 * call is for that request. Throws a Fault when there is nothing to check.
 */
export async function chooseTypes(session: CommandSession, question: TypesQuestion, call: Call): Promise<ChosenTypes> {
  const { requested } = question
  const everything = requested.length === 0 || requested.includes('all')
  const typeList = everything ? [] : [...new Set(requested as readonly ServerType[])]
  const { runtime, config, env } = session
  if (!runtime || !config) {
    return everything ? await allThere(session, question, call) : await typesThere(session, typeList, call)
  }
  return everything ? allHere(runtime.facts, config, env) : typesHere(typeList, runtime.facts, config, env)
}

const without = (types: readonly ServerType[]): readonly ServerType[] =>
  ServerType.values.filter((type) => !types.includes(type))

function allHere({ types, ownTypes }: RuntimeFacts, config: LoadedConfig, env: ProcessEnvironment): ChosenTypes {
  if (types.length > 0) return { checked: types, refused: [], notConfigured: without(types) }
  if (ownTypes.length === 0) throw notConfigured('nothing', config, env)
  return { checked: ownTypes, refused: [], notConfigured: [] }
}

function typesHere(
  typeList: readonly ServerType[],
  { types, ownTypes }: RuntimeFacts,
  config: LoadedConfig,
  env: ProcessEnvironment,
): ChosenTypes {
  const checked = typeList.filter((type) => types.includes(type) || ownTypes.includes(type))
  const refused = typeList.flatMap((type) =>
    checked.includes(type) ? [] : [{ type, fault: notConfigured(type, config, env) }],
  )
  return { checked, refused, notConfigured: [] }
}

/** The fault for a missing configuration on this machine, with the places where svc looked for it. */
function notConfigured(what: ServerType | 'nothing', config: LoadedConfig, env: ProcessEnvironment): Fault {
  const { origin, searched, mistakes, mistakeLines, warnings } = config
  const propose = waysToConfigure(origin, env)
  if (origin === undefined) {
    const message = what === 'nothing' ? 'nothing is configured' : `${what} is not configured`
    return new Fault('Local', `${message}: there is no svc.yaml`, {
      hints: [...searched.map((path) => `Looked for ${path}`), ...warnings, ...propose],
    })
  }
  return new Fault(
    'Local',
    what === 'nothing' ? `${origin} configures no monitors` : `${origin} does not configure ${what}`,
    {
      places: mistakes,
      hints: [
        ...mistakeLines,
        ...(what === 'nothing' ? propose : [`Add it under types: in ${origin}, then: svc monitors validate`]),
      ],
    },
  )
}

async function allThere(session: CommandSession, question: TypesQuestion, call: Call): Promise<ChosenTypes> {
  const hasAll = question.requested.includes('all')
  try {
    const { Types = [], Configured = false } = await session.service.serverTypes({}, call)
    // A later server may have more types than this version knows.
    const checked = ServerType.values.filter((type) => Types.includes(type))
    if (checked.length === 0 || (question.requireConfig && !Configured)) throw nothingThere(session.label)
    return { checked, refused: [], notConfigured: Configured ? without(checked) : [] }
  } catch (error) {
    if (!isUnknownRequest(error)) throw error
    if (hasAll && !question.requireConfig) return { checked: ServerType.values, refused: [], notConfigured: [] }
    const missing = hasAll ? '--type all needs a server that lists its types' : '--type is required with this server'
    throw new Fault('Usage', missing, {
      hints: [`Types: ${ServerType.values.join(' ')}`, 'Give one or more, for example --type App,Sql'],
    })
  }
}

/** Named types at a server where a configuration is required. Whether it has these types, its own answers say. */
async function typesThere(session: CommandSession, typeList: readonly ServerType[], call: Call): Promise<ChosenTypes> {
  const chosen: ChosenTypes = { checked: typeList, refused: [], notConfigured: [] }
  try {
    const { Configured = false } = await session.service.serverTypes({}, call)
    if (!Configured) throw nothingThere(session.label)
    return chosen
  } catch (error) {
    if (!isUnknownRequest(error)) throw error
    return { ...chosen, doubt: doubtAt(session.label) }
  }
}

/**
 * At a server without GetServerTypes, a run is that of an older svc, which may have checked only itself. svc 0.1 sends
 * no run, but its answer says whether it did. Any other server has checks of its own.
 */
const doubtAt =
  (label: string): Doubt =>
  (type, answer, run) => {
    if (run) {
      return new Fault('Local', `${label} does not report whether it has a configuration`, {
        hints: [
          'A proxy may refuse GET /server-types: let it pass.',
          'Otherwise an older svc answers, which may have checked only itself: update it.',
        ],
      })
    }
    if (!(answer.MonitorSummaries ?? []).some(isOwnCheckOf01)) return undefined
    return new Fault('Local', `${type} is not configured at ${label}: the server checked only itself`, {
      hints: [`Add the monitors of ${type} in the svc.yaml of that server, and restart it.`],
    })
  }

/**
 * Whether svc 0.1 has added this summary to an answer for a type without a monitor: a warning of the monitor
 * `Configuration`, or `configuration` without its message for a caller on another machine.
 */
const isOwnCheckOf01 = ({ MonitorName = '', Results = [] }: MonitorSummary): boolean =>
  MonitorName.toLowerCase() === 'configuration' &&
  Results.some(
    ({ MonitoringName, StatusMessage = '' }) =>
      MonitoringName === 'configured' && warningIn(StatusMessage) !== undefined,
  )

/** Whether the server does not know GetServerTypes: ServiceStack, or an older svc. */
const isUnknownRequest = (error: unknown): boolean =>
  error instanceof Fault && (error.details.remoteStatus === 404 || error.details.remoteStatus === 405)

const nothingThere = (label: string): Fault =>
  new Fault('Local', `nothing is configured at ${label}`, {
    hints: ['Add the monitors under types: in the svc.yaml of that server, and restart it.'],
  })
