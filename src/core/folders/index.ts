export { type Age, evaluateAge } from './age.ts'
export * from './checks.ts'
export * from './connection.ts'
