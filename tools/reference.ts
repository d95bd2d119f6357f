/**
 * Writes docs/reference from the tables that the program itself reads.
 *   node tools/reference.ts [--into FOLDER]            writes
 *   node tools/reference.ts --check [--into FOLDER]    exits 1 when a file is not what would be written
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { answersOf, type CommandAnswer } from '../src/cli/help/records.ts'
import { exits, faults } from '../src/core/base/errors.ts'
import { type Cost, type KindCost, type MeasuredCost, plainCost } from '../src/core/checks/engine/cost.ts'
import { describeKinds, describeSettings, type KindRow, type SettingRow } from '../src/core/checks/plan/index.ts'
import { authSettings } from '../src/core/config/auth.ts'
import { fleetServerSettings, fleetSettings } from '../src/core/config/fleet.ts'
import { commonSettings, serveSettings } from '../src/core/config/index.ts'
import {
  type Dto,
  ExecutionMode,
  type Fields,
  neverInQuery,
  operations,
  type Schema,
  schemaOf,
  type WhoMayCall,
} from '../src/core/protocol/index.ts'
import { type OwnPage, ownPages } from '../src/core/server/routes.ts'
import { type AuditEventRow, auditEvents } from '../src/core/store/audit-events.ts'
import { drillSettings } from '../src/core/watch/drill/index.ts'
import { notifySettings, receiverKinds } from '../src/core/watch/notify/index.ts'
import { services } from '../src/core/watch/notify/receivers/services/services.ts'
import { silenceSettings } from '../src/core/watch/silences/index.ts'
import { commands } from '../src/registry.ts'
import { serviceRows } from '../test/support/notify/service-rows.ts'
import { anonymousPaths, cacheKeys } from './anonymous-paths.ts'

const { values: flags } = parseArgs({
  options: { check: { type: 'boolean', default: false }, into: { type: 'string' } },
})
const folder = flags.into ?? fileURLToPath(new URL('../docs/reference', import.meta.url))

const answers = await answersOf(commands)

const pages: Readonly<Record<string, () => string | Promise<string>>> = {
  'monitors.md': monitorsPage,
  'least-privilege.md': leastPrivilegePage,
  'fleet.md': fleetPage,
  'errors.md': errorsPage,
  'operations.md': operationsPage,
  'audit.md': auditPage,
  'anonymous-paths.md': anonymousPathsPage,
  'services.md': servicesPage,
  'json.md': () => jsonPage(answers),
}

const stale: string[] = []
await mkdir(folder, { recursive: true })
for (const [name, page] of Object.entries(pages)) {
  const path = join(folder, name)
  const expected = await page()
  const current = await readFile(path, 'utf8').catch(() => undefined)
  // A checkout on Windows may have turned the line ends.
  if (current?.replaceAll('\r\n', '\n') === expected) continue
  stale.push(name)
  if (!flags.check) await writeFile(path, expected)
}
if (stale.length > 0 && flags.check) {
  process.stderr.write(`docs/reference is stale: ${stale.join(', ')}\n  Next: npm run generate\n`)
  process.exitCode = 1
} else {
  process.stdout.write(stale.length === 0 ? 'docs/reference is fresh\n' : `written: ${stale.join(', ')}\n`)
}

/** Every service for messages: its section, its secret, and what the tests ran it against. */
function servicesPage(): string {
  const settings = ({ settings, secrets, server }: (typeof services)[number]): string => {
    const isOwn = server === undefined && !Object.values(secrets).some(({ isUrl }) => isUrl)
    return [...(isOwn ? ['server'] : []), ...Object.keys(settings)].map(code).join(', ')
  }
  return page(
    '# Services for messages',
    'The kinds of receiver that are a service which shows messages to people or alerts them ([notifications](../notifications.md#chat-and-push-services)), generated from their table. The settings that all receivers have are in [the reference of svc.yaml](monitors.md#notify).',
    table(
      ['section', 'settings', 'where the secret comes from'],
      services.map((one) => [code(`${one.name}: {…}`), settings(one), one.secretFrom]),
    ),
    '## What the tests ran',
    table(
      ['service', 'real', 'simulated', 'not run'],
      services.map(({ name }) => {
        const { real = '', simulated = '', not = '' } = serviceRows[name]?.tested ?? {}
        return [name, real, simulated, not]
      }),
    ),
  )
}

