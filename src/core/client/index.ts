/** The Service of a server, over HTTP. */
export { readAddress } from './address.ts'
export { type Client, type ClientOptions, openClient, patienceFor } from './client.ts'
export type { CredentialSource } from './credential.ts'
export { proxyFor } from './proxy.ts'
export type { RawAnswer, RawRequest } from './raw.ts'
