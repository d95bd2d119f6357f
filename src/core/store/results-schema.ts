import { nodeTables } from './nodes-schema.ts'
import { drillTables, notifyTables } from './notify-schema.ts'
import { migrations, type Words } from './schema.ts'
import type { SqliteForm } from './sqlite-link.ts'

/**
 * Step 1: monitors and names with numbers, which the bytes contain in their place; single runs; and blocks of periods. Both
 * are keyed by their time first, so that what is written together lies together. Released: never changed.
 */
export const historyTables = ({ integer, text, bytes, strict }: Words): string => `
CREATE TABLE "historyMonitors" (
  "number" ${integer} PRIMARY KEY,
  "key" ${text} NOT NULL UNIQUE,
  "type" ${text} NOT NULL,
  "name" ${text} NOT NULL,
  "firstAt" ${integer} NOT NULL,
  "usedAt" ${integer} NOT NULL
)${strict};
CREATE TABLE "historyNames" (
  "number" ${integer} PRIMARY KEY,
  "text" ${text} NOT NULL UNIQUE,
  "usedAt" ${integer} NOT NULL
)${strict};
CREATE TABLE "historyRuns" (
  "at" ${integer} NOT NULL,
  "writer" ${integer} NOT NULL,
  "body" ${bytes} NOT NULL,
  PRIMARY KEY ("at", "writer")
)${strict};
CREATE TABLE "historyBlocks" (
  "tier" ${integer} NOT NULL,
  "at" ${integer} NOT NULL,
  "monitor" ${integer} NOT NULL,
  "runs" ${integer} NOT NULL,
  "times" ${bytes} NOT NULL,
  "figures" ${bytes} NOT NULL,
  PRIMARY KEY ("tier", "at", "monitor")
)${strict};
`

/**
 * Step 2: what is confirmed, from which a server that starts again continues; the incidents; and which server stored them last.
 * Released: never changed.
 */
export const statesTables = ({ integer, text, strict }: Words): string => `
CREATE TABLE "historyStates" (
  "id" ${text} PRIMARY KEY,
  "body" ${text} NOT NULL
)${strict};
CREATE TABLE "historyIncidents" (
  "id" ${text} PRIMARY KEY,
  "beganAt" ${integer} NOT NULL,
  "endedAt" ${integer},
  "ending" ${text},
  "body" ${text} NOT NULL
)${strict};
CREATE INDEX "historyIncidentsByBegin" ON "historyIncidents" ("beganAt");
CREATE INDEX "historyIncidentsByEnd" ON "historyIncidents" ("endedAt");
CREATE TABLE "historyWatch" (
  "writer" ${integer} NOT NULL,
  "at" ${integer} NOT NULL
)${strict};
`

/** Steps of the history by version, as text for one of the databases. In PostgreSQL, they are not part of those of the store. */
export const historySteps = (words: Words): readonly string[] => [
  historyTables(words),
  statesTables(words),
  notifyTables(words),
  drillTables(words),
  nodeTables(words),
]

/** The file of the history beside the embedded store. `svch` in its header: it is not a store, and no backup of one. */
export const historyForm = (words: Words): SqliteForm => ({
  id: 0x73766368,
  steps: [migrations[0] ?? '', ...historySteps(words)],
  synchronous: 'NORMAL',
})

export const historyPathOf = (store: string): string => `${store}.history`
