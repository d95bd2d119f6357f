export * from './backlog.ts'
export * from './folder-checks.ts'
export * from './folder-connection.ts'
export * from './probe-file.ts'
