import type { Raw } from '../../../src/core/base/settings/index.ts'

/** An answer of a service. */
export type ServiceAnswer = { readonly status: number; readonly body: unknown }

/** A service that shows messages, as the tests of all services need it. Its answers are those that its maker publishes. */
export type ServiceRow = {
  /** Its own settings besides its address. */
  readonly settings: Raw
  /** The secrets by the name of their variable, in the shape of the service. `origin`: where it is. */
  readonly env: (origin: string) => Readonly<Record<string, string>>
  readonly accepts: ServiceAnswer
  /** An answer with which it refuses a message. */
  readonly refuses: ServiceAnswer
  /** An answer by which it asks for a pause, and for how many milliseconds; a number: what svc waits without it. */
  readonly slower: { readonly body: unknown; readonly afterMs: number } | number | undefined
  /** The characters or bytes that its maker permits in the limit text of a message, and where that is. */
  readonly limit: { readonly of: (body: string) => string; readonly max: number; readonly unit?: 'bytes' }
  /** The other ends in the tests, for the reference: real programs, simulated ones, and those that no test runs. */
  readonly tested: { readonly real?: string; readonly simulated: string; readonly not: string }
}

const plain = (...path: readonly (string | number)[]): ((body: string) => string) => {
  const pick = (value: unknown, key: string | number): unknown => (value as Readonly<Record<string, unknown>>)[key]
  return (body) => String(path.reduce<unknown>(pick, JSON.parse(body)))
}
const whole = (body: string): string => body
const field =
  (name: string): ((body: string) => string) =>
  (body) =>
    new URLSearchParams(body).get(name) ?? ''
const hook = (variable: string, path: string) => ({
  settings: { url: { env: variable } },
  env: (origin: string) => ({ [variable]: `${origin}${path}` }),
})
const genie = { apiKey: 'plant0aa-0000-4000-8000-0000000000aa', drillApiKey: 'plant0bb-0000-4000-8000-0000000000bb' }
const alerts = (prefix: string, title: string) => ({
  settings: { apiKey: { env: `${prefix}_KEY` }, drillApiKey: { env: `${prefix}_DRILL_KEY` } },
  env: () => ({
    [`${prefix}_KEY`]: genie.apiKey.replace('plant', 'abcde'),
    [`${prefix}_DRILL_KEY`]: genie.drillApiKey.replace('plant', 'abcde'),
  }),
  accepts: { status: 202, body: { result: 'Request will be processed', took: 0.1, requestId: 'a1' } },
  refuses: { status: 422, body: { message: 'Request body is not processable.', took: 0, requestId: 'a1' } },
  slower: 60_000,
  limit: { of: plain('description'), max: 15_000 },
  tested: { simulated: 'answers of the alert API', not: `${title} itself` },
})

