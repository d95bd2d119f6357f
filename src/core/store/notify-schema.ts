import type { Words } from './schema.ts'

/** The state of the notifications about each check, by receiver. Released: never changed. */
export const notifyTables = ({ text, strict }: Words): string => `
CREATE TABLE "notifyRows" (
  "id" ${text} PRIMARY KEY,
  "body" ${text} NOT NULL
)${strict};
`

/**
 * Drills, and what each receiver knows of them, apart from what it knows of incidents. `slot`: the minute in which it began, so
 * that two processes do not begin one at a time. Released: never changed.
 */
export const drillTables = ({ integer, text, strict }: Words): string => `
CREATE TABLE "drills" (
  "id" ${text} PRIMARY KEY,
  "beganAt" ${integer} NOT NULL,
  "slot" ${integer} NOT NULL UNIQUE,
  "body" ${text} NOT NULL
)${strict};
CREATE INDEX "drillsByTime" ON "drills" ("beganAt");
CREATE TABLE "drillRows" (
  "id" ${text} PRIMARY KEY,
  "body" ${text} NOT NULL
)${strict};
`