/** Every document, with the members of its rows. */
function jsonPage(all: readonly CommandAnswer[]): string {
  type Node = { readonly type?: string; readonly properties?: Readonly<Record<string, Node>>; readonly items?: Node }
  const members = (node: Node | undefined): string =>
    Object.keys(node?.properties ?? {})
      .map(code)
      .join(' ')
  const rows = all.map(({ name, schema }) => {
    const document = schema() as Node
    const [things, list] =
      Object.entries(document.properties ?? {}).findLast(([, { items }]) => items?.properties) ?? []
    const around = Object.keys(document.properties ?? {}).filter((one) => one !== things)
    return [code(name), around.map(code).join(' '), things === undefined ? '' : code(things), members(list?.items)]
  })
  return page(
    '# JSON documents',
    'What each command prints with `--json`, generated from the declarations that print it. The packages contain a JSON Schema of each document, in `dist/schemas/json`.',
    'A document names the store or the target once, and has its rows in one list: `{"store": …, "users": […]}`. Names are in camelCase, dates in ISO 8601 and UTC. The documents of `health`, `roles assign`, `roles unassign` and `roles show` have the names of the interface, and `monitors list` has its own. New members can be added to any document; a script ignores those that it does not know.',
    `A failure is \`{"error": …}\` instead, with every command. \`api\` prints the answer of the server, and \`serve\` prints no document.`,
    table(['command', 'around the rows', 'rows', 'members of a row'], rows),
  )
}

/** Cells of one line each, with what Markdown would take for markup kept as it is. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n')
}
function cell(text: string): string {
  return text.replaceAll('\n', ' ').replaceAll('|', '\\|')
}
function code(text: string): string {
  return `\`${text}\``
}
function page(...parts: readonly (string | readonly string[])[]): string {
  const generated = '<!-- Written by tools/reference.ts from the tables of the program; changes here are lost. -->'
  return `${[generated, ...parts.flat()].join('\n\n')}\n`
}

function settingsTable(rows: readonly SettingRow[]): string {
  return table(
    ['setting', 'value', 'default', 'meaning'],
    rows.map((row) => [
      code(row.name),
      row.type,
      row.required ? '**required**' : row.default === undefined ? '' : code(row.default),
      row.doc,
    ]),
  )
}

async function monitorsPage(): Promise<string> {
  const kinds = await describeKinds()
  const block = kinds.filter(({ name }) => name === 'host')
  const others = kinds.filter(({ name }) => name !== 'host')
  return page(
    '# Monitors',
    'What `svc.yaml` may say, generated from the tables that check it. How the file is written, with examples: [svc.yaml](../svc.yaml.md). For editors: `dist/schemas/svc.schema.json` in the packages.',
    'A duration is written `250ms`, `5s`, `2m`, `48h` or `30d`; bytes `512B`, `64KiB`, `512MB` or `10GB` (a megabyte is 2^20 bytes); a percentage `80%` or `80`. A secret is `{env: NAME}` or `{file: /path}`. Where a setting takes `warn` and `limit`, a bare value is the limit alone, and `off` is none. A path may lead to a share: if that does not answer, the monitor fails at its deadline ([files on shares](../serve.md#files-on-shares)).',
    '## Settings of every monitor',
    settingsTable(describeSettings(commonSettings)),
    'Where a kind has `latency`, `warn:` and `limit:` beside `kind:` stand for its two halves.',
    '## What a run costs',
    'Below, each kind states how many connections, requests and sign-ins one run costs the server that it watches, by mode. The figures are those of a healthy server at one address, with only the required settings; the rows below the modes are what settings add. Tests count them at the servers. A connection over UDP or ICMP is one port or one process that sends. Look-ups of names, retries, and connections that cancel a query after a deadline are not included.',
    '## What svc sends that servers may lack',
    ...optionalParts(others),
    '## The host block',
    'Runs with every server type; `host:` sets it, and `host: false` leaves it out.',
    ...block.flatMap(kindParts),
    '## Kinds',
    others.map(({ name }) => `[${name}](#${name})`).join(' · '),
    ...others.flatMap((kind) => [`### ${kind.name}`, ...kindParts(kind)]),
    '## `serve:`',
    settingsTable(describeSettings(serveSettings)),
    '## `auth:`',
    settingsTable(describeSettings(authSettings)),
    '## `notify:`',
    'A list of receivers. Each has these settings and those of its kind ([notifications](../notifications.md)).',
    settingsTable(describeSettings(notifySettings)),
    ...receiverKinds.flatMap(({ name, doc, settings, needsStore }) => [
      `### notify: ${name}`,
      `${doc}.${needsStore ? ' Needs a store unless the receiver is `volatile`.' : ''}`,
      settingsTable(describeSettings(settings)),
    ]),
    '## `silences:`',
    'A list of times at which notifications wait ([notifications](../notifications.md#silences)).',
    settingsTable(describeSettings(silenceSettings)),
    '## `drill:`',
    'When `svc serve` drills by itself ([notifications](../notifications.md#drills)).',
    settingsTable(describeSettings(drillSettings)),
  )
}

function fleetPage(): string {
  const { servers: _, ...others } = fleetSettings
  return page(
    '# Fleet files',
    'What the file of `svc health --fleet` may say, generated from the table that checks it, with an example in [for-operators.md](../for-operators.md#many-servers). For editors: `dist/schemas/fleet.schema.json` in the packages. The file has to be as trusted as [svc.yaml](../svc.yaml.md#which-files-are-trusted).',
    '## `servers:`',
    'A list of servers, each with these settings.',
    settingsTable(describeSettings(fleetServerSettings)),
    '## Beside `servers:`',
    settingsTable(describeSettings(others)),
  )
}

function kindParts(kind: KindRow): readonly string[] {
  return [
    `${kind.title}.`,
    table(
      ['check', 'from', 'what it says'],
      kind.checks.map((check) => [code(check.name), check.depth, check.doc]),
    ),
    ...privilegesTable(kind),
    ...costParts(kind.cost),
    ...(kind.settings.length === 0 ? ['No settings of its own.'] : [settingsTable(kind.settings)]),
  ]
}

/** The cost of a run for the watched server. */
function costParts(cost: KindCost = { unknown: '' }): readonly string[] {
  if ('machine' in cost) return [`A run costs no server anything. ${cost.machine}`]
  if ('unknown' in cost) return [`svc cannot say what a run costs a server. ${cost.unknown}`]
  const figures = ({ connections, requests, signIns }: Partial<Cost>, sign = ''): readonly string[] =>
    [connections, requests, signIns].map((figure) => (figure === undefined ? '' : sign + String(figure)))
  const added = (cost.adds ?? []).map(({ setting, each, where, from, ...more }) => {
    const items = where === undefined ? `each of ${code(setting)}` : `each of ${code(setting)} with ${code(where)}`
    const sign = Object.values(more).some((figure) => figure < 0) ? '' : '+'
    return [`${each ? items : code(setting)}, from ${from}`, ...figures(more, sign)]
  })
  return [
    table(
      ['a run costs the server', 'connections', cost.unit, 'sign-ins'],
      [...ExecutionMode.values.map((mode) => [mode, ...figures(plainCost(cost, mode))]), ...added],
    ),
    [...(cost.besides ? [cost.besides] : []), ...addressesSentence(cost)].join(' '),
  ].filter(Boolean)
}

