import { type CheckContext, ok, type Result, warn } from '../../engine/index.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import { isOwnProcess } from '../../system/own-process.ts'

/** The answer of a run that another svc asked for: it asks no further svc, or two could ask each other for ever. */
export const declineForPeer = ({ calledByPeer }: Pick<CheckContext, 'calledByPeer'>): Result | undefined =>
  calledByPeer
    ? ok('health', 'not asked: another svc asked for this run, and a run so asked asks no further')
    : undefined

/** The answer where the address is that of this very process. */
export const declineOwnProcess = (
  { ip, port, address }: PeerAddress,
  { ownUrl }: Pick<CheckContext, 'ownUrl'>,
): Result | undefined =>
  isOwnProcess(ip, port, ownUrl?.())
    ? warn('health', `not asked: ${address} is this very process, which does not ask itself`)
    : undefined
