import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Notice } from '../../../src/core/watch/notify/index.ts'
import { notice, opened, signal } from '../../support/notify/notice.ts'
import { sending } from '../../support/notify/sending.ts'
import { serviceRows, settingsAt } from '../../support/notify/service-rows.ts'
import { freePort } from '../../support/servers/server.ts'
import { peerSuite } from '../../support/suite/peer.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const folder = join(import.meta.dirname, '../../../node_modules/.cache/messages/npm')
const missing = existsSync(join(folder, 'node_modules'))
  ? undefined
  : 'the validators are not fetched: they come from a package index for npm, by .ci/messages'
/** A module among the validators, which are CommonJS. */
const validator = <T>(name: string): T => createRequire(join(folder, 'package.json'))(name) as T

/** As long as they may be. */
const links = { runbook: 'https://wiki.svc.test/'.padEnd(500, 'r'), url: 'https://svc.svc.test/'.padEnd(500, 's') }
const hostile =
  '@channel @everyone @room <!here> <@U1> <users/all> [x](https://evil.example) *b* _i_ `c` <b>h</b> {{DATE(1)}} \u202E'
/** Messages that differ in every part of a body. */
const messages: Readonly<Record<string, readonly Notice[]>> = {
  fault: [notice(links)],
  recovery: [notice({ ...links, what: 'end', text: 'it answers' })],
  many: Array.from({ length: 300 }, (_, at) =>
    notice({ ...links, id: `n${at}`, text: 'ä<b>*`'.repeat(100) }, { monitor: `tcp m${at}` }),
  ),
  hostile: [notice({ ...links, text: hostile }, { check: hostile.slice(0, 60) })],
}
const names = Object.keys(messages)

/** The body that svc posts to a service about one of these. */
async function bodyOf<T>(service: string, name: string): Promise<T> {
  await using sent = await (sending[service] ?? expect.fail(service))()
  expect(await sent.one.receiver.send(messages[name] ?? [], signal())).toEqual({ what: 'accepted' })
  const { path: _, ...body } = JSON.parse(sent.texts()[0] ?? '') as T & { readonly path: string }
  return body as T
}

peerSuite(missing, "the makers' own validators", () => {
  describe.each(names)('of the message %s', (name) => {
    test('M19 Adaptive Cards parses the card for Teams without a failure, and shows every text', async () => {
      type Card = {
        parse: (source: object, context: object) => void
        validateProperties: () => { readonly validationEvents: readonly unknown[] }
        toJSON: () => { readonly body: readonly unknown[]; readonly actions: readonly unknown[] }
      }
      const cards = validator<{
        AdaptiveCard: new () => Card
        SerializationContext: new () => { readonly eventCount: number; getEventAt: (at: number) => unknown }
      }>('adaptivecards/dist/adaptivecards.js')
      const { attachments } = await bodyOf<{ readonly attachments: readonly { readonly content: object }[] }>(
        'teams',
        name,
      )
      const source = attachments[0]?.content as ReturnType<Card['toJSON']>
      const [card, context] = [new cards.AdaptiveCard(), new cards.SerializationContext()]
      card.parse(source, context)
      expect(Array.from({ length: context.eventCount }, (_, at) => context.getEventAt(at))).toEqual([])
      expect(card.validateProperties().validationEvents).toEqual([])
      // What it does not know, it would leave out.
      expect(card.toJSON().body).toHaveLength(source.body.length)
      expect(card.toJSON().actions).toEqual(source.actions)
    })

    test('M19 the builders of discord.js accept each part of the embed, and keep the links whole', async () => {
      type Predicate = { parse: (value: unknown) => unknown }
      const { EmbedAssertions: is, embedLength } = validator<{
        readonly EmbedAssertions: Readonly<Record<string, Predicate>>
        readonly embedLength: (embed: object) => number
      }>('@discordjs/builders')
      const { embeds } = await bodyOf<{ readonly embeds: readonly Readonly<Record<string, unknown>>[] }>(
        'discord',
        name,
      )
      expect(embeds).toHaveLength(1)
      const { title, description, color, timestamp, fields, ...others } = embeds[0] ?? {}
      expect(others).toEqual({})
      const parsed = { titlePredicate: title, descriptionPredicate: description, colorPredicate: color }
      for (const [predicate, value] of Object.entries(parsed)) expect(is[predicate]?.parse(value)).toBe(value)
      expect(is['timestampPredicate']?.parse(new Date(String(timestamp)))).toBeInstanceOf(Date)
      expect(is['embedFieldsArrayPredicate']?.parse(fields)).toEqual(fields)
      expect(embedLength(embeds[0] ?? {})).toBeLessThanOrEqual(6_000)
      for (const url of Object.values(links)) expect(JSON.stringify(fields)).toContain(`(${url})`)
    })

    test("M19 the body for Slack is assignable to Slack's own types of attachments and blocks", async () => {
      const body = await bodyOf<object>('slack', name)
      const here = mkdtempSync(join(folder, 'slack-'))
      onTestFinished(() => rmSync(here, { recursive: true }))
      const check = (literal: object): string => {
        const type = '{ readonly text: string; readonly attachments: readonly MessageAttachment[] }'
        const source = `import type { MessageAttachment } from '@slack/types'\nexport const body: ${type} = `
        writeFileSync(join(here, 'body.ts'), source + JSON.stringify(literal))
        const tsc = join(import.meta.dirname, '../../../node_modules/.bin/tsc')
        const flags = ['--noEmit', '--strict', '--ignoreConfig', '--module', 'nodenext', '--types', '', 'body.ts']
        try {
          return execFileSync(tsc, flags, { cwd: here, encoding: 'utf8' })
        } catch (error) {
          return String((error as { readonly stdout?: unknown }).stdout)
        }
      }
      expect(check(body)).toBe('')
      // It would see a block that does not exist.
      if (name === 'fault')
        expect(check(JSON.parse(JSON.stringify(body).replace('"section"', '"sections"')))).toContain('error')
    })

    test('M19 an emulator of the Bot API gets a text for its chat that is no markup', async () => {
      type Emulator = {
        start: () => Promise<void>
        stop: () => Promise<unknown>
        getUpdatesHistory: (token: string) => readonly { readonly message: Readonly<Record<string, unknown>> }[]
      }
      const TelegramServer = validator<new (config: object) => Emulator>('telegram-test-api')
      const port = await freePort()
      const server = new TelegramServer({ port, host: '127.0.0.1' })
      await server.start()
      onTestFinished(async () => void (await server.stop()))
      const env = serviceRows['telegram']?.env('') ?? {}
      const yaml = JSON.stringify({ name: 'ops', telegram: settingsAt('telegram', `http://127.0.0.1:${port}`) })
      const { receiver } = await opened(yaml, { env })
      expect(await receiver.send(messages[name] ?? [], signal())).toEqual({ what: 'accepted' })
      const history = server.getUpdatesHistory(env['TELEGRAM_TOKEN'] ?? '')
      expect(history).toHaveLength(1)
      const { chat_id: chat, text, parse_mode: markup } = history[0]?.message ?? {}
      expect([chat, markup]).toEqual(['-1001234567890', undefined])
      const first = name === 'recovery' ? 'RECOVERED' : 'postgres orders'
      expect(String(text).split('\n')[0]).toContain(name === 'many' ? 'tcp m0' : first)
    })
  })
})