/** The optional parts of protocols, and how svc knows that it may send them. */
function optionalParts(kinds: readonly KindRow[]): readonly string[] {
  const without = kinds.filter((kind) => kind.optionalParts?.length === 0).map(({ name }) => code(name))
  return [
    `Some servers end at what they do not know. Where a protocol lets a server offer a part, svc sends it after the offer only, and tests count it at servers that do not offer it. The others have an answer in their protocol for servers without them. ${without.join(', ')} send nothing optional.`,
    table(
      ['kind', 'part', 'sent'],
      kinds.flatMap(({ name, optionalParts = [] }) =>
        optionalParts.map((one) => [
          code(name),
          one.part,
          'after' in one
            ? `if ${one.after}`
            : `without an offer: ${one.unasked.replace(/^A /, 'a ').replace(/^The /, 'the ')}`,
        ]),
      ),
    ),
  ]
}

function addressesSentence({ eachAddressFrom, samples }: MeasuredCost): readonly string[] {
  if (eachAddressFrom === undefined) return []
  const sentence = 'name with several addresses costs as much for each address that is tested'
  if (eachAddressFrom === 'Basic') return [`A ${sentence}.`]
  return [
    `From ${eachAddressFrom} on, a ${sentence}; before, each further address costs a connection.`,
    ...(samples ? ['Each of `samples` but the first costs as much as a run in Standard.'] : []),
  ]
}

/** The privileges that an account needs, by the statement that grants each. */
function privilegesTable({ checks }: KindRow): readonly string[] {
  const byPrivilege = Map.groupBy(checks, ({ privilege }) => privilege)
  byPrivilege.delete(undefined)
  if (byPrivilege.size === 0) return []
  return [
    table(
      ['the account needs', 'for'],
      [...byPrivilege].map(([privilege = '', of]) => [code(privilege), of.map(({ name }) => code(name)).join(', ')]),
    ),
  ]
}

