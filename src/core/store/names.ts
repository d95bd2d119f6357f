/**
 * A user name or e-mail as it is compared (O4): NFC, without letter case. Upper case first, since some
 * letters (ß, ſ, final ς) only then become what they are without case.
 */
export const nameKey = (name: string): string =>
  name.replaceAll('\0', '\u{fffd}').toWellFormed().normalize('NFC').toUpperCase().toLowerCase().normalize('NFC')
