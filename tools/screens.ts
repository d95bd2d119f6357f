/** `npm run screens`: runs svc for the screen in README.md and for the images of docs/screens.md, and writes them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeCaptures } from './captures/captures.ts'
import { blocksOf, withScreen } from './pages/page.ts'
import { healthScreen, localized } from './pages/screen.ts'
import { openStage, root } from './pages/stage.ts'

const file = join(root, 'README.md')
const page = readFileSync(file, 'utf8')
const config = blocksOf(page).find(({ language }) => language === 'yaml')
if (config === undefined) throw new Error('README.md has no svc.yaml')
const stage = await openStage()
try {
  writeFileSync(file, withScreen(page, await healthScreen(stage, localized(config.content, stage))))
} finally {
  stage.remove()
}
await writeCaptures()
