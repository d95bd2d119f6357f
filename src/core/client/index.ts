/** The Service of a server, over HTTP. */

export { proxyFor } from '../base/proxy-variables.ts'
export { readAddress } from './address.ts'
export { type Client, type ClientOptions, openClient, patienceFor } from './client.ts'
export type { CredentialSource } from './credential.ts'
export type { RawAnswer, RawRequest } from './raw.ts'
export { Trust } from './trust.ts'
