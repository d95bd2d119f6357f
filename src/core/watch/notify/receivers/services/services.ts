import { sanitize } from '../../../../base/net/text.ts'
import type { SettingsSpec } from '../../../../base/settings/index.ts'
import { isOver } from '../../receiver.ts'
import { annotationsOf, identityOf, keyOf, monitorIn, severityOf, summaryOf } from '../message.ts'
import { type AnyService, type Link, type ServiceMessage, type ServiceRequest, service } from './service.ts'

/** The user's secret URL to post to. */
const hookUrl = {
  type: 'secret',
  required: true,
  doc: 'Secret URL of the incoming webhook',
} as const satisfies SettingsSpec[string]

const colors = { critical: '#c62828', warning: '#f9a825', resolved: '#2e7d32', info: '#546e7a' } as const
const emoji = {
  critical: 'red_circle',
  warning: 'warning',
  resolved: 'white_check_mark',
  info: 'information_source',
} as const

/** In a code block, nothing is markup: only its end has to be avoided. */
const inCode = (text: string): string => text.replaceAll('`', "'")
const block = (text: string): string => (text.trim() === '' ? '' : `\n\`\`\`text\n${text}\n\`\`\``)
const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;' } as const
const inEntities = (text: string): string => text.replace(/[&<>]/g, (one) => entities[one as keyof typeof entities])
const circles = { critical: '🔴', warning: '🟠', resolved: '🟢', info: '🔵' } as const
/** Markdown, where a backslash precedes each character that could be markup. */
const inMarkdown = (text: string): string => text.replace(/[\\`*_~|<>[\]()#+-]/g, '\\$&')
const markdownLinks = (links: readonly Link[]): string =>
  links.map(({ title, url }) => `[${title}](${url})`).join(' · ')
const plainLinks = (links: readonly Link[]): string => links.map(({ title, url }) => `${title}: ${url}`).join('\n')
/** The texts that are there, one below the other. */
const joined = (...texts: readonly string[]): string => texts.filter((text) => text.trim() !== '').join('\n')
/** A message in Markdown: the title and the text as code, below an emoji. */
const inBlock = (mark: string, { title, text, links }: Pick<ServiceMessage, 'title' | 'text' | 'links'>): string =>
  joined(`:${mark}: \`${title}\`${block(text)}`, markdownLinks(links))

const slack = service({
  name: 'slack',
  title: 'Slack',
  doc: 'A channel in Slack, by the URL of an incoming webhook',
  secretFrom:
    '[Incoming Webhooks](https://api.slack.com/messaging/webhooks) of an app: `https://hooks.slack.com/services/…`',
  source: 'https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks, Block Kit, 2026-11',
  server: 'https://hooks.slack.com',
  settings: { url: hookUrl },
  secrets: {
    url: {
      shape: /^\/services\/\w+\/\w+\/\w+$/,
      looksLike: 'https://hooks.slack.com/services/T…/B…/…',
      isUrl: true,
    },
  },
  limits: { title: 150, text: 2_900, linksApart: true },
  words: colors,
  request: ({ title, text, links }, { url }, color) => ({
    path: new URL(url),
    json: {
      // What a notification shows. It is markup, unlike plain_text.
      text: inEntities(title),
      attachments: [
        {
          color,
          fallback: inEntities(title),
          blocks: [
            { type: 'section', text: { type: 'plain_text', text: title, emoji: false } },
            ...(text.trim() === '' ? [] : [{ type: 'section', text: { type: 'plain_text', text, emoji: false } }]),
            ...(links.length === 0
              ? []
              : [
                  {
                    type: 'context',
                    elements: links.map((link) => ({
                      type: 'mrkdwn',
                      text: `<${inEntities(link.url)}|${link.title}>`,
                    })),
                  },
                ]),
          ],
        },
      ],
    },
  }),
  accepted: { body: 'ok' },
  leastPauseMs: 30_000,
})

const teams = service({
  name: 'teams',
  title: 'Microsoft Teams',
  doc: 'A channel or chat in Microsoft Teams, by the URL of a workflow "When a Teams webhook request is received"',
  secretFrom: 'Workflows in the channel: *When a Teams webhook request is received*',
  source: 'https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors, Adaptive Cards 1.4, 2026-11',
  settings: { url: { ...hookUrl, doc: 'Secret URL of the workflow' } },
  secrets: {
    url: {
      shape: /^(?:\/[\w.%-]+)*\/workflows\/[\w-]+\/triggers\/\w+\/paths\/invoke\?(?:[^#]*&)?sig=[\w-]+/,
      looksLike: 'https://….powerplatform.com/…/workflows/…/triggers/manual/paths/invoke?…&sig=…',
      isUrl: true,
    },
  },
  // Of 28 kB. Each line is an element, which takes more than its text.
  limits: { title: 256, text: 4_000, unit: 'bytes' },
  words: { critical: 'attention', warning: 'warning', resolved: 'good', info: 'accent' },
  request: ({ title, text, links }, { url }, color) => ({
    path: new URL(url),
    json: {
      type: 'message',
      attachments: [
        {
          contentType: 'application/vnd.microsoft.card.adaptive',
          contentUrl: null,
          content: {
            $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
            type: 'AdaptiveCard',
            version: '1.4',
            msteams: { width: 'Full' },
            // Unlike the text of a TextBlock, a TextRun is not Markdown.
            body: [
              { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: title, weight: 'bolder', color }] },
              ...text
                .split('\n')
                .filter((line) => line.trim() !== '')
                .map((line) => ({
                  type: 'RichTextBlock',
                  spacing: 'none',
                  inlines: [{ type: 'TextRun', text: line }],
                })),
            ],
            actions: links.map((link) => ({ type: 'Action.OpenUrl', title: link.title, url: link.url })),
          },
        },
      ],
    },
  }),
  accepted: {},
  leastPauseMs: 60_000,
})

const discord = service({
  name: 'discord',
  title: 'Discord',
  doc: 'A channel in Discord, by the URL of a webhook',
  secretFrom: 'Server settings, Integrations, Webhooks',
  source: 'https://docs.discord.com/developers/resources/webhook#execute-webhook, API v10, 2026-11',
  server: 'https://discord.com',
  settings: { url: hookUrl },
  secrets: {
    url: {
      shape: /^\/api(?:\/v\d+)?\/webhooks\/\d{17,20}\/[\w-]{40,100}$/,
      looksLike: 'https://discord.com/api/webhooks/…/…',
      isUrl: true,
    },
  },
  limits: { title: 250, text: 3_900, linksApart: true },
  literal: inMarkdown,
  words: { critical: 0xc62828, warning: 0xf9a825, resolved: 0x2e7d32, info: 0x546e7a },
  request: ({ title, text, links, notice }, { url }, color) => ({
    path: new URL('?wait=true', url),
    json: {
      embeds: [
        {
          title,
          description: text,
          color,
          timestamp: new Date(notice.observedAt).toISOString(),
          fields: links.map((link) => ({ name: link.title, value: markdownLinks([link]) })),
        },
      ],
      allowed_mentions: { parse: [] },
    },
  }),
  accepted: { member: 'id' },
  slower: { path: ['retry_after'], unitMs: 1_000 },
})

const telegram = service({
  name: 'telegram',
  title: 'Telegram',
  doc: 'A chat, group or channel in Telegram, by the token of a bot',
  secretFrom: "@BotFather; the chat is `'-100…'` or `'@channel'`",
  source: 'https://core.telegram.org/bots/api#sendmessage, Bot API 9, 2026-11',
  server: 'https://api.telegram.org',
  settings: {
    token: { type: 'secret', required: true, doc: 'Token of the bot' },
    chat: {
      type: 'text',
      required: true,
      pattern: /^(?:-?\d{1,19}|@\w{4,32})$/,
      doc: 'Id of the chat, in quotes, or @name of a channel',
    },
    thread: { type: 'integer', min: 1, doc: 'Topic in a group' },
  },
  secrets: { token: { shape: /^\d{5,12}:[\w-]{20,64}$/, looksLike: '123456:ABC…' } },
  limits: { title: 250, text: 3_800 },
  words: circles,
  request: ({ title, text, links, severity }, { token, chat, thread }, mark) => ({
    path: `/bot${token}/sendMessage`,
    json: {
      chat_id: chat,
      // Without parse_mode, nothing is markup.
      text: joined(`${mark} ${title}`, text, plainLinks(links)),
      link_preview_options: { is_disabled: true },
      disable_notification: severity === 'info',
      ...(thread === undefined ? {} : { message_thread_id: thread }),
    },
  }),
  accepted: { member: 'ok', is: true },
  slower: { path: ['parameters', 'retry_after'], unitMs: 1_000 },
})

const mattermost = service({
  name: 'mattermost',
  title: 'Mattermost',
  doc: 'A channel in Mattermost, by the URL of an incoming webhook',
  secretFrom: 'Integrations, Incoming Webhooks',
  source: 'https://developers.mattermost.com/integrate/webhooks/incoming, Mattermost 10, 2026-11',
  settings: { url: hookUrl },
  secrets: {
    url: {
      shape: /\/hooks\/[a-z0-9]{26}$/,
      looksLike: 'https://chat.example.com/hooks/… with 26 characters',
      isUrl: true,
    },
  },
  limits: { title: 250, text: 12_000 },
  literal: inCode,
  words: emoji,
  request: ({ title, text, links }, { url }, mark) => ({
    path: new URL(url),
    json: { text: inBlock(mark, { title, text, links }) },
  }),
  accepted: { body: 'ok' },
})

const rocketchat = service({
  name: 'rocketchat',
  title: 'Rocket.Chat',
  doc: 'A channel in Rocket.Chat, by the URL of an incoming webhook',
  secretFrom: 'Workspace, Integrations, Incoming',
  source: 'https://docs.rocket.chat/docs/integrations, Rocket.Chat 7, 2026-11',
  settings: { url: hookUrl },
  secrets: {
    url: { shape: /\/hooks\/\w{17,32}\/\w{17,64}$/, looksLike: 'https://chat.example.com/hooks/…/…', isUrl: true },
  },
  // A server refuses more than 5,000 characters unless it is set otherwise.
  limits: { title: 250, text: 4_500 },
  literal: inCode,
  words: emoji,
  request: ({ title, text, links }, { url }, mark) => ({
    path: new URL(url),
    json: { text: inBlock(mark, { title, text, links }) },
  }),
  accepted: { member: 'success', is: true },
})

const googlechat = service({
  name: 'googlechat',
  title: 'Google Chat',
  doc: 'A space in Google Chat, by the URL of an incoming webhook; the messages of an incident are one thread',
  secretFrom: 'Apps & integrations of the space, Webhooks; the messages about a check are one thread',
  source: 'https://developers.google.com/workspace/chat/quickstart/webhooks, API v1, 2026-11',
  server: 'https://chat.googleapis.com',
  settings: { url: hookUrl },
  secrets: {
    url: {
      shape: /^\/v1\/spaces\/[\w-]+\/messages\?(?=(?:[^#]*&)?key=[\w%-]+)(?=(?:[^#]*&)?token=[\w%-]+)/,
      looksLike: 'https://chat.googleapis.com/v1/spaces/…/messages?key=…&token=…',
      isUrl: true,
    },
  },
  limits: { title: 500, text: 20_000, unit: 'bytes' },
  // `<users/all>` calls everybody.
  literal: (text) => inCode(text).replaceAll('<', '‹').replaceAll('>', '›'),
  words: circles,
  request: ({ title, text, links, notice }, { url }, mark) => ({
    path: new URL(`${url}&messageReplyOption=REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD`),
    json: {
      text: joined(
        `${mark} \`${title}\`${text.trim() === '' ? '' : `\n\`\`\`\n${text}\n\`\`\``}`,
        links.map((link) => `<${link.url}|${link.title}>`).join(' · '),
      ),
      thread: { threadKey: keyOf(notice.subject, 32) },
    },
  }),
  accepted: { member: 'name' },
  leastPauseMs: 30_000,
})

const matrix = service({
  name: 'matrix',
  title: 'Matrix',
  doc: 'A room in Matrix, by the access token of a user',
  secretFrom:
    "the access token of a user that is in the room (Element: All settings, Help & About); the room is `'!…'`",
  source: 'https://spec.matrix.org/v1.16/client-server-api, 2026-11',
  settings: {
    token: { type: 'secret', required: true, doc: 'Access token of the user that writes' },
    channel: {
      type: 'text',
      required: true,
      pattern: /^![^\s/]{1,254}$/,
      doc: 'Id of the room: !…, as the settings of the room show it',
    },
  },
  secrets: { token: { shape: /^[\w.+/=~-]{16,512}$/, looksLike: 'syt_…' } },
  limits: { title: 250, text: 20_000, unit: 'bytes' },
  words: circles,
  request: ({ id, title, text, links, severity }, { token, channel }, mark) => ({
    method: 'PUT',
    // The transaction is the same in each attempt, so that the room shows a repeated message once.
    path: `/_matrix/client/v3/rooms/${encodeURIComponent(channel)}/send/m.room.message/svc_${id}`,
    headers: { Authorization: `Bearer ${token}` },
    json: {
      msgtype: severity === 'info' ? 'm.notice' : 'm.text',
      body: joined(`${mark} ${title}`, text, plainLinks(links)),
      'm.mentions': {},
    },
  }),
  accepted: { member: 'event_id' },
  slower: { path: ['retry_after_ms'], unitMs: 1 },
})

const zulip = service({
  name: 'zulip',
  title: 'Zulip',
  doc: 'A channel in Zulip, by the API key of a bot; each monitor is a topic unless `topic` is set',
  secretFrom: 'Settings, Bots; without `topic`, each monitor has one',
  source: 'https://zulip.com/api/send-message, Zulip 11, 2026-11',
  settings: {
    bot: { type: 'text', required: true, pattern: /^[^\s:@]+@[^\s:@]+$/, doc: 'Mail address of the bot' },
    apiKey: { type: 'secret', required: true, doc: 'API key of the bot' },
    channel: { type: 'text', required: true, doc: 'Name of the channel' },
    topic: { type: 'text', pattern: /^.{1,60}$/, doc: 'Topic of all messages' },
  },
  secrets: { apiKey: { shape: /^[A-Za-z0-9]{32}$/, looksLike: '32 letters and digits' } },
  limits: { title: 250, text: 8_000 },
  literal: inCode,
  words: emoji,
  request: ({ title, text, links, notice }, { bot, apiKey, channel, topic }, mark) => ({
    path: '/api/v1/messages',
    headers: { Authorization: `Basic ${Buffer.from(`${bot}:${apiKey}`).toString('base64')}` },
    form: {
      type: 'stream',
      to: channel,
      topic: topic ?? sanitize(monitorIn(notice.subject), 60),
      content: inBlock(mark, { title, text, links }),
    },
  }),
  accepted: { member: 'result', is: 'success' },
  slower: { path: ['retry-after'], unitMs: 1_000 },
})

const ntfy = service({
  name: 'ntfy',
  title: 'ntfy',
  doc: 'A topic of ntfy, on a telephone or in a browser',
  secretFrom: 'an access token of the account; at a public server, whoever knows the topic reads along',
  source: 'https://docs.ntfy.sh/publish/#publish-as-json, ntfy 2.14, 2026-11',
  server: 'https://ntfy.sh',
  settings: {
    topic: {
      type: 'text',
      required: true,
      pattern: /^[\w-]{1,64}$/,
      doc: 'Topic. At a public server, whoever knows it reads along',
    },
    token: { type: 'secret', doc: 'Access token of the account that writes' },
  },
  secrets: { token: { shape: /^tk_\w{20,40}$/, looksLike: 'tk_…' } },
  // A longer message becomes an attachment.
  limits: { title: 240, text: 3_600, linksApart: true, unit: 'bytes' },
  words: {
    critical: { priority: 5, tag: 'rotating_light' },
    warning: { priority: 3, tag: 'warning' },
    resolved: { priority: 3, tag: 'white_check_mark' },
    info: { priority: 2, tag: 'information_source' },
  },
  request: ({ title, text, links, severity }, { topic, token }, { priority, tag }) => ({
    path: '/',
    ...(token === undefined ? {} : { headers: { Authorization: `Bearer ${token}` } }),
    json: {
      topic,
      title,
      message: text.trim() === '' ? title : text,
      priority,
      tags: [tag, severity],
      ...(links[0] === undefined ? {} : { click: links[0].url }),
      ...(links.length === 0
        ? {}
        : { actions: links.slice(0, 3).map(({ title: label, url }) => ({ action: 'view', label, url })) }),
    },
  }),
  accepted: { member: 'id' },
  leastPauseMs: 60_000,
})

const gotify = service({
  name: 'gotify',
  title: 'Gotify',
  doc: 'An application of Gotify, by its token',
  secretFrom: 'Apps',
  source: 'https://gotify.net/docs/pushmsg, Gotify 2.7, 2026-11',
  settings: { token: { type: 'secret', required: true, doc: 'Token of the application' } },
  secrets: { token: { shape: /^A[\w.-]{14}$/, looksLike: 'A…, 15 characters' } },
  limits: { title: 250, text: 8_000 },
  words: { critical: 8, warning: 5, resolved: 4, info: 2 },
  request: ({ title, text, links }, { token }, priority) => ({
    path: '/message',
    headers: { 'X-Gotify-Key': token },
    json: {
      title,
      message: joined(text.trim() === '' ? title : text, plainLinks(links)),
      priority,
      extras: {
        'client::display': { contentType: 'text/plain' },
        ...(links[0] === undefined ? {} : { 'client::notification': { click: { url: links[0].url } } }),
      },
    },
  }),
  accepted: { member: 'id' },
})

const pushover = service({
  name: 'pushover',
  title: 'Pushover',
  doc: 'A user or group of Pushover',
  secretFrom: 'the page of the application',
  source: 'https://pushover.net/api, API v1, 2026-11',
  server: 'https://api.pushover.net',
  settings: {
    token: { type: 'secret', required: true, doc: 'API token of the application' },
    user: { type: 'secret', required: true, doc: 'Key of the user or group' },
    device: { type: 'text', pattern: /^[\w,-]{1,100}$/, doc: 'Device; default: all' },
  },
  secrets: {
    token: { shape: /^\w{30}$/, looksLike: '30 letters and digits' },
    user: { shape: /^\w{30}$/, looksLike: '30 letters and digits' },
  },
  limits: { title: 250, text: 1_000, linksApart: true },
  words: { critical: '1', warning: '0', resolved: '0', info: '-1' },
  request: ({ title, text, links: [link], notice }, { token, user, device }, priority) => ({
    path: '/1/messages.json',
    form: {
      token,
      user,
      device,
      title,
      message: text.trim() === '' ? title : text,
      priority,
      timestamp: String(Math.floor(notice.observedAt / 1_000)),
      url: link?.url,
      url_title: link?.title,
    },
  }),
  accepted: { member: 'status', is: 1 },
  // Its quota is one of a month.
  leastPauseMs: 3_600_000,
})

const signal = service({
  name: 'signal',
  title: 'Signal',
  doc: 'People or groups in Signal, through signal-cli-rest-api, which has no sign-in: on loopback, or behind TLS',
  secretFrom: 'signal-cli-rest-api, which has no sign-in: on loopback, or behind TLS',
  source: 'https://github.com/bbernhard/signal-cli-rest-api, API v2, 2026-11',
  settings: {
    number: { type: 'text', required: true, pattern: /^\+\d{6,15}$/, doc: 'Number that sends, in quotes: +49…' },
    recipients: {
      type: 'texts',
      required: true,
      pattern: /^(?:\+\d{6,15}|group\.[\w+/=-]+|u:[\w.]+)$/,
      doc: 'Numbers, groups (group.…) or names (u:…) that receive',
    },
  },
  secrets: {},
  limits: { title: 250, text: 1_700 },
  words: circles,
  request: ({ title, text, links }, { number, recipients }, mark) => ({
    path: '/v2/send',
    json: { number, recipients, message: joined(`${mark} ${title}`, text, plainLinks(links)) },
  }),
  accepted: { member: 'timestamp' },
})

/** The settings of alerts at Atlassian. */
const alertKeys = {
  apiKey: { type: 'secret', required: true, doc: 'API key of an integration of the type API' },
  drillApiKey: {
    type: 'secret',
    doc: 'API key of another integration, which gets drills and test messages: without one, drills do not go through this receiver',
  },
} as const satisfies SettingsSpec
const genieKey = {
  shape: /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  looksLike: 'xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx',
}

/** Opsgenie's form, which Jira Service Management has taken over: created and closed by an alias. */
const atlassianAlerts = (
  row: Pick<AnyService, 'name' | 'title' | 'doc' | 'secretFrom' | 'source' | 'server'> & { readonly path: string },
): AnyService =>
  service({
    ...row,
    settings: alertKeys,
    secrets: { apiKey: genieKey, drillApiKey: genieKey },
    alerts: { each: 'alert', key: 'apiKey', drills: 'drillApiKey', repeatedBy: `an escalation of ${row.title}` },
    limits: { title: 130, text: 14_000 },
    words: { critical: 'P1', warning: 'P3', resolved: 'P5', info: 'P5' },
    request: ({ title, text, links, notice, details, isTest, severity }, { apiKey }, priority): ServiceRequest => {
      const headers = { Authorization: `GenieKey ${apiKey}` }
      const alias = keyOf(notice.subject, 64)
      // The end of an alert that does not exist proves the connection and the key, and pages nobody.
      if (isTest || isOver(notice)) {
        return {
          path: `${row.path}/${alias}/close?identifierType=alias`,
          headers,
          json: { source: 'svc', note: title },
        }
      }
      return {
        path: row.path,
        headers,
        json: {
          message: title,
          alias,
          description: joined(text, plainLinks(links)),
          priority,
          source: 'svc',
          entity: sanitize(monitorIn(notice.subject), 500),
          tags: ['svc', severity],
          details: { ...identityOf(notice.subject), ...annotationsOf(notice, details) },
        },
      }
    },
    accepted: { status: 202, member: 'requestId' },
    leastPauseMs: 60_000,
  })

const jsm = atlassianAlerts({
  name: 'jsm',
  title: 'Jira Service Management',
  doc: 'Alerts of Jira Service Management: one for each check, closed by svc',
  secretFrom: 'an integration of the type *API* in Jira Service Management',
  source: 'https://developer.atlassian.com/cloud/jira/service-desk-ops/rest/v2, integration events v2, 2026-11',
  server: 'https://api.atlassian.com',
  path: '/jsm/ops/integration/v2/alerts',
})

const opsgenie = atlassianAlerts({
  name: 'opsgenie',
  title: 'Opsgenie',
  doc: 'Alerts of Opsgenie, which ends in April 2027: one for each check, closed by svc',
  secretFrom: 'an integration of the type *API*; in the EU `server: https://api.eu.opsgenie.com`',
  source: 'https://docs.opsgenie.com/docs/alert-api, v2, 2026-11',
  server: 'https://api.opsgenie.com',
  path: '/v2/alerts',
})

const pagerduty = service({
  name: 'pagerduty',
  title: 'PagerDuty',
  doc: 'PagerDuty, by the Events API v2: an alert for each check',
  secretFrom: 'an integration of the type *Events API v2* of a service',
  source: 'https://developer.pagerduty.com/docs/events-api-v2, 2026-11',
  server: 'https://events.pagerduty.com',
  serverSetting: 'url',
  settings: {
    routingKey: {
      type: 'secret',
      required: true,
      doc: 'Integration key of a service, of an integration of the type Events API v2',
    },
    drillRoutingKey: {
      type: 'secret',
      doc: 'Integration key of another service, which gets drills and test messages: without one, drills do not go through this receiver',
    },
  },
  secrets: {
    routingKey: { shape: /^\S+$/, looksLike: '32 letters and digits' },
    drillRoutingKey: { shape: /^\S+$/, looksLike: '32 letters and digits' },
  },
  alerts: {
    each: 'event',
    key: 'routingKey',
    drills: 'drillRoutingKey',
    repeatedBy: 'an escalation policy of PagerDuty',
  },
  limits: { title: 1_024, text: 1_024, linksApart: true },
  words: { critical: 'critical', warning: 'warning', resolved: 'info', info: 'info' },
  request: (message, { routingKey }) => ({ path: '/v2/enqueue', json: eventOf(message, routingKey) }),
  accepted: { status: 202 },
})

/** An event of at most about 20 kB, because all its texts are bounded: PagerDuty accepts 512 kB. */
function eventOf({ notice, links, details, isTest, page }: ServiceMessage, routingKey: string): object {
  const { subject, observedAt } = notice
  const { server = '', type = 'host', check = '', node = server } = identityOf(subject)
  const client = { client: `svc ${server}`, ...(page === undefined ? {} : { client_url: page }) }
  const common = { routing_key: routingKey, dedup_key: keyOf(subject, 64), ...client }
  // The end of an alert that does not exist proves the connection and the key, and pages nobody.
  if (isTest || isOver(notice)) return { ...common, event_action: 'resolve' }
  const { runbook_url: _, ...annotations } = annotationsOf(notice, details)
  return {
    ...common,
    event_action: 'trigger',
    payload: {
      summary: sanitize(`[${server}] ${summaryOf(notice)}`, 1_024),
      source: node,
      severity: severityOf(notice),
      timestamp: new Date(observedAt).toISOString(),
      component: monitorIn(subject),
      group: type,
      class: check,
      custom_details: { ...identityOf(subject), ...annotations },
    },
    ...(links.length === 0 ? {} : { links: links.map(({ title, url }) => ({ href: url, text: title })) }),
  }
}

/** Every service, one row each. */
export const services: readonly AnyService[] = [
  slack,
  teams,
  discord,
  telegram,
  mattermost,
  rocketchat,
  googlechat,
  matrix,
  zulip,
  ntfy,
  gotify,
  pushover,
  signal,
  jsm,
  opsgenie,
  pagerduty,
]
