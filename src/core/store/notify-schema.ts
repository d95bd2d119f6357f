import type { Words } from './schema.ts'

/** What each receiver of notifications knows of each check. Released: never changed. */
export const notifyTables = ({ text, strict }: Words): string => `
CREATE TABLE "notifyRows" (
  "id" ${text} PRIMARY KEY,
  "body" ${text} NOT NULL
)${strict};
`
