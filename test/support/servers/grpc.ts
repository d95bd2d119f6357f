import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type Metadata, Server, ServerCredentials, type UntypedHandleCall } from '@grpc/grpc-js'
import { HealthImplementation, type ServingStatusMap, service } from 'grpc-health-check'
import type { ServerCertificate } from './certs.ts'

export type GrpcServer = {
  readonly port: number
  /** How many connections are open. */
  readonly open: () => number
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** A server of @grpc/grpc-js on loopback, over sockets that are counted here. */
export async function grpcServer(fill: (server: Server) => void, tls?: ServerCertificate): Promise<GrpcServer> {
  const server = new Server()
  fill(server)
  const injector = server.createConnectionInjector(
    tls
      ? ServerCredentials.createSsl(null, [{ private_key: Buffer.from(tls.key), cert_chain: Buffer.from(tls.cert) }])
      : ServerCredentials.createInsecure(),
  )
  const sockets = new Set<Socket>()
  const listener = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    injector.injectConnection(socket)
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return {
    port: (listener.address() as AddressInfo).port,
    open: () => sockets.size,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      listener.close()
      await once(listener, 'close')
      injector.destroy()
      server.forceShutdown()
    },
  }
}

/** Its health service is that of grpc-health-check. */
export const healthServer = (statuses: ServingStatusMap, tls?: ServerCertificate): Promise<GrpcServer> =>
  grpcServer((server) => new HealthImplementation(statuses).addToServer(server), tls)

/** The refusal of a call of Check: undefined for SERVING. */
export type Refusal = { readonly code: number; readonly details: string } | undefined

/** Its health service answers each call as `check` says. */
export const checkServer = (check: (metadata: Metadata) => Refusal, tls?: ServerCertificate): Promise<GrpcServer> =>
  grpcServer((server) => {
    const handle = (call: { readonly metadata: Metadata }, done: (error: object | null, value?: object) => void) => {
      const refusal = check(call.metadata)
      if (refusal) done(refusal)
      else done(null, { status: 'SERVING' })
    }
    server.addService(service, { check: handle as UntypedHandleCall, watch: handle as UntypedHandleCall })
  }, tls)
