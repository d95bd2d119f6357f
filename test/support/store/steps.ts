import { migrations } from '../../../src/core/store/schema.ts'

/** The first step as it is, and then tables t2, t3 …: a step that is repeated or torn shows. */
export const manySteps = (count: number): readonly string[] => [
  migrations[0] ?? '',
  ...Array.from({ length: count - 1 }, (_, index) => {
    const table = `t${index + 2}`
    return `CREATE TABLE ${table} (x INTEGER NOT NULL) STRICT; INSERT INTO ${table} VALUES (1), (2)`
  }),
]
