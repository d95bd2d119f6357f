import type { DatabaseSync } from 'node:sqlite'

/** Words that differ between the two databases. */
export type Words = {
  readonly integer: string
  /** A number that may have a fraction. */
  readonly real: string
  /** Text compared byte by byte. */
  readonly text: string
  readonly bytes: string
  /** An integer key that only grows. */
  readonly growing: string
  /** Appended after a table's columns. */
  readonly strict: string
}

export const sqliteWords: Words = {
  integer: 'INTEGER',
  real: 'REAL',
  text: 'TEXT',
  bytes: 'BLOB',
  growing: 'INTEGER PRIMARY KEY AUTOINCREMENT',
  strict: ' STRICT',
}
export const postgresWords: Words = {
  integer: 'BIGINT',
  real: 'DOUBLE PRECISION',
  text: 'TEXT COLLATE "C"',
  bytes: 'BYTEA',
  growing: 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
  strict: '',
}

/**
 * Step 2: users, their roles and permissions, their sessions and tokens, failed sign-ins and the audit. Released: never
 * changed.
 */
export const accountTables = ({ integer, text, growing, strict }: Words): string => `
CREATE TABLE "users" (
  "id" ${text} PRIMARY KEY,
  "userName" ${text} NOT NULL,
  "nameKey" ${text} NOT NULL UNIQUE,
  "email" ${text},
  "displayName" ${text},
  "passwordHash" ${text},
  "disabled" ${integer} NOT NULL,
  "createdAt" ${integer} NOT NULL,
  "epoch" ${integer} NOT NULL
)${strict};
CREATE TABLE "names" (
  "key" ${text} PRIMARY KEY,
  "userId" ${text} NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE
)${strict};
CREATE INDEX "namesOfUser" ON "names" ("userId");
CREATE TABLE "grants" (
  "seq" ${growing},
  "userId" ${text} NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
  "kind" ${text} NOT NULL CHECK ("kind" IN ('role', 'permission')),
  "name" ${text} NOT NULL,
  UNIQUE ("userId", "kind", "name")
)${strict};
CREATE INDEX "grantsByName" ON "grants" ("name", "kind");
CREATE TABLE "sessions" (
  "hash" ${text} PRIMARY KEY,
  "userId" ${text} NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
  "epoch" ${integer} NOT NULL,
  "permanent" ${integer} NOT NULL,
  "createdAt" ${integer} NOT NULL,
  "lastUsedAt" ${integer} NOT NULL,
  "idleMs" ${integer} NOT NULL,
  "endsAt" ${integer} NOT NULL,
  "familyId" ${text} NOT NULL
)${strict};
CREATE INDEX "sessionsOfUser" ON "sessions" ("userId");
CREATE INDEX "sessionsOfFamily" ON "sessions" ("familyId");
CREATE INDEX "sessionsByEnd" ON "sessions" ("endsAt");
CREATE TABLE "accessTokens" (
  "hash" ${text} PRIMARY KEY,
  "userId" ${text} NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
  "epoch" ${integer} NOT NULL,
  "familyId" ${text} NOT NULL,
  "expiresAt" ${integer} NOT NULL
)${strict};
CREATE INDEX "accessTokensOfUser" ON "accessTokens" ("userId");
CREATE INDEX "accessTokensOfFamily" ON "accessTokens" ("familyId");
CREATE INDEX "accessTokensByEnd" ON "accessTokens" ("expiresAt");
CREATE TABLE "refreshTokens" (
  "hash" ${text} PRIMARY KEY,
  "familyId" ${text} NOT NULL,
  "userId" ${text} NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
  "epoch" ${integer} NOT NULL,
  "kind" ${text} NOT NULL CHECK ("kind" IN ('fixed', 'rotating')),
  "permanent" ${integer} NOT NULL,
  "idleMs" ${integer} NOT NULL,
  "lastUsedAt" ${integer} NOT NULL,
  "endsAt" ${integer} NOT NULL,
  "usedAt" ${integer},
  "sealedSuccessor" ${text}
)${strict};
CREATE INDEX "refreshTokensOfUser" ON "refreshTokens" ("userId");
CREATE INDEX "refreshTokensOfFamily" ON "refreshTokens" ("familyId");
CREATE INDEX "refreshTokensByEnd" ON "refreshTokens" ("endsAt");
CREATE INDEX "refreshTokensSealed" ON "refreshTokens" ("usedAt") WHERE "sealedSuccessor" IS NOT NULL;
CREATE TABLE "apiKeys" (
  "id" ${text} PRIMARY KEY,
  "name" ${text} NOT NULL,
  "hash" ${text} NOT NULL UNIQUE,
  "userId" ${text} NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
  "roles" ${text},
  "createdAt" ${integer} NOT NULL,
  "expiresAt" ${integer},
  "revokedAt" ${integer}
)${strict};
CREATE UNIQUE INDEX "apiKeysByName" ON "apiKeys" ("name") WHERE "revokedAt" IS NULL;
CREATE INDEX "apiKeysOfUser" ON "apiKeys" ("userId");
CREATE TABLE "failures" (
  "key" ${text} PRIMARY KEY,
  "count" ${integer} NOT NULL,
  "lastAt" ${integer} NOT NULL
)${strict};
CREATE INDEX "failuresByTime" ON "failures" ("lastAt");
CREATE TABLE "audit" (
  "id" ${growing},
  "at" ${integer} NOT NULL,
  "event" ${text} NOT NULL,
  "who" ${text} NOT NULL,
  "actorId" ${text},
  "address" ${text},
  "target" ${text},
  "correlationId" ${text} NOT NULL,
  "before" ${text},
  "after" ${text},
  "reason" ${text}
)${strict};
`

