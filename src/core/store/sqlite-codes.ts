/** The extended result code of an error of SQLite. Undefined for any other error. */
export const resultCode = (error: unknown): number | undefined => {
  const { errcode } = (error ?? {}) as { errcode?: unknown }
  return typeof errcode === 'number' ? errcode : undefined
}
/** The primary result code, which is its lowest byte. */
export const primaryCode = (error: unknown): number | undefined => {
  const code = resultCode(error)
  return code === undefined ? undefined : code & 0xff
}

/** Whether another process holds a lock of the store. */
export const isBusy = (error: unknown): boolean => [5, 6].includes(primaryCode(error) ?? 0)
