import type { LoadedConfig } from '../core/config/index.ts'
import { Fault } from '../core/errors.ts'
import { ServerType } from '../core/protocol/index.ts'
import type { Call, RuntimeFacts } from '../core/service.ts'
import { waysToConfigure } from './first-config.ts'
import { type ProcessEnvironment, type TypeOrAll, variable } from './flags.ts'
import type { CommandSession } from './session.ts'

export type TypesQuestion = {
  /** As the command line names them. Empty: all that are configured. */
  readonly requested: readonly TypeOrAll[]
  /** Without a configuration, nothing passes: not even the checks of svc itself. */
  readonly requireConfig: boolean
}

/** What a health check consists of. */
export type ChosenTypes = {
  readonly checked: readonly ServerType[]
  /** Named types that are not configured on this machine. */
  readonly refused: readonly { readonly type: ServerType; readonly fault: Fault }[]
  /** The types that a check of everything leaves out. Empty without a configuration. */
  readonly notConfigured: readonly ServerType[]
}

const switches: Readonly<Record<string, boolean>> = {
  1: true,
  true: true,
  yes: true,
  on: true,
  0: false,
  false: false,
  no: false,
  off: false,
}

/** Whether `SVC_REQUIRE_CONFIG` is on. Throws Usage for a value that is neither on nor off. */
export function requiresConfig(env: ProcessEnvironment): boolean {
  const value = variable(env, 'SVC_REQUIRE_CONFIG')
  const on = value === undefined ? false : switches[value.trim().toLowerCase()]
  if (on === undefined) {
    throw new Fault('Usage', 'SVC_REQUIRE_CONFIG must be 1 or 0', {
      hints: ['SVC_REQUIRE_CONFIG=1 is the same as --require-config.'],
    })
  }
  return on
}

/**
 * Decides which types are checked. A server is asked for its configured types: named ones need no decision there. The
 * call is for that request. Throws a Fault when there is nothing to check.
 */
export async function chooseTypes(session: CommandSession, question: TypesQuestion, call: Call): Promise<ChosenTypes> {
  const { requested } = question
  const everything = requested.length === 0 || requested.includes('all')
  const typeList = everything ? [] : [...new Set(requested as readonly ServerType[])]
  const { runtime, config } = session
  if (!runtime || !config) return await allThere(session, question, call)
  return everything ? allHere(runtime.facts, config, question) : typesHere(typeList, runtime.facts, config, question)
}

const without = (types: readonly ServerType[]): readonly ServerType[] =>
  ServerType.values.filter((type) => !types.includes(type))

function allHere(facts: RuntimeFacts, config: LoadedConfig, { requireConfig }: TypesQuestion): ChosenTypes {
  if (facts.types.length > 0) return { checked: facts.types, refused: [], notConfigured: without(facts.types) }
  if (config.origin !== undefined || requireConfig) throw notConfigured('nothing', config)
  return { checked: facts.ownTypes, refused: [], notConfigured: [] }
}

function typesHere(
  typeList: readonly ServerType[],
  facts: RuntimeFacts,
  config: LoadedConfig,
  { requireConfig }: TypesQuestion,
): ChosenTypes {
  const ownCount = config.origin === undefined && !requireConfig
  const checked = typeList.filter((type) => facts.types.includes(type) || (ownCount && facts.ownTypes.includes(type)))
  const refused = typeList.flatMap((type) =>
    checked.includes(type) ? [] : [{ type, fault: notConfigured(type, config) }],
  )
  return { checked, refused, notConfigured: [] }
}

/** What is not configured on this machine, and where svc looked for it. */
function notConfigured(what: ServerType | 'nothing', { origin, searched, mistakes }: LoadedConfig): Fault {
  const propose = waysToConfigure(origin, process.env)
  if (origin === undefined) {
    const message = what === 'nothing' ? 'nothing is configured' : `${what} is not configured`
    return new Fault('Local', `${message}: there is no svc.yaml`, {
      hints: [...searched.map((path) => `Looked for ${path}`), ...propose],
    })
  }
  return new Fault(
    'Local',
    what === 'nothing' ? `${origin} configures no monitors` : `${origin} does not configure ${what}`,
    {
      places: mistakes,
      hints: [
        ...mistakes.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`),
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
    if (checked.length === 0 || (question.requireConfig && !Configured)) {
      throw new Fault('Local', `nothing is configured at ${session.label}`, {
        hints: [`Name what to check there: --type App`, `Types: ${ServerType.values.join(' ')}`],
      })
    }
    return { checked, refused: [], notConfigured: Configured ? without(checked) : [] }
  } catch (error) {
    const { remoteStatus } = error instanceof Fault ? error.details : {}
    if (remoteStatus !== 404 && remoteStatus !== 405) throw error
    // A server that does not know this request, such as ServiceStack or an older svc.
    if (hasAll && !question.requireConfig) return { checked: ServerType.values, refused: [], notConfigured: [] }
    throw new Fault('Usage', '--type is required with this server', {
      hints: [`Types: ${ServerType.values.join(' ')}`, 'Give one or more, for example --type App,Sql'],
    })
  }
}
