export * from './checks.ts'
export * from './connection.ts'
