import { ProbeError } from '../probe-error.ts'

/**
 * Loads a driver that an installation may have left out because of its size. Throws ProbeError
 * `internal`, which names the way out, when it is not there.
 */
export async function optionalDriver<M>(name: string, load: () => Promise<M>): Promise<M> {
  try {
    return await load()
  } catch (error) {
    const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
    const absent = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
    // A package that the driver itself misses is another trouble, and must not be blamed on its absence.
    if (!absent || !String(message).includes(`'${name}'`)) throw error
    throw new ProbeError(
      'internal',
      `the driver ${name} is not installed here: npm install ${name}, beside svc (add -g where svc was installed with -g)`,
    )
  }
}
