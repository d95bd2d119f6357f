import type { Words } from './schema.ts'

/**
 * Step 5: nodes that share the store, and which of them has which monitor; and the key of the monitor beside what is stored of
 * it, which earlier versions leave out. The rows of drills have it too, because the same statements write them. Released: never
 * changed.
 */
export const nodeTables = ({ integer, text, bytes, growing, strict }: Words): string => `
CREATE TABLE "nodes" (
  "epoch" ${growing},
  "node" ${text} NOT NULL,
  "process" ${text} NOT NULL,
  "renewedAt" ${integer} NOT NULL,
  "leftAt" ${integer},
  "config" ${text} NOT NULL,
  "isIsolated" ${integer} NOT NULL,
  "facts" ${text} NOT NULL,
  "writes" ${integer} NOT NULL,
  "again" ${integer} NOT NULL
)${strict};
CREATE INDEX "nodesByName" ON "nodes" ("node", "epoch");
CREATE TABLE "nodeStamps" (
  "key" ${text} PRIMARY KEY,
  "epoch" ${integer} NOT NULL
)${strict};
CREATE INDEX "nodeStampsByEpoch" ON "nodeStamps" ("epoch");
CREATE TABLE "nodeConfigurations" (
  "digest" ${text} PRIMARY KEY,
  "putAt" ${integer} NOT NULL,
  "body" ${bytes} NOT NULL
)${strict};
ALTER TABLE "historyStates" ADD COLUMN "key" ${text};
CREATE INDEX "historyStatesByKey" ON "historyStates" ("key");
ALTER TABLE "historyIncidents" ADD COLUMN "key" ${text};
CREATE INDEX "historyIncidentsByKey" ON "historyIncidents" ("key") WHERE "endedAt" IS NULL;
ALTER TABLE "notifyRows" ADD COLUMN "key" ${text};
CREATE INDEX "notifyRowsByKey" ON "notifyRows" ("key");
ALTER TABLE "drillRows" ADD COLUMN "key" ${text};
`
