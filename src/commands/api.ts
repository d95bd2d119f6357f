import { apiRequest, dataFromStdin, showAnswer } from '../cli/api/api.ts'
import { SvcCommand } from '../cli/command/base.ts'
import { settle } from '../cli/command/exit.ts'
import { boolean, connectionFlags, durationFlag, repeatable, requiredArgument, text } from '../cli/command/flags.ts'
import { localCall, openClientAt, readSettings, shownUrl } from '../cli/session/session.ts'
import { chooseTarget } from '../cli/settings/target.ts'
import { Fault } from '../core/base/errors.ts'

export default class Api extends SvcCommand {
  static override summary = 'Send an authenticated HTTP request to a server'
  static override description =
    `Writes the response body unchanged to a pipe or file. On a terminal, escape sequences are removed
and binary content is not shown. --include prints the status line and the headers first, without
the values of cookies.

The exit code is 0 for a 2xx status. For any other status, svc prints an error and exits with 4 for
401, 5 for 403, 9 for other 4xx, and 8 for 5xx, 429 and redirects (svc help exit-codes). The body
does not affect the exit code; use svc health to check health. With --json, an error without a
response body is printed as a JSON value.

PATH is a path below the base URL of the selected server, with its query; --server and --profile
select another server. The request carries the stored sign-in, which is renewed once after a 401,
or SVC_TOKEN. GET follows redirects within the server; other methods follow none.`
  static override examples = [
    '<%= config.bin %> api GET /auth',
    "<%= config.bin %> api GET '/healthcheck?ExecutionMode=Basic&ServerType=App&format=prtg'",
    '<%= config.bin %> api POST /assignroles --data \'{"UserName":"alice"}\'',
    "<%= config.bin %> api POST /import --data @rows.csv --header 'Content-Type: text/csv'",
  ]
  static override args = {
    method: requiredArgument('METHOD', 'GET, POST, PUT, PATCH, DELETE, HEAD or OPTIONS'),
    path: requiredArgument('PATH', 'Path and query below the base URL'),
  }
  static override flags = {
    data: text('data')({
      char: 'd',
      description: 'The body, sent as JSON; @FILE sends the bytes of a file, @- standard input (for secrets)',
      helpValue: '<TEXT|@FILE|@->',
    }),
    header: text('header')({
      char: 'H',
      description: 'A header to send; repeatable. Authentication headers are refused',
      helpValue: "<'Name: value'>",
      ...repeatable,
    }),
    include: boolean({ char: 'i', description: 'Print the status line and the headers, too' }),
    timeout: durationFlag('timeout')({ description: 'Give up after this long (default 25s)' }),
    server: text('server')({
      description: "URL of the server (SVC_SERVER); default: the profile's server",
      helpGroup: 'TARGET',
    }),
    profile: connectionFlags.profile,
    'ca-file': connectionFlags['ca-file'],
    'insecure-http': connectionFlags['insecure-http'],
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Api)
    const target = await chooseTarget(flags, this.io.env, () => readSettings(this.io.env))
    if (target.kind === 'local') throw noServer()
    this.target = shownUrl(target.url)
    const request = await apiRequest(
      { method: args.method, path: args.path, data: flags.data, headers: flags.header ?? [] },
      () => dataFromStdin(this.io.stdin, signal),
      signal,
    )
    using client = await openClientAt(target, flags, this.io)
    const answer = await client.ask(request, localCall(signal, { timeoutMs: flags.timeout }))
    const { bytes, note } = showAnswer(answer, { include: flags.include, ...this.io })
    this.io.stdout.write(bytes)
    if (note !== undefined) this.say(note)
    // Standard output contains only the server's response.
    const json = flags.json && bytes.length === 0
    if (answer.fault) await settle(answer.fault, { json, debug: flags.debug, target: this.target }, this.io)
  }
}

const noServer = (): Fault =>
  new Fault('Usage', 'no server is selected: svc api sends requests to a server', {
    hints: [
      'Without a server, the commands health, roles and users act on this machine.',
      'On this machine:  svc serve, and in another shell: svc api … --server http://127.0.0.1:8790',
      'Elsewhere:        svc api … --server https://svc.example.com',
    ],
  })
