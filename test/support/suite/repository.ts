import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

export const repository = new URL('../../../', import.meta.url).pathname

/** The files of this repository that exist, with those that are not yet added, by their paths from its root. */
export const repositoryFiles = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
  cwd: repository,
  encoding: 'utf8',
  maxBuffer: 2 ** 26,
})
  .split('\n')
  .filter((file) => file && existsSync(`${repository}${file}`))

/** The text of a file of this repository. */
export const read = (file: string): string => readFileSync(`${repository}${file}`, 'utf8')

/** The files that people write: without lock files, golden files and snapshots. `own`: a test that contains planted mistakes. */
export const handWritten = (own: string): readonly string[] =>
  repositoryFiles.filter(
    (file) =>
      (/\.(?:md|ts|mjs|js|json|ya?ml|sh|service)$/.test(file) || /^(?:\.ci|bin|deploy)\//.test(file)) &&
      !/package-lock\.json$|^test\/(?:golden|snapshot)\//.test(file) &&
      file !== own,
  )
