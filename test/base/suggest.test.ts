import { describe, expect, test } from 'vitest'
import { didYouMean } from '../../src/core/base/suggest.ts'
import { ExecutionMode, ServerType } from '../../src/core/protocol/index.ts'

describe('did you mean', () => {
  test.each([
    ['Sqll', 'Sql'],
    ['sql', 'Sql'],
    ['MSQL', 'Sql'],
    ['Slq', 'Sql'],
    ['Idenitty', 'Identity'],
    ['identiti', 'Identity'],
    ['agent', 'Agents'],
    ['xcode', 'XcodeV'],
    ['msgvst', 'MsgVast'],
    ['ftpap', 'FtpApi'],
    ['Qd', 'Qc'],
  ])('%s: %s', (word, meant) => {
    expect(didYouMean(word, ServerType.values)).toBe(meant)
  })

  test.each(['', 'Postgres', 'abc', 'xy', 'zzz', 'x'.repeat(100), 'Database'])('suggests nothing for %j', (word) => {
    expect(didYouMean(word, ServerType.values)).toBeUndefined()
  })

  test('a word that is typed in part is recognized', () => {
    expect(didYouMean('adv', ExecutionMode.values)).toBe('Advanced')
    expect(didYouMean('Stand', ExecutionMode.values)).toBe('Standard')
  })

  test('of equally similar words, one that needs no letter replaced is suggested', () => {
    expect(didYouMean('htp', ['ftp', 'http', 'tcp'])).toBe('http')
    expect(didYouMean('tpc', ['tps', 'tcp'])).toBe('tcp')
    expect(didYouMean('xxxp', ['http'])).toBeUndefined()
  })

  test('of equally similar words the first is suggested, each time', () => {
    expect(didYouMean('cat', ['bat', 'hat', 'rat'])).toBe('bat')
    expect(didYouMean('cat', ['rat', 'hat', 'bat'])).toBe('rat')
    expect(didYouMean('cart', ['cats', 'carts'])).toBe('carts')
  })

  test('without candidates there is no suggestion', () => {
    expect(didYouMean('Sql', [])).toBeUndefined()
  })
})
