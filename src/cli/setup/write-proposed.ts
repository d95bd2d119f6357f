import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Fault } from '../../core/errors.ts'
import { makeFolder } from '../../core/own-files.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { settingsFolder, writePrivate } from '../settings/private-file.ts'

/**
 * Writes a proposed svc.yaml where svc finds it, and returns its path. Throws `Fault` Local when there is already one.
 */
export function writeProposed(file: string, env: ProcessEnvironment): string {
  const path = join(settingsFolder(env), 'svc.yaml')
  if (existsSync(path)) {
    throw new Fault('Local', `${path} already exists and is not overwritten`, {
      hints: ['To print the proposal: svc monitors discover', `To keep a copy: mv ${path} ${path}.old`],
    })
  }
  makeFolder(dirname(path))
  writePrivate(path, file)
  return path
}
