import { expect, test } from 'vitest'
import { pagerCommand } from '../../src/cli/io/pager.ts'
import { capturedIo } from '../support/program/captured-io.ts'

type Place = {
  readonly env?: Readonly<Record<string, string>>
  readonly argv?: readonly string[]
  readonly pipe?: 'stdin' | 'stdout'
}
test.each<readonly [string, Place, readonly string[] | undefined]>([
  ['less by default', {}, ['less']],
  ['PAGER', { env: { PAGER: 'more' } }, ['more']],
  ['SVC_PAGER before PAGER', { env: { PAGER: 'more', SVC_PAGER: 'less -S' } }, ['less', '-S']],
  ['words at blanks, without a shell', { env: { PAGER: '  a  "b c"; $(d) ' } }, ['a', '"b', 'c";', '$(d)']],
  ['none with an empty one', { env: { PAGER: 'more', SVC_PAGER: '' } }, undefined],
  ['none with cat', { env: { PAGER: 'cat' } }, undefined],
  ['none with --no-pager', { argv: ['--no-pager'] }, undefined],
  ['one for the words of another command', { argv: ['--', '--no-pager', '-q'] }, ['less']],
  ['none with -q', { argv: ['-q'] }, undefined],
  ['none with --quiet', { argv: ['--quiet'] }, undefined],
  ['none under CI', { env: { CI: 'true' } }, undefined],
  ['none with TERM=dumb', { env: { TERM: 'dumb' } }, undefined],
  ['none if standard input is a pipe', { pipe: 'stdin' }, undefined],
  ['none if standard output is a pipe', { pipe: 'stdout' }, undefined],
])('O12 the pager: %s', (_, { env = {}, argv = [], pipe }, expected) => {
  const { io } = capturedIo(pipe === 'stdout' ? { env } : { env, columns: 80 })
  const stdin = { ...io.stdin, isTTY: pipe !== 'stdin' }
  expect(pagerCommand({ env, stdin, stdout: io.stdout }, argv)).toEqual(expected)
})
