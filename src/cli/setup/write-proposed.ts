import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Fault } from '../../core/errors.ts'
import { makeFolder } from '../../core/own-files.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { settingsFolder, writePrivate } from '../settings/private-file.ts'
import { demandWritable } from './init-file.ts'

/** Where a proposed svc.yaml is written. Throws `Fault` Local when there is already one, or it cannot be written. */
export function proposedPath(env: ProcessEnvironment): string {
  const path = join(settingsFolder(env), 'svc.yaml')
  if (existsSync(path)) {
    throw new Fault('Local', `${path} already exists and is not overwritten`, {
      hints: ['To print the proposal: svc monitors discover', `To keep a copy: mv ${path} ${path}.old`],
    })
  }
  demandWritable(path)
  return path
}

/** Writes a proposed svc.yaml where svc finds it, and returns its path. */
export function writeProposed(file: string, env: ProcessEnvironment): string {
  const path = proposedPath(env)
  makeFolder(dirname(path))
  writePrivate(path, file)
  return path
}
