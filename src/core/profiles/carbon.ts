import { type Profile, placeholder } from './profile.ts'

const asks = (task: string, inner = '') => ({
  host: placeholder('host'),
  port: placeholder('port'),
  lead: 'CarbonAPIXML1 {length} ',
  send: `<?xml version="1.0" encoding="UTF-8"?><cnpsXML CarbonAPIVer="1.2" TaskType="${task}"${inner === '' ? '/>' : `>${inner}</cnpsXML>`}`,
  maxAnswer: '1MiB',
  dependsOn: ['port'],
})
const well = { '/Reply/@Success': '/^TRUE$/i' }

/**
 * Checks based on public clients of Carbon's XML over TCP. Queries only: never JobQueue, nor a JobCommand that changes
 * anything.
 */
export default {
  title: 'Carbon Coder, through its XML interface over TCP',
  doc: 'An inference from public client code, tested only against a simulated server. Sends only queries.',
  parameters: {
    host: { type: 'text', required: true, doc: 'Host name or address' },
    port: { type: 'integer', default: 1120, min: 1, max: 65_535, doc: 'Port of the XML interface' },
    node: { type: 'text', default: '127.0.0.1', doc: 'Address by which Carbon knows the node' },
    freeSlots: {
      type: 'threshold',
      unit: 'ratio',
      default: { warn: 1 },
      doc: 'Minimum number of free slots on the node',
    },
    freeSlotsFor: { type: 'duration', default: '15m', doc: 'How long there may be too few free slots' },
    waiting: { type: 'threshold', unit: 'count', default: { warn: 100 }, doc: 'Maximum number of waiting jobs' },
    failedJobs: {
      type: 'threshold',
      unit: 'count',
      default: { warn: 0, limit: 5 },
      doc: 'Maximum number of jobs that failed within the last hour',
    },
    runningFor: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: '4h', limit: '12h' },
      doc: 'Maximum time since a running job started',
    },
    folder: { type: 'text', doc: 'Path of a watch folder on this machine' },
    folderAge: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: '30m', limit: '2h' },
      doc: 'Maximum age of the oldest file in the watch folder',
    },
    scratch: { type: 'text', doc: 'Path of the scratch folder on this machine' },
    scratchAge: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: '1d' },
      doc: 'Maximum age of the oldest file in the scratch folder; the host block checks the disks',
    },
  },
  monitors: [
    { kind: 'tcp', name: 'port', host: placeholder('host'), port: placeholder('port') },
    { kind: 'tcp', name: 'version', ...asks('Version'), xml: { ...well, '/Reply/@Version': '/./' } },
    {
      kind: 'tcp',
      name: 'node',
      ...asks('NodeCommand', `<NodeCommand Command="GetServerNodeStatus" NodeIP="${placeholder('node')}"/>`),
      depth: 'Standard',
      xml: { ...well, '/Reply/ServerNodeStatus/@Enabled.DWD': '1' },
    },
    {
      kind: 'tcp',
      name: 'free slots',
      ...asks('NodeCommand', `<NodeCommand Command="GetServerNodeStatus" NodeIP="${placeholder('node')}"/>`),
      dependsOn: ['node'],
      depth: 'Standard',
      for: placeholder('freeSlotsFor'),
      measure: [
        { name: 'free slots', path: '/Reply/ServerNodeStatus/@FreeSlots.DWD', atLeast: placeholder('freeSlots') },
      ],
    },
    {
      kind: 'tcp',
      name: 'job list',
      ...asks('JobList'),
      depth: 'Standard',
      xml: { ...well, 'count(/Reply/JobList)': '1' },
    },
    {
      kind: 'tcp',
      name: 'jobs',
      ...asks('JobStatusList', '<Filter/><ListSettings/>'),
      maxAnswer: '4MiB',
      depth: 'Advanced',
      xml: { ...well, 'count(/Reply/JobStatusList)': '1' },
      measure: [
        {
          name: 'jobs failed within the last hour',
          path: '/Reply/JobStatusList/Job_*',
          where: { '@Status': '/^(ERROR|INVALID)$/i', '@CompletedTime_SCM': '/./' },
          time: '@CompletedTime_SCM',
          last: '1h',
          count: placeholder('failedJobs'),
        },
        {
          name: 'running jobs',
          path: '/Reply/JobStatusList/Job_*',
          where: { '@Status': '/^STARTED$/i' },
          time: '@StartTime_SCM',
          age: placeholder('runningFor'),
        },
        {
          name: 'waiting jobs',
          path: '/Reply/JobStatusList/Job_*',
          where: { '@Status': '/^QUEUED$/i' },
          count: placeholder('waiting'),
        },
      ],
    },
    {
      kind: 'file-age',
      name: 'watch folder',
      when: ['folder'],
      depth: 'Advanced',
      path: placeholder('folder'),
      age: placeholder('folderAge'),
    },
    {
      kind: 'file-age',
      name: 'scratch',
      when: ['scratch'],
      depth: 'Advanced',
      path: placeholder('scratch'),
      age: placeholder('scratchAge'),
    },
  ],
} as const satisfies Profile