/** Step 3: heartbeats of agents, and keys limited to some permissions. Released: never changed. */
export const heartbeatTables = ({ integer, real, text, strict }: Words): string => `
CREATE TABLE "heartbeats" (
  "name" ${text} PRIMARY KEY,
  "at" ${integer} NOT NULL,
  "who" ${text} NOT NULL,
  "status" ${text} NOT NULL CHECK ("status" IN ('Ok', 'Warn', 'Fail')),
  "message" ${text},
  "version" ${text},
  "intervalMs" ${integer},
  "backlog" ${integer},
  "diskFreePercent" ${real},
  "skewMs" ${integer},
  "history" ${text} NOT NULL
)${strict};
CREATE INDEX "heartbeatsByTime" ON "heartbeats" ("at");
ALTER TABLE "apiKeys" ADD COLUMN "permissions" ${text};
`

/** Step 4: readings of runs, for trends. Released: never changed. */
export const readingTables = ({ integer, text, strict }: Words): string => `
CREATE TABLE "readings" (
  "series" ${text} PRIMARY KEY,
  "at" ${integer} NOT NULL,
  "points" ${text} NOT NULL
)${strict};
CREATE INDEX "readingsByTime" ON "readings" ("at");
`

/**
 * Step 5: indexes for the sweep, which runs every few seconds, and for keys by name, revoked or not. Both avoid a full
 * scan. Released: never changed.
 */
export const lookupIndexes = `
CREATE INDEX "sessionsByIdle" ON "sessions" (("lastUsedAt" + "idleMs"));
CREATE INDEX "refreshTokensByIdle" ON "refreshTokens" (("lastUsedAt" + "idleMs")) WHERE "usedAt" IS NULL;
CREATE INDEX "auditOfRefusals" ON "audit" ("at") WHERE "event" IN ('signin.failed', 'signin.locked');
CREATE INDEX "apiKeysByEveryName" ON "apiKeys" ("name");
`

/** Step 6: the last run of a job, as JSON. Released: never changed. */
export const jobRuns = ({ text }: Words): string => `
ALTER TABLE "heartbeats" ADD COLUMN "run" ${text};
`

