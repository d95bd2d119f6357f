import { openAdmin, type StoreSession } from './admin.ts'
import { SvcCommand } from './base.ts'

/** A command that administers this machine's store. */
export abstract class StoreCommand extends SvcCommand {
  /** Opens the store for `work`, names it in failures, and closes it. */
  protected async inStore<R>(
    flags: { readonly store?: string | undefined },
    signal: AbortSignal,
    work: (store: StoreSession) => Promise<R>,
  ): Promise<R> {
    const session = await openAdmin(flags, process.env, signal)
    this.target = session.admin.store
    await this.warnOfOtherStore(session.admin.store)
    try {
      return await work(session)
    } finally {
      await session.close()
    }
  }

  /** The answer: one JSON value, or a text, which in a pipe may be no line at all. */
  protected answer(json: boolean, value: unknown, text: string): void {
    if (json) this.print(JSON.stringify(value))
    else if (text !== '') this.print(text)
  }
}
