import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import pkg from '../../package.json' with { type: 'json' }
import { runtimePackages } from '../../tools/deb/packages.ts'
import { type Home, svcHome } from '../support/program/svc.ts'
import { root } from './installed.ts'

export type Installation = {
  /** The prefix of npm. */
  readonly prefix: string
  /** The folder of the package. */
  readonly own: string
  readonly home: Home
  /** A folder with a program `npm`, for PATH: it copies the driver from this clone, and does `more` before. */
  readonly npm: (more?: string) => string
  readonly remove: () => void
}

/** The built program as npm installs it: nothing but its dependencies beside it, and no driver. */
export function withoutDrivers(): Installation {
  const prefix = realpathSync(mkdtempSync(join(tmpdir(), 'svc-drivers-')))
  const own = join(prefix, 'lib/node_modules', pkg.name)
  mkdirSync(own, { recursive: true })
  for (const name of ['bin', 'dist', 'package.json']) cpSync(join(root, name), join(own, name), { recursive: true })
  for (const source of runtimePackages(root, { drivers: false })) {
    const place = relative(root, source)
    if (place.lastIndexOf('node_modules/') > 0) continue
    mkdirSync(dirname(join(own, place)), { recursive: true })
    symlinkSync(source, join(own, place))
  }
  const home = svcHome(join(own, 'bin/run.js'))
  let count = 0
  return {
    prefix,
    own,
    home,
    npm: (more = '') => {
      count += 1
      const folder = join(prefix, `npm-${count}`)
      mkdirSync(folder)
      const script = `#!${process.execPath}
const { cpSync, mkdirSync, readFileSync, writeFileSync } = require('node:fs')
writeFileSync(${JSON.stringify(join(folder, 'pid'))}, String(process.pid))
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
const go = () => {
  for (const place of Object.keys(packages)) {
    if (place !== '' && require('node:fs').existsSync(${JSON.stringify(root)} + place))
      cpSync(${JSON.stringify(root)} + place, place, { recursive: true })
  }
}
${more === '' ? 'go()' : more}
`
      writeFileSync(join(folder, 'npm'), script, { mode: 0o755 })
      return `${folder}:/usr/bin:/bin`
    },
    remove: () => {
      home.remove()
      rmSync(prefix, { recursive: true, force: true })
    },
  }
}