/**
 * Step 7: the limit of guesses for each name, the prefixes that have signed in with a name, and the store's own keys.
 * Released: never changed.
 */
export const guessTables = ({ integer, text, strict }: Words): string => `
CREATE TABLE "guesses" (
  "name" ${text} PRIMARY KEY,
  "fullAt" ${integer} NOT NULL
)${strict};
CREATE INDEX "guessesByTime" ON "guesses" ("fullAt");
CREATE TABLE "knownPrefixes" (
  "mac" ${text} PRIMARY KEY,
  "userId" ${text} NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
  "at" ${integer} NOT NULL
)${strict};
CREATE INDEX "knownPrefixesOfUser" ON "knownPrefixes" ("userId", "at");
CREATE INDEX "knownPrefixesByTime" ON "knownPrefixes" ("at");
CREATE TABLE "storeKeys" (
  "name" ${text} PRIMARY KEY,
  "key" ${text} NOT NULL
)${strict};
`

/**
 * Step 8: what a user sees of an own session. Every earlier sign-in was by password. Of a family whose session row has
 * expired, the time of the sign-in is no longer known. Released: never changed.
 */
export const sessionFacts = ({ integer, text }: Words): string => `
ALTER TABLE "sessions" ADD COLUMN "provider" ${text} NOT NULL DEFAULT 'credentials';
ALTER TABLE "refreshTokens" ADD COLUMN "provider" ${text} NOT NULL DEFAULT 'credentials';
ALTER TABLE "refreshTokens" ADD COLUMN "createdAt" ${integer};
UPDATE "refreshTokens" SET "createdAt" =
  (SELECT "createdAt" FROM "sessions" WHERE "sessions"."familyId" = "refreshTokens"."familyId" LIMIT 1);
`

/**
 * Step 9: what users sign in with by HTTP Digest, and the nonces that they have used (A12). `usedUntil`: the user's nonces
 * made by then are no longer accepted. Released: never changed.
 */
export const digestTables = ({ integer, text, strict }: Words): string => `
CREATE TABLE "digestSecrets" (
  "userId" ${text} PRIMARY KEY REFERENCES "users" ("id") ON DELETE CASCADE,
  "realm" ${text} NOT NULL,
  "sha256" ${text} NOT NULL,
  "md5" ${text} NOT NULL,
  "forAdmin" ${integer} NOT NULL,
  "usedUntil" ${integer} NOT NULL
)${strict};
CREATE TABLE "digestNonces" (
  "nonce" ${text} PRIMARY KEY,
  "userId" ${text} NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
  "nc" ${integer} NOT NULL,
  "madeAt" ${integer} NOT NULL
)${strict};
CREATE INDEX "digestNoncesOfUser" ON "digestNonces" ("userId", "madeAt");
CREATE INDEX "digestNoncesByTime" ON "digestNonces" ("madeAt");
`

/**
 * Step 10: the users behind identities of OpenID providers, the roles that a sign-in has from claims, and browser
 * sign-ins that are complete, so that none counts twice.
 */
export const openIdTables = ({ integer, text, strict }: Words): string => `
CREATE TABLE "identities" (
  "issuer" ${text} NOT NULL,
  "subject" ${text} NOT NULL,
  "userId" ${text} NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
  "createdAt" ${integer} NOT NULL,
  PRIMARY KEY ("issuer", "subject")
)${strict};
CREATE INDEX "identitiesOfUser" ON "identities" ("userId");
CREATE TABLE "claimedRoles" (
  "familyId" ${text} PRIMARY KEY,
  "userId" ${text} NOT NULL REFERENCES "users" ("id") ON DELETE CASCADE,
  "roles" ${text} NOT NULL,
  "endsAt" ${integer} NOT NULL
)${strict};
CREATE INDEX "claimedRolesOfUser" ON "claimedRoles" ("userId");
CREATE INDEX "claimedRolesByEnd" ON "claimedRoles" ("endsAt");
CREATE TABLE "usedStates" (
  "state" ${text} PRIMARY KEY,
  "endsAt" ${integer} NOT NULL
)${strict};
CREATE INDEX "usedStatesByEnd" ON "usedStates" ("endsAt");
`

