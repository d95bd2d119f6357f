import { apiRequest, dataFromStdin, showAnswer } from '../cli/api.ts'
import { SvcCommand } from '../cli/base.ts'
import { settle } from '../cli/exit.ts'
import { argument, boolean, connectionFlags, durationFlag, text } from '../cli/flags.ts'
import { writeOutput } from '../cli/process.ts'
import { localCall, openClientAt, readSettings, shownUrl } from '../cli/session.ts'
import { chooseTarget } from '../cli/target.ts'
import { Fault } from '../core/errors.ts'

export default class Api extends SvcCommand {
  static override summary = 'Ask a server for anything that has no command, as who you are signed in'
  static override description =
    `Prints what the server answers, byte for byte, into a pipe or file; a terminal gets it without
escapes, and nothing of what is no text. --include puts the status line and the headers before
it; of cookies it leaves out the values.

The exit code is 0 for a 2xx. Any other status is told on standard error and exits as everywhere:
4 for 401, 5 for 403, 9 for other 4xx, 8 for 5xx, 429 and redirects (svc help exit-codes). What
the body says of itself does not count here: svc health judges health. With --json, an error
without an answer to print is a JSON value.

PATH is a path of the chosen server, below its base URL, with its query; --server and --profile
name another server. The stored sign-in or SVC_TOKEN is sent along, and the former renewed once
after a 401. A GET follows redirects within the server; nothing else follows any.`
  static override examples = [
    '<%= config.bin %> api GET /auth',
    "<%= config.bin %> api GET '/healthcheck?ExecutionMode=Basic&ServerType=App&format=prtg'",
    '<%= config.bin %> api POST /assignroles --data \'{"UserName":"alice"}\'',
    "<%= config.bin %> api POST /import --data @rows.csv --header 'Content-Type: text/csv'",
  ]
  static override args = {
    method: argument({
      name: 'METHOD',
      description: 'GET, POST, PUT, PATCH, DELETE, HEAD or OPTIONS',
      ignoreStdin: true,
    }),
    path: argument({ name: 'PATH', description: 'Path and query below the base URL', ignoreStdin: true }),
  }
  static override flags = {
    data: text('data')({
      char: 'd',
      description: 'The body, sent as JSON; @FILE sends the bytes of a file, @- standard input (for secrets)',
      helpValue: '<TEXT|@FILE|@->',
    }),
    header: text('header')({
      char: 'H',
      description: 'A header to send; repeatable. None that signs in',
      helpValue: "<'Name: value'>",
      multiple: true,
      multipleNonGreedy: true,
    }),
    include: boolean({ char: 'i', description: 'Print the status line and the headers, too' }),
    timeout: durationFlag('timeout')({ description: 'Give up after this long (default 25s)' }),
    server: text('server')({
      description: "URL of the server (SVC_SERVER); without it the profile's",
      helpGroup: 'TARGET',
    }),
    profile: connectionFlags.profile,
    'ca-file': connectionFlags['ca-file'],
    'insecure-http': connectionFlags['insecure-http'],
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Api)
    const target = await chooseTarget(flags, process.env, () => readSettings(process.env))
    if (target.kind === 'local') throw noServer()
    this.target = shownUrl(target.url)
    const request = await apiRequest(
      { method: args.method, path: args.path, data: flags.data, headers: flags.header ?? [] },
      () => dataFromStdin(signal),
    )
    const client = await openClientAt(target, flags, process.env)
    try {
      const answer = await client.ask(request, localCall(signal, { timeoutMs: flags.timeout }))
      const { bytes, note } = showAnswer(answer, { include: flags.include, terminal: process.stdout.isTTY })
      writeOutput(bytes)
      if (note !== undefined) this.say(note)
      // Standard output contains only the server's response.
      const json = flags.json && bytes.length === 0
      if (answer.fault) await settle(answer.fault, { json, debug: flags.debug, target: this.target })
    } finally {
      client.close()
    }
  }
}

const noServer = (): Fault =>
  new Fault('Usage', 'svc api asks a server, and none is chosen', {
    hints: [
      'Without one there is nothing to ask over HTTP: svc health, svc roles and svc users act on this machine.',
      'A server here:  svc serve, and in another shell: svc api … --server http://127.0.0.1:8790',
      'Another:        svc api … --server https://svc.example.com',
    ],
  })
