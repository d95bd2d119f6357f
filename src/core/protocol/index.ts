/** The interface as code: schemas, DTOs, enumerations and the table of operations. */

export * from './administration.ts'
export * from './dtos.ts'
export * from './enums.ts'
export * from './grants.ts'
export * from './names.ts'
export * from './operations.ts'
export * from './permissions.ts'
export * from './rehearsal-marks.ts'
export * from './run-document.ts'
export * from './schema.ts'
export * from './select.ts'
