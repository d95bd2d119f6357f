export { byCertificateName, httpServer, pageOf } from './http.ts'
export * from './recognition.ts'
