/**
 * A user name or e-mail address in the form for comparison: NFC, without letter case (O4). It is converted to upper
 * case first, because some letters (ß, ſ, final ς) lose their case only in that way.
 */
export const nameKey = (name: string): string =>
  name.replaceAll('\0', '\u{fffd}').toWellFormed().normalize('NFC').toUpperCase().toLowerCase().normalize('NFC')