/** The access that a stolen account gives, by kind. */
async function leastPrivilegePage(): Promise<string> {
  const kinds = await describeKinds()
  const isSecret = ({ type }: SettingRow): boolean => type.includes('secret')
  const [withSecrets, others] = [true, false].map((has) =>
    kinds.filter(({ settings }) => settings.some(isSecret) === has),
  )
  return page(
    '# Least privilege',
    'What svc signs in with is worth stealing: it is stored where svc runs, and works at every server that svc watches. This page says what each account opens for a thief, if it has the privileges that its checks need and no others. Give each server an account of its own, used by svc alone, from the addresses of svc alone, and with a limit on its connections where the server has one.',
    'A check whose privilege is missing is *not checked* and says which statement grants it, so begin with none and add what you want checked. Where it is a small one that nobody demands (the files of a PostgreSQL server, the lifetime of a password of MySQL, reading each table), the check is left out instead. Checks that write need `allowWrites: true` and the privilege for it; without them svc writes nothing at a server.',
    '## Accounts at the servers',
    ...(withSecrets ?? []).flatMap((kind) => [
      `### ${kind.name}`,
      `${kind.exposure ?? ''} Secrets: ${kind.settings
        .filter(isSecret)
        .map(({ name }) => code(name))
        .join(', ')}.`,
      ...privilegesTable(kind),
    ]),
    '## Kinds without an account',
    `These have no secret, so there is nothing to steal: ${(others ?? []).map(({ name }) => code(name)).join(', ')}. Those that look at this machine read it as the account of svc; \`exec\` runs its program as that account.`,
    '## Accounts at svc',
    table(
      ['permission or role', 'what it opens'],
      [
        [
          'none',
          'States, counts and names of checks, as for everybody ([strangers](../strangers.md)); the own password and sessions',
        ],
        [
          code('health'),
          'Details of health of all types: names, addresses, messages, history and incidents; `health:Sql` for one type. For people who look and boards that hang. It changes nothing',
        ],
        [
          code('silence'),
          'Silences and acknowledges: a thief can hide an incident from its receivers. The page, `/metrics` and the audit log still show it',
        ],
        [code('heartbeat:NAME'), 'Reports that this agent is healthy'],
        ['Admin', 'Everything: users, keys, roles. Not for monitoring tools'],
      ],
    ),
    '## The account that svc runs as',
    'Whoever has it reads svc.yaml, the secrets beside it and the store, and so everything above. The systemd unit and the container image limit what it may do on its machine ([installing](../install.md)), and `{file: …}` keeps secrets out of svc.yaml.',
  )
}

function errorsPage(): string {
  return page(
    '# Errors and exit codes',
    '## Exit codes',
    table(
      ['code', 'meaning'],
      Object.values(exits).map(({ code: exit, meaning }) => [String(exit), meaning]),
    ),
    '## Faults',
    'Every way a call can fail: `ErrorCode` stands in `ResponseStatus`, `HTTP` is the status of the answer, `exit` is what `svc` exits with. The message is the one used when nothing more is known.',
    table(
      ['fault', 'ErrorCode', 'HTTP', 'exit', 'message'],
      Object.entries(faults).map(([name, fault]) => [
        name,
        code(fault.errorCode),
        String(fault.status),
        String(exits[fault.exit].code),
        fault.message,
      ]),
    ),
  )
}

function auditPage(): string {
  return page(
    '# Audit events',
    'The events that `svc audit list` shows in its column EVENT. Refused sign-ins are deleted after 90 days, everything else is kept. [The audit](../audit.md) explains how to read and verify them.',
    table(
      ['event', 'what it records'],
      Object.entries<AuditEventRow>(auditEvents).map(([name, { sentence, formerly }]) => [
        code(name),
        formerly === undefined ? sentence : `${sentence}. In entries of earlier versions: ${code(formerly)}`,
      ]),
    ),
  )
}

