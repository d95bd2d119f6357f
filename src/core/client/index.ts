/** The Service of a server, over HTTP. */
export { type Client, type ClientOptions, openClient, patience } from './client.ts'
