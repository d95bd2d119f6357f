import type { Choice, Combination, File, PlaceFlag, PlaceVariable, Requirement, Server, Type } from './dimensions.ts'
import { types } from './dimensions.ts'

/** Why a gate has its exit code, in a word. */
export type Reason =
  | 'healthy'
  | 'only itself'
  | 'unhealthy'
  | 'mode too shallow'
  | 'type not configured'
  | 'nothing configured'
  | 'not proven'
  | 'mistake'
  | 'no such file'
  | 'contradiction'
  | 'type required'
  | 'two places'
  | 'empty variable'
  | 'sign-in'
  | 'unreachable'
  | 'no answer'
  | 'old answer'
  | 'no operation'

/** An exit code, and whether a warning comes with a 0. */
export type Outcome = { readonly exit: number; readonly reason: Reason; readonly warns?: boolean }

const healthy: Outcome = { exit: 0, reason: 'healthy' }
/** svc found nothing that it should check, and checked itself. */
const itself: Outcome = { exit: 0, reason: 'only itself', warns: true }
const unhealthy: Outcome = { exit: 3, reason: 'unhealthy' }
/** svc.yaml configures checks, and none of them runs in the mode. */
const tooShallow: Outcome = { exit: 3, reason: 'mode too shallow' }
/** The server answers 503 for a type that its svc.yaml lacks. */
const lackingThere: Outcome = { exit: 3, reason: 'type not configured' }
const lackingHere: Outcome = { exit: 12, reason: 'type not configured' }
const nothing: Outcome = { exit: 12, reason: 'nothing configured' }
const unproven: Outcome = { exit: 12, reason: 'not proven' }
const mistake: Outcome = { exit: 12, reason: 'mistake' }
const absent: Outcome = { exit: 12, reason: 'no such file' }
const contradiction: Outcome = { exit: 3, reason: 'contradiction' }
const typeRequired: Outcome = { exit: 2, reason: 'type required' }
const signIn: Outcome = { exit: 4, reason: 'sign-in' }
const unreachable: Outcome = { exit: 6, reason: 'unreachable' }
const noAnswer: Outcome = { exit: 7, reason: 'no answer' }
const oldAnswer: Outcome = { exit: 8, reason: 'old answer' }
const noOperation: Outcome = { exit: 9, reason: 'no operation' }

/** One outcome for each of `types`, in their order. */
type ByType = readonly [app: Outcome, ftp: Outcome, all: Outcome, none: Outcome]
type Row = {
  readonly usual: ByType
  /** With `--require-config` or `SVC_REQUIRE_CONFIG=1`. Absent: the same. */
  readonly required?: ByType
}

const always = (outcome: Outcome): Row => ({ usual: [outcome, outcome, outcome, outcome] })

const atServers: Readonly<Record<Server, Row>> = {
  'svc, healthy': { usual: [healthy, lackingThere, healthy, healthy] },
  'svc, unhealthy': { usual: [unhealthy, lackingThere, unhealthy, unhealthy] },
  'svc without a configuration': {
    usual: [itself, lackingThere, itself, itself],
    required: [nothing, nothing, nothing, nothing],
  },
  'svc without a configuration, with SVC_REQUIRE_CONFIG=1': {
    usual: [lackingThere, lackingThere, nothing, nothing],
    required: [nothing, nothing, nothing, nothing],
  },
  // A server without GetServerTypes is asked for all types, of which it lacks most.
  'older svc without a configuration, which sends runs': {
    usual: [itself, lackingThere, lackingThere, typeRequired],
    required: [unproven, lackingThere, typeRequired, typeRequired],
  },
  'svc 0.1, healthy': {
    usual: [healthy, lackingThere, lackingThere, typeRequired],
    required: [healthy, lackingThere, typeRequired, typeRequired],
  },
  'svc 0.1 without a configuration': {
    usual: [itself, lackingThere, lackingThere, typeRequired],
    required: [lackingHere, lackingThere, typeRequired, typeRequired],
  },
  'ServiceStack, healthy': {
    usual: [healthy, healthy, healthy, typeRequired],
    required: [healthy, healthy, typeRequired, typeRequired],
  },
  'ServiceStack, unhealthy': {
    usual: [unhealthy, unhealthy, unhealthy, typeRequired],
    required: [unhealthy, unhealthy, typeRequired, typeRequired],
  },
  'ServiceStack without a health operation': {
    usual: [noOperation, noOperation, noOperation, typeRequired],
    required: [noOperation, noOperation, typeRequired, typeRequired],
  },
  'a login page': always(signIn),
  'a cache with an old answer': always(oldAnswer),
  'Success with the HTTP status 503': { usual: [contradiction, lackingThere, contradiction, contradiction] },
  'a port on which nothing listens': always(unreachable),
  'a server that accepts and sends nothing': always(noAnswer),
}