/** Step 11: what somebody silenced or acknowledged by hand. `endsAt` is the earlier one of its times. Released: never changed. */
export const silenceTables = ({ integer, text, strict }: Words): string => `
CREATE TABLE "quiets" (
  "id" ${text} PRIMARY KEY,
  "endsAt" ${integer} NOT NULL,
  "body" ${text} NOT NULL
)${strict};
CREATE INDEX "quietsByEnd" ON "quiets" ("endsAt");
`

/**
 * Step 12: grants that end by themselves, and who granted them, when and why. Earlier grants are permanent. `noticedEnd`:
 * the end that receivers of notifications were told of.
 */
export const grantEnds = ({ integer, text }: Words): string => `
ALTER TABLE "grants" ADD COLUMN "endsAt" ${integer};
ALTER TABLE "grants" ADD COLUMN "grantedAt" ${integer};
ALTER TABLE "grants" ADD COLUMN "grantedBy" ${text};
ALTER TABLE "grants" ADD COLUMN "reason" ${text};
ALTER TABLE "grants" ADD COLUMN "noticedEnd" ${integer};
CREATE INDEX "grantsByEnd" ON "grants" ("endsAt") WHERE "endsAt" IS NOT NULL;
`

/**
 * Step 13: the seals of the audit (S13). `seal` of an entry: 0 until it is sealed, then the number of its seal. A version before this
 * step writes no value, and neither does anybody who adds an entry by hand. `changes` and `refusals` list the sealed entries
 * with their hashes (store/audit); `refusals` becomes null when the refusals have been deleted, and their digest stays. The
 * index finds the entries to seal.
 */
export const auditSeals = ({ integer, text, strict }: Words): string => `
ALTER TABLE "audit" ADD COLUMN "seal" ${integer};
CREATE TABLE "auditSeals" (
  "number" ${integer} PRIMARY KEY,
  "at" ${integer} NOT NULL,
  "changes" ${text} NOT NULL,
  "refusals" ${text},
  "refusalsDigest" ${text} NOT NULL,
  "refusalsUntil" ${integer},
  "hash" ${text} NOT NULL
)${strict};
CREATE INDEX "auditSealsByRefusals" ON "auditSeals" ("refusalsUntil") WHERE "refusalsUntil" IS NOT NULL AND "refusals" IS NOT NULL;
CREATE INDEX "auditUnsealed" ON "audit" ("id") WHERE "seal" IS NULL OR "seal" = 0;
`

/**
 * Step 14: the permission `quiet` is named `silence`, at users and keys. In the text of a list in JSON, a quotation mark
 * after a bracket or a comma begins a name. A user who already holds both keeps both, and they count as one.
 */
const renamedGrants = `UPDATE "grants" SET "name" = 'silence'
  WHERE "kind" = 'permission' AND "name" = 'quiet' AND NOT EXISTS (
    SELECT 1 FROM "grants" "other"
    WHERE "other"."userId" = "grants"."userId" AND "other"."kind" = 'permission' AND "other"."name" = 'silence')`
const renamedInKeys = `UPDATE "apiKeys"
  SET "permissions" = replace(replace("permissions", '["quiet"', '["silence"'), ',"quiet"', ',"silence"')
  WHERE "permissions" LIKE '%"quiet"%'`
export const silencePermission = { users: renamedGrants, keys: renamedInKeys }

/**
 * Step 15: the leases of nodes that share a PostgreSQL store. `shard`: `network`, or `@` and the name of a node. Versions before
 * share monitors by the tables of the history, which stay as they are.
 */
