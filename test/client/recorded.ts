/** Bodies and headers as a running ServiceStack 5.8.0 sent them, and as newer servers send the same. */

const metrics =
  '"ExecutionMetrics":{"StartDateTime":"\\/Date(1614834367089-0500)\\/","EndDateTime":"\\/Date(1614834368323-0500)\\/","Duration":"PT1.234S"}'
const sqlMonitor =
  '{"MonitorName":"Sql","Status":"Success","Results":[{"MonitoringName":"ping","Status":"Success","StatusMessage":"ok"}],"ErrorMessages":[]}'

export const bodies = {
  healthy: `{"Status":"Success","StatusMessage":"m,\\"q\\"","CorrelationId":"c1","FailedMonitorCount":0,"MonitorSummaries":[${sqlMonitor}],${metrics}}`,
  withState: `{"ServerState":{"ServerName":"vm","TotalRamInMb":24105.5,"AvailableRamInMb":20000,"UsedCpuPercent":12.25},"Status":"Success","StatusMessage":"m,\\"q\\"","CorrelationId":"c1","FailedMonitorCount":0,"MonitorSummaries":[${sqlMonitor}],${metrics}}`,
  failing: `{"Status":"Failure","StatusMessage":"m,\\"q\\"","CorrelationId":"c1","FailedMonitorCount":1,"MonitorSummaries":[{"MonitorName":"Mongo","Status":"Failure","Results":[{"MonitoringName":"ping","Status":"Success","StatusMessage":"ok"}],"ErrorMessages":[]}],${metrics}}`,
  badEnum: `{"ResponseStatus":{"ErrorCode":"SerializationException","Message":"Unable to bind to request 'HealthCheckRequest'","Errors":[{"ErrorCode":"SerializationException","FieldName":"ExecutionMode","Message":"'Wild' is an Invalid value for 'ExecutionMode'"}]}}`,
  invalidRole:
    '{"AllRoles":[],"AllPermissions":[],"ResponseStatus":{"ErrorCode":"Invalid Role","Message":"Invalid Role","Errors":[]}}',
  unknownUser:
    '{"AllRoles":[],"AllPermissions":[],"ResponseStatus":{"ErrorCode":"NotFound","Message":"nobody","Errors":[]}}',
  noUser:
    '{"AllRoles":[],"AllPermissions":[],"ResponseStatus":{"ErrorCode":"ArgumentNullException","Message":"Value cannot be null.\\nParameter name: UserName","Errors":[{"ErrorCode":"ArgumentNullException","FieldName":"UserName","Message":"Value cannot be null.\\n"}]}}',
  emptySignIn:
    '{"ResponseStatus":{"ErrorCode":"ValidationException","Message":"Validation failed: \\n -- UserName: \'User Name\' must not be empty.\\n -- Password: \'Password\' must not be empty.","Errors":[{"ErrorCode":"NotEmpty","FieldName":"UserName","Message":"\'User Name\' must not be empty.","Meta":{"PropertyName":"User Name"}},{"ErrorCode":"NotEmpty","FieldName":"Password","Message":"\'Password\' must not be empty.","Meta":{"PropertyName":"Password"}}]}}',
  unknownProvider:
    '{"ResponseStatus":{"ErrorCode":"NotFound","Message":"No configuration was added for OAuth provider \'zzz\'","Errors":[]}}',
  noMethod:
    '{"ResponseStatus":{"ErrorCode":"NotImplementedException","Message":"Could not find method named Get(AssignRoles) or Any(AssignRoles) on Service AssignRolesService"}}',
  assigned: '{"AllRoles":["R1","R2","R3","R4","r1"],"AllPermissions":["P1"]}',
  signedOut: '{"ResponseStatus":{}}',
  /** Version 10 under System.Text.Json: camelCase, ISO dates. */
  newer:
    '{"status":"Success","statusMessage":"m,\\"q\\"","correlationId":"c1","failedMonitorCount":0,"monitorSummaries":[{"monitorName":"Sql","status":"Success","results":[{"monitoringName":"ping","status":"Success","statusMessage":"ok"}],"errorMessages":[]}],"executionMetrics":{"startDateTime":"2021-03-04T05:06:07.0890000Z","endDateTime":"2021-03-04T00:06:08.323-05:00","duration":"PT1.234S"},"responseStatus":{},"extra":{"a":[1]}}',
} as const

/** An answer in the bytes of that server: its reason phrase, its cookies, and a chunked body. */
export function real(statusLine: string, body: string, contentType = 'application/json; charset=utf-8'): string {
  const half = Math.ceil(body.length / 2)
  const chunks = [body.slice(0, half), body.slice(half)].filter((chunk) => chunk !== '')
  return [
    `HTTP/1.1 ${statusLine}`,
    'Set-Cookie: ss-id=AbC; path=/; HttpOnly',
    'Set-Cookie: ss-pid=dEf; path=/; expires=Sat, 20 Nov 2046 10:00:00 GMT; HttpOnly',
    'Vary: Accept',
    'X-Powered-By: ServiceStack/5.80 NETStandard/Mono',
    ...(contentType === '' ? [] : [`Content-Type: ${contentType}`]),
    'Transfer-Encoding: chunked',
    '',
    ...chunks.map((chunk) => `${Buffer.byteLength(chunk).toString(16)}\r\n${chunk}`),
    '0',
    '',
    '',
  ].join('\r\n')
}

/** The text of a self-hosted server for an unknown path or verb. */
export const notFoundText =
  'HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n\r\n404'
