import axe from 'axe-core'
import type { Page } from 'playwright-core'

type Violation = {
  readonly id: string
  readonly impact: string | null
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
}

/**
 * The findings of axe-core on a page, one line for each element: all of its rules, of every impact. Runs beside the
 * page, whose policy allows no script.
 */
export async function axeFindings(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  const violations = (await page.evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then((results) => results.violations)`,
  )) as readonly Violation[]
  return violations.flatMap(({ id, impact, nodes }) =>
    nodes.map((node) => `${impact} ${id}: ${node.html.slice(0, 200)} ${node.failureSummary ?? ''}`),
  )
}
