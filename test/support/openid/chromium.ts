import { existsSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'

const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
export const chromiumMissing = program === undefined ? 'chromium is not installed' : undefined

/** Starts Chromium, with further arguments of its command line. */
export const launchChromium = (...more: readonly string[]): Promise<Browser> =>
  chromium.launch({
    ...(program === undefined ? {} : { executablePath: program }),
    args: [
      ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
      ...more,
    ],
  })

/**
 * Signs a person in on the pages that a provider shows, until one has nothing to fill in or to press. Knows the pages of
 * oidc-provider and of Keycloak.
 */
export async function signInOnPages(
  page: Page,
  { PERSON = 'carol', PERSON_PASSWORD = 'any password' }: Readonly<Record<string, string | undefined>> = {},
): Promise<void> {
  for (let step = 0; step < 12; step += 1) {
    const password = page.locator('input[name=password]')
    if (await password.isVisible()) {
      await page.locator('input[name=login], input[name=username]').fill(PERSON)
      await password.fill(PERSON_PASSWORD)
    }
    const submit = page.locator('button[type=submit]:not([name=abort]), input[type=submit]:not([name=cancel])').first()
    if (!(await submit.isVisible())) return
    await Promise.all([page.waitForEvent('load'), submit.click()])
  }
  throw new Error(`too many pages, the last at ${page.url()}`)
}

/** As a program, for BROWSER: ends once the browser has shown the page of the callback. */
if (process.argv[1] === import.meta.filename) {
  const browser = await launchChromium()
  const page = await browser.newPage()
  await page.goto(process.argv[2] ?? '')
  await signInOnPages(page, process.env)
  await browser.close()
}
