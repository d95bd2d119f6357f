import { setTimeout as pause } from 'node:timers/promises'
import type { Browser, BrowserContextOptions, CDPSession, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ServerType } from '../../src/core/protocol/index.ts'
import type { OpenFault } from '../../src/core/protocol/service/service.ts'
import { boardMarkup } from '../../src/core/server/pages/board-markup.ts'
import { chromiumMissing, launchChromium } from '../support/openid/chromium.ts'
import { axeFindings } from '../support/page/axe.ts'
import { boardFacts } from '../support/page/facts.ts'
import { fromElsewhere, startStatusServer, viewer } from '../support/page/status-server.ts'
import { admin, type ServeNode } from '../support/program/serve-node.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'

const maxMs = 240_000

/** A name of the element that has the focus: its label, or its text. */
const focused = `(() => {
  const { activeElement: one } = document
  return (one.getAttribute('aria-label') ?? one.labels?.[0]?.innerText ?? one.innerText ?? '').trim()
})()`

/** Presses Tab until the element with this name has the focus. Throws after 200 elements. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 200; presses += 1) {
    await page.keyboard.press('Tab')
    if ((await page.evaluate(focused)) === name) return
  }
  throw new Error(`Tab reaches nothing named ${name}`)
}

async function pressEnter(page: Page): Promise<void> {
  await Promise.all([page.waitForEvent('load'), page.keyboard.press('Enter')])
}

/** Milliseconds after which a picture no longer comes. It takes half a second on a busy machine. */
const pictureMs = 10_000

/**
 * The color near the upper left corner of what a page shows, also while it waits for another one. `reader` reads the
 * picture. Undefined: there is no picture, because Chromium refuses or drops one that it takes while a page replaces
 * another; the next one comes.
 */
async function colourOf(session: CDPSession, reader: Page): Promise<string | undefined> {
  const picture = session.send('Page.captureScreenshot', { format: 'png' }).catch(() => undefined)
  const { data } = (await Promise.race([picture, pause(pictureMs)])) ?? {}
  if (data === undefined) return undefined
  const colour = await reader.evaluate(`(async () => {
    const image = await createImageBitmap(await (await fetch('data:image/png;base64,${data}')).blob())
    const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d')
    canvas.drawImage(image, 0, 0)
    return '#' + [...canvas.getImageData(60, 60, 1, 1).data].slice(0, 3).map((one) => one.toString(16).padStart(2, '0')).join('')
  })()`)
  return String(colour)
}

