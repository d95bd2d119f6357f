type Environment = Readonly<Record<string, string | undefined>>

const set = (value: string | undefined): boolean => value !== undefined && value !== ''

/** True when the terminal shows `✓`, `✗`, `·` and `…`; else plain letters stand for them. */
export function showsUnicode(env: Environment, platform: NodeJS.Platform): boolean {
  if (platform === 'win32') {
    return (
      set(env['WT_SESSION']) || set(env['TERM_PROGRAM']) || env['TERM'] === 'xterm-256color' || set(env['ConEmuTask'])
    )
  }
  // The Linux console has 512 glyphs, and these are not among them.
  if (env['TERM'] === 'linux') return false
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find(set)
  return locale === undefined || /utf-?8/i.test(locale)
}