export const leaseTables = ({ integer, text, strict }: Words): string => `
CREATE TABLE "leases" (
  "shard" ${text} PRIMARY KEY,
  "node" ${text} NOT NULL,
  "process" ${text} NOT NULL,
  "epoch" ${integer} NOT NULL,
  "beats" ${integer} NOT NULL,
  "writes" ${integer} NOT NULL,
  "base" ${integer} NOT NULL,
  "renewedAt" ${integer} NOT NULL,
  "leftAt" ${integer}
)${strict};
`

/**
 * Step 16: `temporaryHash` is the hash of a password that the user has to change. Another hash in `passwordHash` ends that,
 * whichever version of svc has changed the password.
 */
export const temporaryPasswords = ({ text }: Words): string => `
ALTER TABLE "users" ADD COLUMN "temporaryHash" ${text};
`

/** `svc1` in the file header marks a SQLite file as ours. */
export const applicationId = 0x73766331

/**
 * The schema as migrations, forwards only: step n takes a store from version n to n + 1. A released step never changes;
 * a change needs a new step. PostgreSQL's steps (postgres-migrate.ts) have the same versions.
 */
export const migrations: readonly string[] = [
  `CREATE TABLE meta (
     id INTEGER PRIMARY KEY CHECK (id = 1),
     createdAt TEXT NOT NULL,
     version INTEGER NOT NULL
   ) STRICT;
   INSERT INTO meta (id, createdAt, version) VALUES (1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 0);`,
  accountTables(sqliteWords),
  heartbeatTables(sqliteWords),
  readingTables(sqliteWords),
  lookupIndexes,
  jobRuns(sqliteWords),
  guessTables(sqliteWords),
  sessionFacts(sqliteWords),
  digestTables(sqliteWords),
  openIdTables(sqliteWords),
  silenceTables(sqliteWords),
  grantEnds(sqliteWords),
  auditSeals(sqliteWords),
  `${silencePermission.users};\n${silencePermission.keys};`,
  leaseTables(sqliteWords),
  temporaryPasswords(sqliteWords),
]

/** The schema version, from the file's header. */
export const versionOf = (database: DatabaseSync): number => pragma(database, 'user_version')

/** An integer PRAGMA. */
export function pragma(database: DatabaseSync, name: string): number {
  const row = database.prepare(`PRAGMA ${name}`).get()
  return Number(row ? Object.values(row)[0] : 0)
}

/**
 * Takes a database from its version to the newest. Each step is one transaction that also writes the version, so a kill
 * leaves complete steps. The version is read again under the write lock, so that a second process does not repeat a
 * step. Throws SQLite's errors.
 */
export function migrate(database: DatabaseSync, steps: readonly string[]): void {
  for (let version = versionOf(database); version < steps.length; version = versionOf(database)) {
    database.exec('BEGIN IMMEDIATE')
    try {
      if (versionOf(database) === version) {
        database.exec(steps[version] ?? '')
        database.exec(`UPDATE meta SET version = ${version + 1}; PRAGMA user_version = ${version + 1}`)
      }
      database.exec('COMMIT')
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      throw error
    }
  }
}

/** An object of a schema. */
export type FoundObject = {
  readonly kind: string
  readonly name: string
  /** The table that it belongs to; its own name for a table or a view. */
  readonly table: string
  /** The value of a default. */
  readonly text: string | null
  /** Whether its table refers to others, so that removing a row of svc may reach it. */
  readonly refers: boolean | number
}

/** The objects of svc, from the text of the steps that make them. */
export type OwnSchema = {
  readonly database: 'sqlite' | 'postgres'
  /** Tables and indexes. */
  readonly names: ReadonlySet<string>
  /** As `table.column`. */
  readonly columns: ReadonlySet<string>
  /** The default of `table.column`. */
  readonly defaults: ReadonlyMap<string, string>
  /** Tables whose defaults are not compared, because their version is not known. */
  readonly uncompared: ReadonlySet<string>
}

