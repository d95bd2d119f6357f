import type { Delivery, Notice } from '../receiver.ts'
import { withReceipt } from './message.ts'

/** How many notices are remembered that a receiver accepted before it demanded a pause. */
const maxAccepted = 10_000
/** Statuses that are about one notice: any other refusal would apply to each. */
const ofOneNotice = [400, 413, 422]

/** The answer to one request. `status`: undefined without an answer. */
export type Posted = { readonly delivery: Delivery; readonly status?: number | undefined }

/**
 * Sends a request for each notice of a batch. One that is refused does not keep the others from arriving, and none that
 * was accepted before a pause is sent again: receivers limit the number of requests.
 */
export class OneByOne {
  readonly #accepted = new Set<string>()

  async send(notices: readonly Notice[], post: (notice: Notice) => Promise<Posted>): Promise<Delivery> {
    const refused: { readonly id: string; readonly message: string }[] = []
    let receipt = ''
    for (const notice of notices) {
      if (this.#accepted.has(notice.id)) continue
      const { delivery, status = 0 } = await post(notice)
      if (delivery.what === 'later') {
        const isPerhapsReceived = delivery.isPerhapsReceived || notices.some(({ id }) => this.#accepted.has(id))
        return { ...delivery, isPerhapsReceived }
      }
      if (delivery.what === 'accepted') {
        receipt = `status ${status}`
        if (this.#accepted.size < maxAccepted) this.#accepted.add(notice.id)
        continue
      }
      if (!ofOneNotice.includes(status)) return delivery
      refused.push({ id: notice.id, message: delivery.message })
    }
    this.#accepted.clear()
    if (refused.length === 0) return withReceipt(notices, { what: 'accepted' }, () => receipt)
    const message = [...new Set(refused.map((one) => one.message))].join('; ')
    return { what: 'refused', message, ids: refused.map(({ id }) => id), fault: 'data' }
  }
}
