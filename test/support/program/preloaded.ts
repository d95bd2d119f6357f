import { registerHooks } from 'node:module'
import { Secret } from '../../../src/core/base/settings/index.ts'
import { type AnyKind, loadSignIns } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import { loadKind } from '../../../src/core/checks/plan/index.ts'
import { reportKind } from '../engine/run-kind.ts'

/**
 * A separate process. Without arguments it preloads each kind, and writes which packages that loaded. With a kind,
 * a URL and a password it preloads that one, runs it there, and writes which files of modules the run loaded.
 */
let packages: string[] = []
let files: string[] = []
registerHooks({
  resolve: (specifier, context, next) => {
    // A driver is required by the path of its folder.
    const folder = /\/node_modules\/([^/]+)$/.exec(specifier)?.[1]
    if (!specifier.startsWith('.') && !specifier.startsWith('node:')) packages.push(folder ?? specifier)
    return next(specifier, context)
  },
  load: (url, context, next) => {
    if (url.startsWith('file:')) files.push(url)
    return next(url, context)
  },
})

const [name, url, password = ''] = process.argv.slice(2)
if (name === undefined) {
  const requests: Record<string, readonly string[]> = {}
  for (const one of Object.keys(monitors) as KindName[]) {
    const kind = await loadKind(one)
    packages = []
    await kind.preload?.()
    requests[one] = packages
  }
  process.stdout.write(JSON.stringify(requests))
} else {
  const kind: AnyKind = await loadKind(name as KindName)
  await Promise.all([kind.preload?.(), loadSignIns()])
  files = []
  const settings = { url, password: new Secret('{test}', async () => password) }
  const { results } = await reportKind(kind as never, settings as never, 'Advanced')
  const failed = results.filter((result) => result.status === 'failed').map(({ message }) => message)
  process.stdout.write(JSON.stringify({ files, failed }))
}
