import { expect } from 'vitest'

/** The message about a peer at `ip:port` that accepts and says nothing, however long a busy machine took to say so. */
export const silenceOf = (address: string): string =>
  expect.stringMatching(
    new RegExp(`^${address.replaceAll('.', '\\.')} accepted the connection but sent nothing for [\\d.]+ m?s$`),
  )
