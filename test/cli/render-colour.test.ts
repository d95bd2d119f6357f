import { describe, expect, test } from 'vitest'
import { colourOf, painter, showsUnicode, usesColour } from '../../src/cli/io/terminal.ts'

describe('colour', () => {
  test.each([
    ['a terminal', 'auto', {}, true, true],
    ['a pipe', 'auto', {}, false, false],
    ['NO_COLOR', 'auto', { NO_COLOR: '1' }, true, false],
    ['an empty NO_COLOR, which counts as not set', 'auto', { NO_COLOR: '' }, true, true],
    ['NO_COLOR against FORCE_COLOR', 'auto', { NO_COLOR: '1', FORCE_COLOR: '1' }, true, false],
    ['FORCE_COLOR in a pipe', 'auto', { FORCE_COLOR: '1' }, false, true],
    ['FORCE_COLOR=0 on a terminal', 'auto', { FORCE_COLOR: '0' }, true, false],
    ['CLICOLOR_FORCE in a pipe', 'auto', { CLICOLOR_FORCE: '1' }, false, true],
    ['FORCE_COLOR on a dumb terminal', 'auto', { FORCE_COLOR: '1', TERM: 'dumb' }, true, true],
    ['a dumb terminal', 'auto', { TERM: 'dumb' }, true, false],
    ['CLICOLOR=0', 'auto', { CLICOLOR: '0' }, true, false],
    ['CLICOLOR=1 in a pipe', 'auto', { CLICOLOR: '1' }, false, false],
    ['--color always against NO_COLOR', 'always', { NO_COLOR: '1' }, false, true],
    ['--color never against FORCE_COLOR', 'never', { FORCE_COLOR: '1' }, true, false],
  ] as const)('%s', (_, flag, env, isTTY, expected) => {
    expect(usesColour(flag, env, isTTY)).toBe(expected)
  })

  test.each([
    [['health', '--color', 'always'], 'always'],
    [['health', '--color=ALWAYS'], 'always'],
    [['health', '--color=never', '--color=always'], 'always'],
    [['--color', 'never'], 'never'],
    [['health', '--color', 'blue'], 'auto'],
    [['login', '--', 'ls', '--color=always'], 'auto'],
  ])('%j asks for %s before the line is parsed', (argv, flag) => {
    expect(colourOf(argv)).toBe(flag)
  })

  test('is reset after each text, and an empty text gets none', () => {
    expect(painter(true)('bad', 'x')).toBe('\u001b[1m\u001b[31mx\u001b[39m\u001b[22m')
    expect(painter(true)('good', '')).toBe('')
    expect(painter(true)(undefined, 'x')).toBe('x')
    expect(painter(false)('bad', 'x')).toBe('x')
  })
})

describe('signs', () => {
  test.each([
    ['an UTF-8 locale', { LANG: 'en_GB.UTF-8' }, 'linux', true],
    ['no locale at all', {}, 'linux', true],
    ['LC_ALL=C over LANG', { LC_ALL: 'C', LANG: 'en_GB.UTF-8' }, 'linux', false],
    ['the Linux console', { TERM: 'linux', LANG: 'C.utf8' }, 'linux', false],
    ['Windows Terminal', { WT_SESSION: 'x' }, 'win32', true],
    ['the old Windows console', {}, 'win32', false],
  ] as const)('%s', (_, env, platform, output) => {
    expect(showsUnicode(env, platform)).toBe(output)
  })
})
