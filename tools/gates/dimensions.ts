/**
 * The ways to call a gate, `svc health` in a script: the dimensions of docs/gates.md. Nothing here is taken from
 * the sources of svc, so that a mistake there does not change what the tests expect.
 */

/** The ways to require a configuration. */
export const requirements = ['nothing', '--require-config', 'SVC_REQUIRE_CONFIG=1'] as const
export type Requirement = (typeof requirements)[number]

export const placeFlags = ['--config', '--store', '--local', '--server', '--profile'] as const
export type PlaceFlag = (typeof placeFlags)[number]
export const placeVariables = ['SVC_CONFIG', 'SVC_STORE', 'SVC_SERVER', 'SVC_PROFILE'] as const
export type PlaceVariable = (typeof placeVariables)[number]

/** The place to check, by a call and its environment. */
export type Choice = {
  readonly flags: readonly PlaceFlag[]
  readonly variables: readonly PlaceVariable[]
  /** A variable that is set but empty, as by a missing secret of CI. */
  readonly empty?: PlaceVariable | undefined
  readonly hasCurrentProfile: boolean
}

/** The server type: one that the configured targets have, one that they lack, all, or no `--type`. */
export const types = ['-t App', '-t Ftp', '-t all', 'no -t'] as const
export type Type = (typeof types)[number]

/** The values of `--output`. */
export const formats = [
  'table',
  'json',
  'csv',
  'tsv',
  'ndjson',
  'junit',
  'github',
  'nagios',
  'prtg',
  'prometheus',
] as const
export type Format = (typeof formats)[number]

/** A svc.yaml on this machine. */
export const files = [
  'healthy',
  'unhealthy',
  'with a mistake outside of the server types',
  'with only a host check of Standard, checked in Basic',
  'with a host block that switches on nothing',
  'that configures nothing',
  'that does not exist',
] as const
export type File = (typeof files)[number]

/** Whatever a URL leads to. */
export const servers = [
  'svc, healthy',
  'svc, unhealthy',
  'svc without a configuration',
  'svc without a configuration, with SVC_REQUIRE_CONFIG=1',
  'older svc without a configuration, which sends runs',
  'svc 0.1, healthy',
  'svc 0.1 without a configuration',
  'ServiceStack, healthy',
  'ServiceStack, unhealthy',
  'ServiceStack without a health operation',
  'a login page',
  'a cache with an old answer',
  'Success with the HTTP status 503',
  'a port on which nothing listens',
  'a server that accepts and sends nothing',
] as const
export type Server = (typeof servers)[number]

/** The members of every call, wherever it checks. */
export type Call = {
  readonly choice: Choice
  readonly requirement: Requirement
  readonly type: Type
  readonly format: Format
  /** Whether `--wait` is given. */
  readonly waits: boolean
}
export type Combination = Call & { readonly file?: File | undefined; readonly server?: Server | undefined }

const pairs = <T>(values: readonly T[]): readonly (readonly T[])[] =>
  values.flatMap((one, at) => values.slice(at + 1).map((other) => [one, other]))

const upToTwo = <T>(values: readonly T[]): readonly (readonly T[])[] => [
  [],
  ...values.map((value) => [value]),
  ...pairs(values),
]

/** Every choice of at most two flags and two variables, or one empty variable. */
export const choices: readonly Choice[] = upToTwo(placeFlags).flatMap((flags) =>
  [
    ...upToTwo(placeVariables).map((variables) => ({ variables })),
    ...placeVariables.map((empty) => ({ variables: [], empty })),
  ].flatMap((variables) =>
    [false, true].map((hasCurrentProfile): Choice => ({ flags, ...variables, hasCurrentProfile })),
  ),
)

/** Whether a choice has at most one flag and one variable, which is not empty. */
export const isSimple = ({ flags, variables, empty }: Choice): boolean =>
  flags.length < 2 && variables.length < 2 && empty === undefined
