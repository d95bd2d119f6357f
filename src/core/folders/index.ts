export * from './checks.ts'
export { type Age, evaluateAge } from './checks.ts'