/** By the name of the service: a test demands one of each. */
export const serviceRows: Readonly<Record<string, ServiceRow>> = {
  slack: {
    ...hook('SLACK_URL', '/services/T0000000/B0000000/planted0Zq8nT3abcdefghij'),
    accepts: { status: 200, body: 'ok' },
    refuses: { status: 400, body: 'invalid_blocks' },
    slower: 30_000,
    limit: { of: plain('attachments', 0, 'blocks', 1, 'text', 'text'), max: 3_000 },
    tested: {
      simulated: 'answers that Slack publishes; the body is assignable to the types of @slack/types 3.2.0 (npm)',
      not: 'Slack itself',
    },
  },
  teams: {
    ...hook(
      'TEAMS_URL',
      '/powerautomate/automations/direct/workflows/ab12/triggers/manual/paths/invoke?api-version=1&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=planted0Zq8nT3_abc-def',
    ),
    accepts: { status: 202, body: '' },
    refuses: { status: 400, body: { error: { code: 'TriggerInputSchemaMismatch', message: 'no' } } },
    slower: 60_000,
    limit: { of: whole, max: 28_000, unit: 'bytes' },
    tested: {
      simulated: 'answers of a workflow; adaptivecards 3.0.6 (npm) parses and validates the card',
      not: 'Microsoft Teams itself',
    },
  },
  discord: {
    ...hook('DISCORD_URL', '/api/webhooks/123456789012345678/planted0Zq8nT3_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-abc'),
    accepts: { status: 200, body: { id: '1', type: 0, content: '' } },
    refuses: { status: 400, body: { code: 50_006, message: 'Cannot send an empty message' } },
    slower: { body: { message: 'You are being rate limited.', retry_after: 1.5, global: false }, afterMs: 1_500 },
    limit: { of: plain('embeds', 0, 'description'), max: 4_096 },
    tested: {
      simulated: 'answers that Discord publishes; @discordjs/builders 1.15.0 (npm) validates the embed',
      not: 'Discord itself',
    },
  },
  telegram: {
    settings: { token: { env: 'TELEGRAM_TOKEN' }, chat: '-1001234567890' },
    env: () => ({ TELEGRAM_TOKEN: '123456789:planted0Zq8nT3_ABCDEFGHIJKLMNOPQR' }),
    accepts: { status: 200, body: { ok: true, result: { message_id: 1 } } },
    refuses: { status: 200, body: { ok: false, error_code: 400, description: 'Bad Request: chat not found' } },
    slower: { body: { ok: false, error_code: 429, parameters: { retry_after: 7 } }, afterMs: 7_000 },
    limit: { of: plain('text'), max: 4_096 },
    tested: {
      simulated: 'answers of the Bot API; the emulator telegram-test-api 4.2.1 (npm), which validates nothing',
      not: 'Telegram itself',
    },
  },
  mattermost: {
    ...hook('MATTERMOST_URL', '/hooks/planted0zq8nt3abcdefghijkl'),
    accepts: { status: 200, body: 'ok' },
    refuses: { status: 400, body: { id: 'web.incoming_webhook.text.app_error', message: 'No text specified' } },
    slower: undefined,
    limit: { of: plain('text'), max: 16_383 },
    tested: { simulated: 'answers of an incoming webhook', not: 'Mattermost itself' },
  },
  rocketchat: {
    ...hook('ROCKETCHAT_URL', '/hooks/65f0c1d2e3a4b5c6d7e8f901/planted0Zq8nT3abcdefghijklmnopqrstuvwx'),
    accepts: { status: 200, body: { success: true } },
    refuses: { status: 200, body: { success: false, error: 'error-invalid-channel' } },
    slower: undefined,
    limit: { of: plain('text'), max: 5_000 },
    tested: { simulated: 'answers of an incoming webhook', not: 'Rocket.Chat itself' },
  },
  googlechat: {
    ...hook('GCHAT_URL', '/v1/spaces/AAAAabcdef/messages?key=planted1Zq8nT3abc&token=planted0Zq8nT3abcdefghij'),
    accepts: { status: 200, body: { name: 'spaces/AAAAabcdef/messages/1' } },
    refuses: { status: 400, body: { error: { code: 400, status: 'INVALID_ARGUMENT' } } },
    slower: 30_000,
    limit: { of: plain('text'), max: 32_000, unit: 'bytes' },
    tested: { simulated: 'answers of the API', not: 'Google Chat itself' },
  },
  matrix: {
    settings: { token: { env: 'MATRIX_TOKEN' }, channel: '!abc:svc.test' },
    env: () => ({ MATRIX_TOKEN: 'syt_planted0Zq8nT3_ABCDEF' }),
    accepts: { status: 200, body: { event_id: '$abc' } },
    refuses: { status: 403, body: { errcode: 'M_FORBIDDEN', error: 'not in the room' } },
    slower: { body: { errcode: 'M_LIMIT_EXCEEDED', retry_after_ms: 2_500 }, afterMs: 2_500 },
    limit: { of: whole, max: 65_000, unit: 'bytes' },
    tested: {
      real: 'Synapse 1.163.2 (PyPI): begin, recovery, a repeated message, mentions, 300 faults, its rate limit, refusals',
      simulated: 'answers of the client-server API',
      not: 'other Matrix servers, encrypted rooms',
    },
  },
  zulip: {
    settings: { bot: 'svc-bot@zulip.svc.test', apiKey: { env: 'ZULIP_KEY' }, channel: 'ops' },
    env: () => ({ ZULIP_KEY: 'planted0Zq8nT3abcdefghijklmnopqr' }),
    accepts: { status: 200, body: { result: 'success', msg: '', id: 42 } },
    refuses: {
      status: 400,
      body: { result: 'error', msg: "Channel 'ops' does not exist", code: 'STREAM_DOES_NOT_EXIST' },
    },
    slower: { body: { result: 'error', code: 'RATE_LIMIT_HIT', 'retry-after': 28.7 }, afterMs: 28_700 },
    limit: { of: field('content'), max: 10_000 },
    tested: { simulated: 'answers of the API', not: 'Zulip itself' },
  },
  ntfy: {
    settings: { topic: 'prod-alarms', token: { env: 'NTFY_TOKEN' } },
    env: () => ({ NTFY_TOKEN: 'tk_planted0Zq8nT3abcdefghijklmno' }),
    accepts: { status: 200, body: { id: 'a1', time: 1, event: 'message', topic: 'prod-alarms' } },
    refuses: { status: 403, body: { code: 40_301, http: 403, error: 'forbidden' } },
    slower: 60_000,
    limit: { of: plain('message'), max: 4_096, unit: 'bytes' },
    tested: { simulated: 'answers of a server', not: 'ntfy itself: no package index in reach of the tests has it' },
  },
  gotify: {
    settings: { token: { env: 'GOTIFY_TOKEN' } },
    env: () => ({ GOTIFY_TOKEN: 'Aplanted0Zq8nT3' }),
    accepts: { status: 200, body: { id: 1, appid: 1, message: 'm' } },
    refuses: { status: 401, body: { error: 'Unauthorized', errorCode: 401 } },
    slower: undefined,
    limit: { of: plain('message'), max: 10_000 },
    tested: { simulated: 'answers of a server', not: 'Gotify itself: no package index in reach of the tests has it' },
  },
  pushover: {
    settings: { token: { env: 'PUSHOVER_TOKEN' }, user: { env: 'PUSHOVER_USER' } },
    env: () => ({ PUSHOVER_TOKEN: 'planted0Zq8nT3abcdefghijklmnop', PUSHOVER_USER: 'planted1Zq8nT3abcdefghijklmnop' }),
    accepts: { status: 200, body: { status: 1, request: 'a1' } },
    refuses: { status: 400, body: { status: 0, errors: ['user identifier is invalid'], request: 'a1' } },
    slower: 3_600_000,
    limit: { of: field('message'), max: 1_024 },
    tested: { simulated: 'answers of the API', not: 'Pushover itself' },
  },
  signal: {
    settings: { number: '+490001', recipients: ['group.abc='] },
    env: () => ({}),
    accepts: { status: 201, body: { timestamp: '1' } },
    refuses: { status: 400, body: { error: 'no such group' } },
    slower: undefined,
    limit: { of: plain('message'), max: 2_000 },
    tested: { simulated: 'answers of signal-cli-rest-api', not: 'Signal itself' },
  },
  jsm: alerts('JSM', 'Jira Service Management'),
  opsgenie: alerts('OPSGENIE', 'Opsgenie'),
  pagerduty: {
    settings: { routingKey: { env: 'PD_KEY' }, drillRoutingKey: { env: 'PD_DRILL' } },
    env: () => ({ PD_KEY: 'planted0Zq8nT3abcdefghijklmnopqr', PD_DRILL: 'planted1Zq8nT3abcdefghijklmnopqr' }),
    accepts: { status: 202, body: { status: 'success', message: 'Event processed', dedup_key: 'a' } },
    refuses: { status: 400, body: { status: 'invalid event', errors: ['no'] } },
    slower: undefined,
    limit: { of: plain('payload', 'summary'), max: 1_024 },
    tested: { simulated: 'the Events API v2', not: 'PagerDuty itself' },
  },
}

/** The settings of a receiver of a service that is at `origin`. */
export const settingsAt = (name: string, origin: string): Raw => {
  const { settings } = serviceRows[name] as ServiceRow
  return { ...settings, [name === 'pagerduty' ? 'url' : 'server']: origin }
}