function anonymousPathsPage(): string {
  const size = (bytes: number | undefined): string =>
    bytes === undefined ? '' : bytes < 1_024 ? `${bytes} B` : `${bytes / 1_024} KiB`
  return page(
    '# Paths that answer anybody',
    'What `svc serve` answers without credentials, and what an answer costs. The tests derive the paths from the routes of the server, send 20 requests to each, all under different Hosts, and fail for a path without a row and for a row that is not true. Every other path refuses strangers, in less than 1 KiB.',
    'Bytes are those of the largest answer of a server with one monitor, rounded up to a power of two. The status page, the board, `/metrics` and the answers of operations grow with the monitors; the lists of the pages are bounded. A batch has up to 64 requests, each answered as if it were alone. What waits unread is bounded by [S3](../spec.md).',
    table(
      ['path', 'bytes at most', 'gzipped', 'rendered for 20 requests', 'key of the cache'],
      Object.entries(anonymousPaths).map(([name, { key, bytes, gzipped }]) => [
        placeOf(name),
        size(bytes),
        size(gzipped),
        String(cacheKeys[key].renders),
        cacheKeys[key].meaning,
      ]),
    ),
  )
}

/** The paths of a row: those of a page, of an operation with its suffixes, or those that name the operation. */
function placeOf(name: string): string {
  const [operation = '', ...more] = name.split(' ')
  const pages: readonly OwnPage[] = Object.values(ownPages)
  const { paths = [name] } = pages.find(({ paths: [first] }) => first === name) ?? {}
  if (more.length === 0) return paths.map(code).join(', ')
  const suffix = more.join(' ') === 'batch' ? '[]' : ''
  return `${code(`/api/${operation}${suffix}`)} and the other paths with the name`
}

function operationsPage(): string {
  const shapes = new Map<string, Schema>()
  for (const { request, response } of Object.values(operations)) {
    collect(request, shapes)
    collect(response, shapes)
  }
  const rows = [...shapes].sort(([a], [b]) => (a < b ? -1 : 1))
  return page(
    '# Operations',
    ...Object.values(operations).flatMap((operation) => [
      `## ${operation.name}`,
      `${operation.summary}.`,
      table(
        ['methods', 'path'],
        [
          ...operation.routes.map(({ verbs, path }) => [verbs.join(', '), code(path)]),
          ...['/json/reply/', '/api/'].map((path) => [
            operation.replyVerbs.join(', '),
            code(`${path}${operation.name}`),
          ]),
        ],
      ),
      [
        `- Request: [${operation.request.name}](#${operation.request.name.toLowerCase()}-fields); answer: [${operation.response.name}](#${operation.response.name.toLowerCase()}-fields)`,
        `- Who may call: ${whoMayCall(operation.caller)}`,
        ...(neverInQuery(operation).length > 0
          ? [`- Refused in a query, because queries are logged: ${neverInQuery(operation).map(code).join(', ')}`]
          : []),
      ].join('\n'),
    ]),
    '## Shapes',
    ...rows.flatMap(([name, schema]) => shapeParts(name, schema)),
  )
}

function whoMayCall(caller: WhoMayCall): string {
  if (caller === 'anyone') return 'anyone'
  return typeof caller === 'string'
    ? `a caller with the role ${caller}`
    : `a caller with the permission ${caller.permission}, or the role Admin`
}

/** Every DTO and enumeration that a schema names, by its name. */
function collect(schema: Schema, into: Map<string, Schema>): void {
  if (schema.kind === 'list') collect(schema.item, into)
  if (schema.kind === 'choice') into.set(schema.name, schema)
  if (schema.kind !== 'dto' || into.has(schema.name)) return
  into.set(schema.name, schema)
  for (const field of Object.values(schema.fields)) collect(schemaOf(field), into)
}

function shapeParts(name: string, schema: Schema): readonly string[] {
  if (schema.kind === 'choice') return [`### ${name} values`, schema.values.map(code).join(', ')]
  if (schema.kind !== 'dto') return []
  return [`### ${name} fields`, fieldsTable((schema as Dto).fields)]
}

function fieldsTable(fields: Fields): string {
  return table(
    ['field', 'type', ''],
    Object.entries(fields).map(([name, field]) => [
      code(name),
      fieldType(schemaOf(field)),
      field.kind === 'required' ? '**required**' : '',
    ]),
  )
}

function fieldType(schema: Schema): string {
  switch (schema.kind) {
    case 'number':
      return schema.integer ? 'integer' : 'number'
    case 'text':
      return 'string'
    case 'flag':
      return 'boolean'
    case 'date':
      return 'date-time, `/Date(ms+offset)/`'
    case 'duration':
      return 'ISO 8601 duration'
    case 'map':
      return 'map of string to string'
    case 'list':
      return `array of ${fieldType(schema.item)}`
    case 'choice':
      return `[${schema.name}](#${schema.name.toLowerCase()}-values)`
    case 'dto':
      return `[${schema.name}](#${schema.name.toLowerCase()}-fields)`
  }
}
