/** The meanings of the operating system's error codes for a file. Each continues the path of the file. */
const meanings: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist: a part of its path is not a folder',
  EISDIR: 'is a folder',
  EEXIST: 'exists already',
  EACCES: 'is not accessible to this account',
  EPERM: 'is not accessible to this account',
  EROFS: 'is on a read-only file system',
  ENOSPC: 'is on a full disk',
  EDQUOT: 'exceeds the disk quota of this account',
  ELOOP: 'is a symbolic link that leads back to itself',
  ENAMETOOLONG: 'has a name that is too long',
  EBUSY: 'is in use',
  ETXTBSY: 'is a program that is running',
  EIO: 'is on a disk that reports an error',
  ENXIO: 'is a device or pipe without another end',
  ESTALE: 'is no longer on its share',
  ENOEXEC: 'is not a program for this system',
  ENOTEMPTY: 'is a folder that is not empty',
  EXDEV: 'is on another file system',
  EFBIG: 'is too large',
  EMFILE: 'cannot be opened: svc has too many files open',
  ENFILE: 'cannot be opened: this machine has too many files open',
  ENOMEM: 'cannot be opened: the machine has no free memory',
}

/**
 * Why an operation on a file failed, in words that continue its path: `does not exist`. Undefined for an error that is
 * not one of the file system. The errors of `base/files` carry such words as their message.
 *
 * @example
 * ```ts
 * fileMeaning({ code: 'ENOENT' }) // 'does not exist'
 * ```
 */
export function fileMeaning(error: unknown): string | undefined {
  const { code, message, syscall } = (error ?? {}) as { code?: unknown; message?: unknown; syscall?: unknown }
  if (typeof code !== 'string') return undefined
  if (syscall === undefined && (code === 'EFTYPE' || code === 'EFBIG') && typeof message === 'string') return message
  return Object.hasOwn(meanings, code) ? meanings[code] : undefined
}

/** The errors that end when somebody makes room, repairs a disk or mounts it: no path and no permission is at fault. */
const outages: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EIO', 'ESTALE'])

/** Whether an error, or the cause of a Fault, comes from a file system that is full, read-only or out of order. */
export function isFileOutage(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { readonly code?: unknown; readonly cause?: unknown }
  return outages.has(code) || (cause !== undefined && isFileOutage(cause))
}

/** Why a program cannot be started, in words that continue `cannot be started: `. */
export function programProblem(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  if (code === 'ENOENT') return 'the program, or the interpreter in its first line (#!), does not exist'
  if (code === 'EACCES' || code === 'EPERM') return 'this account has no permission to run it'
  return `it ${fileProblem(error)}`
}

/**
 * As `fileMeaning`, never empty: an unknown code appears as it is.
 *
 * @example
 * ```ts
 * fileProblem(Object.assign(new Error('x'), { code: 'EACCES' })) // 'is not accessible to this account'
 * ```
 */
export function fileProblem(error: unknown): string {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  const meaning = fileMeaning(error)
  if (meaning !== undefined) return meaning
  if (typeof code === 'string') return `cannot be used (${code})`
  return typeof message === 'string' && message !== '' ? message : 'cannot be used'
}
