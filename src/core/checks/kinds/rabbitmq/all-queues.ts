import { count } from '../../../base/format.ts'
import { quote, sanitize } from '../../../base/net/text.ts'
import { MissingPrivilegeError } from '../../../base/probe-error.ts'
import { skipSetting, withoutSkipped } from '../../assert/skip.ts'
import { type CheckContext, fail, notChecked, ok, type Result, warn } from '../../engine/index.ts'
import {
  type Account,
  content,
  list,
  type Management,
  number,
  object,
  onManagement,
  setPermissions,
  setTags,
  words,
} from './management.ts'

/** A queue as the server finds it now, and not as its last statistics describe it. */
export type ListedQueue = ReturnType<typeof listedQueue>

type Listing = {
  readonly queues: readonly ListedQueue[]
  /** The number of queues that the account may see. */
  readonly total: number
}

/** States in which a queue serves clients; old servers report `idle`, and `flow` slows publishers down. */
export const serving: ReadonlySet<string> = new Set(['', 'running', 'idle', 'live', 'flow'])

const pageSize = 500
const maxPages = 10
const columns = 'name,vhost,state,node,members,online,messages_ready,messages_unacknowledged'
/** With both, the server asks the queues themselves, and needs no statistics, which may be 5 s old, or missing. */
const now = 'disable_stats=true&enable_queue_totals=true'

const listings = new WeakMap<Management, Promise<Listing>>()

/** The first 5,000 queues that the account may see, in all vhosts. Read once per connection. */
export function listQueues(management: Management): Promise<Listing> {
  const earlier = listings.get(management)
  if (earlier) return earlier
  const listing = readListing(management)
  listings.set(management, listing)
  return listing
}

async function readListing(management: Management): Promise<Listing> {
  const account = await management.account()
  const queues: ListedQueue[] = []
  for (let page = 1; ; page += 1) {
    const path = `queues?${now}&columns=${columns}&page=${page}&page_size=${pageSize}`
    const body = content(await account.get(path), 'queues', account)
    // A server that knows no pages sends the whole list.
    const items = Array.isArray(body) ? list(body) : list(object(body).items)
    queues.push(...items.map((one) => listedQueue(one, account)))
    const pages = number(object(body), 'page_count') ?? 1
    if (page >= Math.min(pages, maxPages)) {
      return { queues, total: Math.max(queues.length, number(object(body), 'filtered_count') ?? 0) }
    }
  }
}

function listedQueue(one: unknown, account: Account) {
  const json = object(one)
  const lengthOf = (value: unknown): number | undefined => (Array.isArray(value) ? value.length : undefined)
  return {
    name: words(json.name, account),
    vhost: words(json.vhost, account),
    /** Empty if it is not reported. */
    state: words(json.state, account, 32),
    /** The home node of a classic queue; empty for others. */
    node: words(json.node, account),
    /** The numbers of members, and of those that run. Undefined for a classic queue. */
    members: lengthOf(json.members),
    online: lengthOf(json.online),
    ready: number(json, 'messages_ready'),
    unacknowledged: number(json, 'messages_unacknowledged'),
  }
}

/** Maximum number of vhosts without a listed queue that are tried. */
const maxVhosts = 20

/** Why the account may not see the queues of a vhost, or undefined. An empty vhost looks the same in a list of all queues. */
async function hiddenVhost(management: Management, { queues }: Listing): Promise<MissingPrivilegeError | undefined> {
  const account = await management.account()
  const names = list(content(await account.get('vhosts?columns=name'), 'vhosts', account)).map((one) => {
    const { name } = object(one)
    return typeof name === 'string' ? name : ''
  })
  const user = sanitize(account.username, 64)
  if (names.length === 0)
    return new MissingPrivilegeError(`${quote(user, 64)} has no permission to read any vhost`, [setPermissions(user)])
  const listedVhosts = new Set(queues.map(({ vhost }) => vhost))
  const rest = names.filter((name) => !listedVhosts.has(sanitize(name, 80))).slice(0, maxVhosts)
  for (const name of rest) {
    const answer = await account.get(`queues/${encodeURIComponent(name)}?columns=name&page=1&page_size=1`)
    if (answer.status !== 401 && answer.status !== 403) continue
    const vhost = sanitize(name, 80)
    const message = `${quote(user, 64)} has no permission to read the queues of the vhost "${vhost}"`
    return new MissingPrivilegeError(message, [setPermissions(user).replace('<vhost>', vhost)])
  }
  return undefined
}

/** A name is unique only in its vhost. */
const nameOf = ({ name, vhost }: ListedQueue): string =>
  vhost === '/' ? quote(name, 80) : `${quote(name, 80)} in ${quote(vhost, 80)}`

/** Why a queue does not serve its clients, or undefined. */
export function whyUnserved({ state, node, members, online }: ListedQueue): string | undefined {
  if (members !== undefined && online !== undefined && members > 0 && online * 2 <= members) {
    return `${online} of ${count(members, 'member')} online, which is not a majority`
  }
  if (serving.has(state)) return undefined
  return `is ${quote(state, 32)}${node === '' ? '' : `, its home node is ${node}`}`
}

/** Maximum numbers of queues that a message and the details name. */
const [inMessage, inDetails] = [3, 20]

export const allQueues = onManagement({
  depth: 'Standard',
  results: {
    'all queues':
      'Each queue that the account may see, up to 5,000, is served by its home node, or by all members of a quorum queue or stream',
  },
  settings: { skipQueues: skipSetting('Queues of the check `all queues`') },
  privilege: `${setTags('<account>')}; ${setPermissions('<account>')}`,
  observe: async (management, _, context: CheckContext) => {
    context.step('all queues')
    const listing = await listQueues(management)
    return { ...listing, hidden: await hiddenVhost(management, listing) }
  },
  evaluate: ({ queues: all, total: listed, hidden }, { skipQueues }): Result<'all queues'> => {
    const check = 'all queues'
    const queues = withoutSkipped(all, ({ name }) => name, skipQueues)
    const total = listed - (all.length - queues.length)
    const lines = (why: (queue: ListedQueue) => string | undefined): readonly string[] =>
      queues.flatMap((queue) => {
        const reason = why(queue)
        return reason === undefined ? [] : [`${nameOf(queue)}: ${reason}`]
      })
    const unserved = lines(whyUnserved)
    const thinned = lines(({ members = 0, online = members }) =>
      online < members ? `${online} of ${count(members, 'member')} online` : undefined,
    )
    const of = `of ${count(queues.length, 'queue')}${total > queues.length ? ` (${total} in all)` : ''}`
    const more = (all: readonly string[]) => ({
      details: [...all.slice(0, inDetails), ...(hidden ? [hidden.message] : [])],
      measurement: { value: all.length, unit: 'count' } as const,
    })
    const first = (all: readonly string[]): string => {
      const rest = all.length - inMessage
      return `${all.slice(0, inMessage).join('; ')}${rest > 0 ? ` and ${rest} more` : ''}`
    }
    if (unserved.length > 0) {
      const message = `${unserved.length} ${of} not served: ${first(unserved)}`
      return fail(check, 'data', message, more(unserved))
    }
    if (thinned.length > 0)
      return warn(check, `${thinned.length} ${of} with members down: ${first(thinned)}`, more(thinned))
    if (hidden) return notChecked(check, 'permission', hidden.message, { details: hidden.details })
    const limited = total > queues.length ? `the first ${queues.length} of ${total} queues are served` : undefined
    return ok(check, limited ?? count(queues.length, 'queue is served', 'queues are served'), more([]))
  },
})