/** In the folder of this account. */
const inFiles: Readonly<Record<File, Row>> = {
  healthy: { usual: [healthy, lackingHere, healthy, healthy] },
  unhealthy: { usual: [unhealthy, lackingHere, unhealthy, unhealthy] },
  // It may hide a type, which matters where everything is checked.
  'with a mistake outside of the server types': { usual: [healthy, lackingHere, mistake, mistake] },
  'with only a host check of Standard, checked in Basic': { usual: [tooShallow, lackingHere, tooShallow, tooShallow] },
  'with a host block that switches on nothing': { usual: [lackingHere, lackingHere, nothing, nothing] },
  'that configures nothing': { usual: [lackingHere, lackingHere, nothing, nothing] },
  'that does not exist': {
    usual: [itself, lackingHere, itself, itself],
    required: [lackingHere, lackingHere, nothing, nothing],
  },
}

/** Where a call checks, and what named that place. */
export type Place =
  | { readonly at: 'this machine'; readonly by: '--config' | 'SVC_CONFIG' | 'the folder of the account' }
  | { readonly at: 'server'; readonly by: '--server' | '--profile' | 'SVC_SERVER' | 'SVC_PROFILE' | 'current profile' }
  | { readonly at: 'nowhere'; readonly outcome: Outcome }

const local: ReadonlySet<PlaceFlag | PlaceVariable> = new Set([
  '--config',
  '--store',
  '--local',
  'SVC_CONFIG',
  'SVC_STORE',
])

/** A flag overrides every variable, and a variable the current profile. Two of a kind that name two places are a mistake. */
export function placeOf({ flags, variables, empty, hasCurrentProfile }: Choice): Place {
  const refused = (reason: Reason): Place => ({ at: 'nowhere', outcome: { exit: 2, reason } })
  const here: Place = {
    at: 'this machine',
    by: flags.includes('--config')
      ? '--config'
      : variables.includes('SVC_CONFIG')
        ? 'SVC_CONFIG'
        : 'the folder of the account',
  }
  const flagOfServer = (['--server', '--profile'] as const).filter((flag) => flags.includes(flag))
  const variableOfServer = (['SVC_SERVER', 'SVC_PROFILE'] as const).filter((name) => variables.includes(name))
  const [byFlag, otherFlag] = flagOfServer
  const [byVariable] = variableOfServer
  if (empty !== undefined) return refused('empty variable')
  if (byFlag && (otherFlag || flags.some((flag) => local.has(flag)))) return refused('two places')
  if (flags.some((flag) => local.has(flag))) return here
  if (byFlag) return { at: 'server', by: byFlag }
  if (byVariable && variables.some((name) => local.has(name))) return refused('two places')
  if (variables.some((name) => local.has(name))) return here
  if (byVariable) return { at: 'server', by: byVariable }
  return hasCurrentProfile ? { at: 'server', by: 'current profile' } : here
}

const rowOutcome = ({ usual, required = usual }: Row, type: Type, requirement: Requirement): Outcome =>
  (requirement === 'nothing' ? usual : required)[types.indexOf(type)] as Outcome

export const serverOutcome = (server: Server, type: Type, requirement: Requirement): Outcome =>
  rowOutcome(atServers[server], type, requirement)

/** `named`: whether a flag or variable names the file. Then it has to exist. */
export const fileOutcome = (file: File, type: Type, requirement: Requirement, isNamed: boolean): Outcome =>
  isNamed && file === 'that does not exist' ? absent : rowOutcome(inFiles[file], type, requirement)

/** The code of a Nagios plugin in place of an exit code: OK 0, WARNING 1, CRITICAL 2, UNKNOWN 3. */
export function nagiosCode({ exit, warns = false }: Outcome): number {
  if (exit === 0) return warns ? 1 : 0
  return [3, 6, 7, 8].includes(exit) ? 2 : 3
}

/** Exit codes that no waiting changes: `--wait` ends at once. */
export const endsAtOnce: ReadonlySet<number> = new Set([0, 2, 4, 5, 9, 12])

/** The exit code of many servers, by the codes of their rows. */
export function manyServers(rows: readonly number[]): number {
  if (rows.every((row) => row === 0)) return 0
  for (const [among, exit] of [
    [[3, 6, 7], 3],
    [[12], 12],
  ] as const) {
    if (rows.some((row) => among.some((one) => one === row))) return exit
  }
  const others = rows.filter((row) => row !== 0)
  return others.every((row) => row === others[0]) ? (others[0] as number) : 10
}

/** The outcome of a combination before its format. */
export function outcomeOf({ choice, requirement, type, server, file }: Combination): Outcome {
  const place = placeOf(choice)
  if (place.at === 'nowhere') return place.outcome
  if (place.at === 'server') {
    if (server === undefined) throw new TypeError('the place is a server')
    return serverOutcome(server, type, requirement)
  }
  if (file === undefined) throw new TypeError('the place is this machine')
  return fileOutcome(file, type, requirement, place.by !== 'the folder of the account')
}

/** The exit code of a combination. */
export function exitOf(combination: Combination): number {
  const outcome = outcomeOf(combination)
  return combination.format === 'nagios' ? nagiosCode(outcome) : outcome.exit
}