peerSuite(chromiumMissing, 'the pages of svc serve for people of all kinds, in a real browser', () => {
  let browser: Browser
  let serve: ServeNode
  beforeAll(async () => {
    serve = await startStatusServer()
    browser = await launchChromium()
    await until(
      async () =>
        (await (await fetch(`${serve.url}/board`)).text()).includes('2 monitors have failed, 1 has a warning'),
      maxMs,
      500,
    )
  }, maxMs)
  afterAll(async () => {
    await browser?.close()
    await serve?.[Symbol.asyncDispose]()
  })

  const open = async (path: string, options: BrowserContextOptions = {}): Promise<Page> => {
    const page = await (await browser.newContext({ extraHTTPHeaders: fromElsewhere, ...options })).newPage()
    await page.goto(`${serve.url}${path}`)
    return page
  }
  const signIn = async (
    page: Page,
    target = '/',
    stays = false,
    as: typeof viewer | typeof admin = viewer,
  ): Promise<void> => {
    await page.goto(`${serve.url}/sign-in?continue=${encodeURIComponent(target)}`)
    await page.getByLabel('User name').fill(as.userName)
    await page.getByLabel('Password').fill(as.password)
    if (stays) await page.getByLabel('Stay signed in').check()
    await page.getByRole('button', { name: 'Sign in' }).click()
  }

  test(
    'W25 the keyboard alone signs in, searches, opens a monitor, runs a check, reads its report and signs out',
    async () => {
      const page = await open('/')
      expect(await page.locator('body').innerText()).not.toContain('orders')
      await page.keyboard.press('Tab')
      expect(await page.evaluate(focused)).toBe('Skip to the content')
      await tabTo(page, 'Sign in')
      await pressEnter(page)
      await until(async () => (await page.evaluate(focused)) === 'User name', 10_000)
      await page.keyboard.type(viewer.userName)
      await tabTo(page, 'Password')
      await page.keyboard.type(viewer.password)
      await tabTo(page, 'Stay signed in, for example on a wall display')
      await page.keyboard.press('Space')
      await pressEnter(page)
      expect(page.url()).toBe(`${serve.url}/`)
      expect(await page.locator('nav').innerText()).toContain('signed in as viewer by password')
      expect(await page.locator('h1').innerText()).toContain('Sql tcp orders')
      await tabTo(page, 'Find monitors')
      await page.keyboard.type('shop-17')
      await pressEnter(page)
      await tabTo(page, 'App http shop-17')
      await pressEnter(page)
      expect(await page.locator('h1').innerText()).toBe('App http shop-17: healthy')
      expect(await page.locator('#history').innerText()).toContain('90 days')
      await tabTo(page, 'All monitors')
      await pressEnter(page)
      await tabTo(page, 'Run Basic of Batch')
      await pressEnter(page)
      expect(page.url()).toBe(`${serve.url}/?report=Batch-Basic#Batch-Basic`)
      expect(await page.locator('#Batch-Basic').innerText()).toContain('http worker')
      // The focus is at the report: what follows is its content.
      await page.keyboard.press('Tab')
      expect(await page.evaluate(focused)).toContain('Basic report: 1 monitor')
      await page.goto(`${serve.url}/`)
      await tabTo(page, 'Sign out')
      await pressEnter(page)
      expect(await page.locator('nav').innerText()).not.toContain('viewer')
      expect(await page.locator('body').innerText()).not.toContain('orders')
      await page.context().close()
    },
    maxMs,
  )

  test.each([
    ['a phone, dark', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }],
    ['a desktop, light', { viewport: { width: 1280, height: 900 }, colorScheme: 'light' }],
  ] as const)(
    'W25 axe-core finds nothing, of any impact, on all pages on %s',
    async (_, options) => {
      const page = await open('/', options)
      const findings: string[] = []
      const look = async (path: string): Promise<void> => {
        await page.goto(`${serve.url}${path}`)
        await page.evaluate(`for (const one of document.querySelectorAll('details')) one.open = true`)
        for (const one of await axeFindings(page)) findings.push(`${path}: ${one}`)
      }
      const stranger = ['/', '/board', '/sign-in', '/board?type=Nothing', '/metadata']
      for (const path of stranger) await look(path)
      await page.goto(`${serve.url}/sign-in`)
      await page.getByLabel('User name').fill('nobody')
      await page.getByLabel('Password').fill('mistaken')
      await page.getByRole('button', { name: 'Sign in' }).click()
      expect(await page.locator('[role=alert]').innerText()).toContain('Nobody is signed in')
      for (const one of await axeFindings(page)) findings.push(`failed sign-in: ${one}`)
      await signIn(page)
      for (const path of [
        ...['/', '/?report=Batch-Basic', '/?state=unhealthy', '/?find=shop', '/?find=nothing-like-it', '/?open=App'],
        ...['/?monitor=Batch%2Fhttp%20worker', '/?monitor=App%2Fhttp%20needs-orders', '/?monitor=Sql%2Fnobody'],
        ...['/?reload=off', '/board', '/board?type=Batch', '/board?type=App,Sql'],
      ])
        await look(path)
      await page.context().clearCookies()
      await signIn(page, '/', false, admin)
      await look('/?monitor=Sql%2Ftcp%20orders')
      expect(await page.locator('#silences form').count()).toBe(2)
      expect(findings).toEqual([])
      await page.context().close()
    },
    maxMs,
  )

  test('W25 the board fits on a wall without scrolling, and no letter of it is smaller than 2 % of its width', async () => {
    for (const [width, height] of [
      [1920, 1080],
      [3840, 2160],
    ] as const) {
      const page = await open('/', { viewport: { width, height } })
      await signIn(page, '/board')
      const overflow = await page.evaluate(
        `document.documentElement.scrollHeight - window.innerHeight + document.documentElement.scrollWidth - window.innerWidth`,
      )
      expect(overflow).toBeLessThanOrEqual(0)
      const smallest = await page.evaluate(`Math.min(...[...document.querySelectorAll('body, body *')]
        .filter((one) => one.innerText?.trim()).map((one) => parseFloat(getComputedStyle(one).fontSize)))`)
      expect(smallest).toBeGreaterThanOrEqual(0.02 * width)
      const text = await page.locator('body').innerText()
      for (const part of ['2 monitors have failed, 1 has a warning', 'Sql tcp orders', '1 monitor fails because of it'])
        expect(text).toContain(part)
      await page.context().close()
    }
  })

  test.each([360, 1280, 1920])(
    'W25 W31 at %i pixels the charts of a monitor have room for their labels, and the board cuts off no name of a monitor',
    async (width) => {
      for (const colorScheme of ['light', 'dark'] as const) {
        const page = await open('/', { viewport: { width, height: 900 }, colorScheme })
        await signIn(page, '/')
        await page.goto(`${serve.url}/?monitor=Batch%2Fhttp%20worker`)
        expect(await page.locator('#response-time .chart').count()).toBe(3)
        const misplaced = await page.evaluate(`(() => {
          const labels = [...document.querySelectorAll('.chart text')].map((one) => [one, one.getBoundingClientRect()])
          const overlap = ([, one], [, other]) =>
            one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom
          return labels.filter((label, at) => {
            const card = label[0].closest('section').getBoundingClientRect()
            return label[1].left < card.left || label[1].right > card.right || label[1].height < 11
              || labels.some((other, index) => index > at && overlap(label, other))
          }).map(([one]) => one.textContent)
        })()`)
        expect(misplaced).toEqual([])
        await page.goto(`${serve.url}/board`)
        expect(await page.locator('header').innerText()).toMatch(/\d+ of \d+ monitors healthy/)
        const cut = await page.evaluate(
          `[...document.querySelectorAll('.board h2')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.innerText)`,
        )
        expect(cut).toEqual([])
        await page.context().close()
      }
    },
    maxMs,
  )

  test('W25 the fullest board fits, too: all types fail, with five hundred incidents and long names', async () => {
    const page = await open('/', { viewport: { width: 1920, height: 1080 } })
    const at = new Date()
    const name = 'http a-service-with-a-rather-long-name.example.com'
    const fault: OpenFault = {
      ...{ check: 'status', level: 'failed', certainty: 'confirmed', since: at.getTime(), isFlapping: false },
      ...{ isUnobserved: false, message: 'answered 500 (expected 2xx): '.repeat(10) },
    }
    const open500 = Array.from({ length: 500 }, (_, index) => ({
      ...{ type: 'App' as const, monitor: `${name}${index}`, faults: [fault], hiddenVictims: 3 },
      victims: [{ type: 'Sql' as const, monitor: name, since: at.getTime() }],
    }))
    const card = {
      level: 'fail',
      decisiveRun: undefined,
      gap: undefined,
      runs: [],
      monitors: [],
      away: undefined,
    } as const
    const cards = [undefined, ...ServerType.values].map((type) => ({ ...card, type }))
    for (const incidents of [
      { open: open500, hidden: 7, ended: [], isIsolated: true },
      { open: open500.slice(0, 1), hidden: 0, ended: [], isIsolated: undefined },
    ]) {
      const facts = boardFacts({ incidents, at, user: 'ann by password' })
      await page.setContent(boardMarkup(cards, facts).markup)
      const overflow = await page.evaluate(
        `document.documentElement.scrollHeight - window.innerHeight + document.documentElement.scrollWidth - window.innerWidth`,
      )
      expect(overflow).toBeLessThanOrEqual(0)
    }
    await page.context().close()
  })

  test('W25 the board of some types shows those types only, and a type that is not checked is an error', async () => {
    const page = await open('/')
    await signIn(page, '/board?type=Batch')
    expect(page.url()).toBe(`${serve.url}/board?type=Batch`)
    expect(await page.locator('h1').innerText()).toBe('✓ All healthy')
    expect(await page.locator('body').innerText()).not.toContain('orders')
    const answer = await page.goto(`${serve.url}/board?type=Batch,Mongo`)
    expect(answer?.status()).toBe(400)
    expect(await page.locator('[role=alert]').innerText()).toContain('This server checks App, Sql, Batch')
    await page.context().close()
  })

  test('W25 who may silences a monitor, acknowledges its incident and ends both on its page, without scripts; a viewer cannot', async () => {
    const path = '/?monitor=Sql%2Ftcp%20orders'
    const page = await open('/', { javaScriptEnabled: false })
    await signIn(page, path)
    expect(await page.locator('#silences').count()).toBe(0)
    await page.context().clearCookies()
    await signIn(page, path, false, admin)
    const notifications = page.locator('#silences')
    await page.getByText('Silence it').click()
    await page.locator('#silence-for').selectOption('4 hours')
    await page.locator('#silence-reason').fill('patch <night>')
    await page.getByRole('button', { name: 'Silence' }).click()
    expect(page.url()).toBe(`${serve.url}${path}`)
    expect(await notifications.innerText()).toMatch(/silenced until .*\d\d:\d\d:\d\d UTC, Ann: patch <night>/)
    await page.goto(`${serve.url}/`)
    expect(await page.locator('#incidents').innerText()).toMatch(/silenced until .* UTC, Ann: patch <night>/)
    expect(await page.locator('h1').innerText()).toContain('Sql tcp orders')
    await page.goto(`${serve.url}/board`)
    expect(await page.locator('article').first().innerText()).toContain('silenced')
    await page.goto(`${serve.url}${path}`)
    await page.getByRole('button', { name: 'End it now' }).click()
    expect(await notifications.innerText()).toContain('Receivers are notified about it.')
    await page.getByText('Acknowledge its open incidents').click()
    await page.locator('#ack-reason').fill('on it')
    await page.getByRole('button', { name: 'Acknowledge', exact: true }).click()
    expect(await notifications.innerText()).toMatch(/acknowledged until .*, Ann: on it/)
    await page.getByRole('button', { name: 'End it now' }).click()
    expect(await notifications.innerText()).toContain('Receivers are notified about it.')
    await page.context().close()
  })

  test(
    'W25 a board whose server hangs says that it is stale, and is itself again when the server answers',
    async () => {
      const page = await open('/', { viewport: { width: 1920, height: 1080 }, javaScriptEnabled: false })
      await signIn(page, '/board?type=Batch', true)
      const stale = page.locator('.stale')
      expect(await stale.isVisible()).toBe(false)
      const before = await page.locator('header').innerText()
      // It loads itself again, with a cookie that the browser keeps for a month from now.
      const [reload] = await Promise.all([
        page.waitForResponse((response) => response.url().includes('/board')),
        page.waitForEvent('load'),
      ])
      const cookies = (await reload.headersArray()).filter(({ name }) => name.toLowerCase() === 'set-cookie')
      expect(cookies.map(({ value }) => value)).toContainEqual(
        expect.stringMatching(/^ss-pid=[^;]+; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Lax$/),
      )
      expect(await page.locator('header').innerText()).not.toBe(before)
      const session = await page.context().newCDPSession(page)
      const reader = await (await browser.newContext()).newPage()
      const shows = (colour: string): Promise<true> =>
        until(async () => (await colourOf(session, reader)) === colour, 90_000, 1_000)
      const [green, banner] = ['#12683a', '#ffffff']
      expect(await shows(green)).toBe(true)
      serve.signal('SIGSTOP')
      try {
        // While the browser waits for the answer, only the picture of the page says what it shows.
        expect(await shows(banner)).toBe(true)
      } finally {
        serve.signal('SIGCONT')
      }
      expect(await shows(green)).toBe(true)
      expect(await stale.isVisible()).toBe(false)
      expect(await page.locator('h1').innerText()).toBe('✓ All healthy')
      await reader.context().close()
      await page.context().close()
    },
    maxMs,
  )
})
