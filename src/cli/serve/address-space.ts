import { Fault } from '../../core/base/errors.ts'
import { machine } from '../io/process.ts'

/**
 * Bytes of address space that a server needs: 1.81 GB at its peak with all threads, most of which V8 reserves and never
 * uses.
 */
const neededAddressSpace = 1_900_000_000

/** Throws Local if V8 would end the process later, without a message, because it cannot reserve address space. */
export function refuseSmallAddressSpace(): void {
  const limit = machine.addressSpaceLimit()
  if (limit === undefined || limit >= neededAddressSpace) return
  throw new Fault(
    'Local',
    `svc serve needs ${neededAddressSpace / 1e6} MB of address space, and its limit is ${Math.floor(limit / 1e6)} MB`,
    {
      hints: [
        'Raise the limit: ulimit -v unlimited, or LimitAS=infinity in the systemd unit. MemoryMax= limits memory.',
      ],
    },
  )
}
