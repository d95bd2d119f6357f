/** Asks macOS and Windows what Linux tells in /proc. */
export const loadSystemInformation = async () => (await import('systeminformation')).default

/** Loads it where it is used. */
export const preloadSystemInformation = async (): Promise<void> => {
  if (process.platform !== 'linux') await loadSystemInformation()
}
