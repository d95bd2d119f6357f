export { byCertificateName, healthPageOf, httpServer, pageOf } from './http.ts'
export * from './recognition.ts'