/**
 * All steps count, also those that a store has yet to take: an upgrade in progress has made some of their objects. `more`:
 * steps of tables with a version of their own in the same database.
 */
export function ownSchema(
  database: OwnSchema['database'],
  steps: readonly string[],
  more: readonly string[] = [],
): OwnSchema {
  const fold = folded(database)
  const namesIn = (texts: readonly string[]): readonly string[] =>
    texts.flatMap((text) =>
      [...text.matchAll(/CREATE (?:TABLE|(?:UNIQUE )?INDEX) "?(\w+)"?/g)].map(([, name = '']) => fold(name)),
    )
  const columns: string[] = []
  const defaults = new Map<string, string>()
  // Statement by statement, at whose beginning each pattern is anchored: its time is linear.
  for (const text of steps.flatMap((step) => step.split(';'))) {
    const [head = '', table = ''] = /^\s*CREATE TABLE "?(\w+)"? \(\n/.exec(text) ?? []
    const made = head === '' ? [] : text.slice(head.length).matchAll(/^ *"?(\w+)"? (?!KEY)[A-Z]/gm)
    for (const [, column = ''] of made) columns.push(fold(`${table}.${column}`))
    const [, altered, added] = /^\s*ALTER TABLE "(\w+)" ADD COLUMN "(\w+)"/.exec(text) ?? []
    if (altered === undefined || added === undefined) continue
    const column = fold(`${altered}.${added}`)
    columns.push(column)
    const [, value] = text.split(' DEFAULT ')
    if (value !== undefined) defaults.set(column, value)
  }
  return {
    database,
    names: new Set(namesIn([...steps, ...more])),
    columns: new Set(columns),
    defaults,
    uncompared: new Set(namesIn(more)),
  }
}

/** SQLite ignores the letter case of names. */
const folded = (database: OwnSchema['database']) => (name: string) =>
  database === 'sqlite' ? name.toLowerCase() : name

/** The objects that svc did not make, of those that a query has returned as JSON. */
export function unknownObjects(
  objects: string,
  own: OwnSchema,
): { readonly altering: readonly FoundObject[]; readonly foreign: readonly FoundObject[] } {
  const all = JSON.parse(objects) as readonly FoundObject[]
  const effects = all.map((object) => effectOf(object, own))
  return {
    altering: all.filter((_, n) => effects[n] === 'altering'),
    foreign: all.filter((_, n) => effects[n] === 'foreign'),
  }
}

function effectOf(
  { kind, name, table, text, refers }: FoundObject,
  { database, names, columns, defaults, uncompared }: OwnSchema,
): 'own' | 'altering' | 'foreign' {
  const fold = folded(database)
  const isOwn = names.has(fold(table))
  switch (kind) {
    case 'table':
    case 'index':
      return names.has(fold(name)) ? 'own' : 'foreign'
    case 'default': {
      const column = fold(`${table}.${name}`)
      if (!isOwn || uncompared.has(fold(table)) || withoutCast(text) === defaults.get(column)) return 'own'
      // The next version may have begun to upgrade the store. svc does not read the column.
      return columns.has(column) || !constant.test(text ?? '') ? 'altering' : 'foreign'
    }
    case 'generated column':
      return isOwn && !uncompared.has(fold(table)) ? 'altering' : 'own'
    case 'trigger':
      return isOwn || refers ? 'altering' : 'foreign'
    default:
      return isOwn ? 'altering' : 'foreign'
  }
}

/** A default that runs nothing. */
const constant = /^(?:'(?:[^']|'')*'|-?\d+(?:\.\d+)?|NULL|true|false)(?:::[\w" ]+)?$/i

/** PostgreSQL shows the type of a text. */
const withoutCast = (text: string | null): string | undefined => text?.replace(/::text$/, '')
