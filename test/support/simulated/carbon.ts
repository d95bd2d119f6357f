import { type Peer, peer } from '../faults/faults.ts'

/** The state of a simulated Carbon Coder. Times are ms since 1970. */
export type CarbonState = {
  success: 'TRUE' | 'FALSE'
  enabled: 0 | 1
  freeSlots: number
  jobs: { Status: string; start?: number; completed?: number }[]
}

/** A node on which all is well. */
export const soundCarbon = (): CarbonState => ({
  success: 'TRUE',
  enabled: 1,
  freeSlots: 2,
  jobs: [
    { Status: 'STARTED', start: Date.now() - 60_000 },
    { Status: 'ERROR', completed: Date.now() - 5 * 3_600_000 },
  ],
})

const prefix = 'CarbonAPIXML1 '
const scm = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replace('T', ' ')

/** A server that speaks what public clients show of Carbon's XML over TCP: a name, a length, a document. */
export const carbon = (state: CarbonState): Promise<Peer> =>
  peer((socket) => {
    let input = ''
    socket.on('data', (chunk) => {
      input += chunk.toString('latin1')
      const [, length = '', xml = ''] = /^CarbonAPIXML1 (\d+) (.*)$/s.exec(input) ?? []
      if (!input.startsWith(prefix.slice(0, input.length))) socket.destroy()
      else if (length !== '' && xml.length >= Number(length)) {
        const reply = `<?xml version="1.0" encoding="UTF-8"?><Reply Success="${state.success}"${replyTo(xml, state)}`
        // In two pieces, and the connection stays: only the document itself tells that it is over.
        socket.write(`${prefix}${Buffer.byteLength(reply)} ${reply.slice(0, 40)}`)
        setImmediate(() => socket.write(reply.slice(40)))
      }
    })
  })

function replyTo(xml: string, state: CarbonState): string {
  const task = /TaskType="(\w+)"/.exec(xml)?.[1]
  if (task === 'Version') return ' Version="3.25.0.0"/>'
  if (task === 'NodeCommand') {
    return `><ServerNodeStatus Enabled.DWD="${state.enabled}" Slots.DWD="4" FreeSlots.DWD="${state.freeSlots}"/></Reply>`
  }
  if (task === 'JobList')
    return `><JobList>${state.jobs.map((_, n) => `<Job_${n} GUID="{${n}}"/>`).join('')}</JobList></Reply>`
  if (task !== 'JobStatusList') return ' Error="unknown task"/>'
  const jobs = state.jobs.map(({ Status, start, completed }, n) => {
    const times = [
      start === undefined ? '' : ` StartTime_SCM="${scm(start)}"`,
      completed === undefined ? '' : ` CompletedTime_SCM="${scm(completed)}"`,
    ]
    return `<Job_${n} Status="${Status}" Name="clip &amp; co"${times.join('')}><Failures><Errors/></Failures></Job_${n}>`
  })
  return `><JobStatusList>${jobs.join('')}</JobStatusList></Reply>`
}
