/**
 * Verifies the Node binary that the development dependency `node` installs. Its preinstall script fetches a package for
 * this platform that is in no lockfile, so npm compares nothing. `node-binary.json` has the hash of the executable in
 * each platform's package, and the integrity of the package that the hash was taken from.
 *
 * Runs in plain JavaScript, so that the Node of the machine can run it: a replaced binary must not verify itself.
 * Usage: node tools/verify-node.mjs [ROOT]. Exits with 1 if the file is another one, and says so if it cannot tell.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const print = (line) => process.stdout.write(`${line}\n`)
const complain = (line) => process.stderr.write(`${line}\n`)

// npm puts the binary in question first on the PATH of its scripts, and names its own Node here.
const { npm_node_execpath: npmNode } = process.env
const self = fileURLToPath(import.meta.url)
if (npmNode !== undefined && npmNode !== process.execPath && process.env.SVC_VERIFYING === undefined) {
  const env = { ...process.env, SVC_VERIFYING: '1' }
  const { status } = spawnSync(npmNode, [self, ...process.argv.slice(2)], { stdio: 'inherit', env })
  process.exit(status ?? 1)
}

const root = process.argv[2] ?? join(dirname(self), '..')
const readJson = (...path) => JSON.parse(readFileSync(join(root, ...path), 'utf8'))

const pinned = readJson('tools', 'node-binary.json')
const platform = `${process.platform}-${process.arch}`
const folder = join(root, 'node_modules', 'node')

const refuse = (reason) => {
  complain(`The development dependency node: ${reason}`)
  process.exitCode = 1
}

if (!existsSync(folder)) {
  print('The development dependency node is not installed: nothing to verify')
} else {
  const { version } = readJson('node_modules', 'node', 'package.json')
  const locked = readJson('package-lock.json').packages['node_modules/node'].version
  const expected = pinned.platforms[platform]
  const file = join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if (version !== pinned.version || locked !== pinned.version) {
    refuse(
      `version ${version} is installed and ${locked} is locked, but tools/node-binary.json is for ${pinned.version}`,
    )
  } else if (!expected) {
    print(`tools/node-binary.json has no hash for ${platform}: the node binary is not verified`)
  } else if (!existsSync(file)) {
    refuse(`${file} does not exist: its preinstall script did not run`)
  } else {
    const found = createHash('sha256').update(readFileSync(file)).digest('hex')
    if (found === expected.sha256) print(`node ${version} for ${platform} is the executable of ${expected.package}`)
    else refuse(`${file} is not the executable of ${expected.package}@${version} (SHA-256 ${found})`)
  }
}
