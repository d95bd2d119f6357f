import { ProbeError } from '../probe-error.ts'

/**
 * Loads a driver that an installation may omit because of its size. If it is missing, throws ProbeError `internal` with
 * the remedy.
 */
export async function optionalDriver<M>(name: string, load: () => Promise<M>): Promise<M> {
  try {
    return await load()
  } catch (error) {
    const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
    const absent = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
    // A missing dependency of the driver is another problem, and must not be reported as a missing driver.
    if (!absent || !String(message).includes(`'${name}'`)) throw error
    throw new ProbeError(
      'internal',
      `the driver ${name} is not installed: run npm install ${name} beside svc (with -g if svc was installed with -g)`,
    )
  }
}
