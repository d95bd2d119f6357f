/**
 * The next step where a server accepts no more connections. Its own statements may need one, so this one asks the kernel.
 * `address` is `ip:port`.
 */
export const listConnections = (address: string): string =>
  `next: on its host, ss -tn state established 'sport = :${address.slice(address.lastIndexOf(':') + 1)}' lists who is connected`
