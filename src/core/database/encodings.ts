import { createRequire } from 'node:module'

/**
 * Has iconv-lite, which a driver brings along, read its tables of encodings. It would do so in the midst of
 * the first answer that needs them, where nobody catches what it throws. Throws what loading throws.
 */
export function loadEncodings(driver: string): void {
  const requireHere = createRequire(import.meta.url)
  const requireThere = createRequire(requireHere.resolve(driver))
  const { decode } = requireThere('iconv-lite') as { readonly decode: (bytes: Buffer, encoding: string) => string }
  decode(Buffer.from('a'), 'cesu8')
}
