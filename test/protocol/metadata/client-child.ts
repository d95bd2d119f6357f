/** Drives @servicestack/client with the DTOs that a server gave out: `node client-child.ts DTOS URL PASSWORD`. */
import { pathToFileURL } from 'node:url'
import { type IReturn, JsonServiceClient } from '@servicestack/client'

type Made<T> = new (init: object) => IReturn<T>
const [, , file = '', url = '', password = ''] = process.argv
const dtos = (await import(pathToFileURL(file).href)) as {
  readonly HealthCheckRequest: Made<{ Status: string; FailedMonitorCount: number }>
  readonly Authenticate: Made<{ BearerToken: string }>
  readonly AssignRoles: Made<{ AllRoles: string[] }>
  readonly ExecutionMode: { readonly Basic: 'Basic' }
  readonly ServerType: { readonly App: 'App'; readonly Mongo: 'Mongo' }
}
const { AssignRoles, Authenticate, ExecutionMode, HealthCheckRequest, ServerType } = dtos
const client = new JsonServiceClient(url)
const health = (type: string) => new HealthCheckRequest({ ExecutionMode: ExecutionMode.Basic, ServerType: type })

const got = await client.get(health(ServerType.App))
const posted = await client.post(health(ServerType.App))
const request = await client.api(health(ServerType.App))
const failed = await client.api(health(ServerType.Mongo))
const { BearerToken } = await client.post(
  new Authenticate({ provider: 'credentials', UserName: 'Ann', Password: password }),
)
client.bearerToken = BearerToken
const change = (UserName: string, role: string) => new AssignRoles({ UserName, Roles: [role] })
const all = await client.sendAll([change('Ned', 'One'), change('Ned', 'Two')])
const ended = await client.sendAll([change('Ned', 'Three'), change('nobody', 'x'), change('Ned', 'Four')]).then(
  () => 'no failure',
  (error: { responseStatus: unknown }) => error.responseStatus,
)
const oneWay = new JsonServiceClient(url).useBasePath()
oneWay.bearerToken = BearerToken
await oneWay.sendAllOneWay([change('Ned', 'Five')])
const [holder] = await client.sendAll([new AssignRoles({ UserName: 'Ned' })])
process.stdout.write(
  JSON.stringify({
    got: got.Status,
    posted: posted.Status,
    requests: request.response?.Status,
    failed: failed.error?.errorCode,
    all: all.map(({ AllRoles }) => AllRoles),
    ended,
    holder: holder?.AllRoles,
  }),
)
