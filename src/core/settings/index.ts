export * from './read.ts'
export * from './secret.ts'
export * from './setting.ts'
export * from './units.ts'
