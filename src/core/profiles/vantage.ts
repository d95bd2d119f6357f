import { ofSteps, type Profile, placeholder } from './profile.ts'

const rest = `http://${placeholder('host')}:${placeholder('port')}/Rest`
const signIn = {
  username: placeholder('username'),
  password: placeholder('password'),
  insecureHttp: placeholder('insecureHttp'),
} as const
/** Every response has a Date header. One monitor checks the clock, which is the same for all. */
const common = { ...signIn, dependsOn: ['port'], clock: 'off' } as const

/**
 * Checks based on public clients of Vantage's REST interface. Only GETs, except for a test job if one is given: by PUT
 * and POST, the same interface stops jobs and shuts machines down. The test job is left for Vantage to expire: a DELETE
 * that comes too early might stop it.
 */
export default {
  title: 'Telestream Vantage, through its REST interface',
  doc: 'An inference from public client code, tested only against a simulated server. Sends only GET requests and, with allowWrites, one POST that submits the test job; never a request that stops or removes anything.',
  parameters: {
    host: { type: 'text', required: true, doc: 'Host name or address of the domain controller' },
    port: { type: 'integer', default: 8676, min: 1, max: 65_535, doc: 'Port of the REST interface' },
    username: { type: 'text', doc: 'User for HTTP basic authentication, with password, if a proxy requires it' },
    password: { type: 'secret', doc: 'Password of the user' },
    insecureHttp: { type: 'flag', default: false, doc: 'Send the password over http:// even to another machine' },
    version: { type: 'text', default: '/./', doc: 'Expected version: text, /pattern/ or comparison' },
    services: { type: 'integer', default: 1, min: 0, doc: 'Minimum number of services' },
    machines: { type: 'integer', default: 1, min: 0, doc: 'Minimum number of machines' },
    load: { type: 'threshold', unit: 'ratio', default: { warn: 90 }, doc: 'Maximum load of the domain, in percent' },
    storeFree: {
      type: 'threshold',
      unit: 'ratio',
      default: { warn: 20, limit: 10 },
      doc: 'Minimum free space of each store, in percent',
    },
    failedJobs: {
      type: 'threshold',
      unit: 'count',
      default: { warn: 0, limit: 5 },
      doc: 'Maximum number of failed jobs of a workflow within the last hour',
    },
    activeFor: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: '4h', limit: '12h' },
      doc: 'Maximum time since an active job started',
    },
    testWorkflow: {
      type: 'text',
      needs: ['allowWrites', 'testBody'],
      doc: 'Identifier of a test workflow: every Advanced run submits a job to it, which must complete',
    },
    testBody: {
      type: 'text',
      needs: ['testWorkflow'],
      doc: `The job: the response of GET /Rest/Workflows/{identifier}/JobInputs, with a short clip in its Files; \${probe} is a unique name for the run`,
    },
    allowWrites: { type: 'flag', default: false, doc: 'Submit that job; otherwise svc sends only GET requests' },
    testComplete: { type: 'text', default: '5', doc: 'State of a completed job' },
    testFailed: { type: 'text', default: '4', doc: 'State of a failed job' },
    testTimeout: {
      type: 'duration',
      default: '40s',
      doc: 'Maximum time for the test job; a run ends after 45 s, unless svc health has a longer --timeout',
    },
    folder: { type: 'text', doc: 'Path of a watch folder on this machine' },
    folderAge: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: '30m', limit: '2h' },
      doc: 'Maximum age of the oldest file in the watch folder',
    },
  },
  monitors: [
    { kind: 'tcp', name: 'port', host: placeholder('host'), port: placeholder('port') },
    {
      kind: 'http',
      name: 'online',
      ...common,
      clock: { warn: '2s', limit: '30s' },
      url: `${rest}/Domain/Online`,
      judgeFrom: 'Basic',
      json: { '$.Online': 'true' },
    },
    {
      kind: 'http',
      name: 'version',
      ...common,
      depth: 'Standard',
      url: `${rest}/Domain/Version`,
      version: { expected: placeholder('version'), json: '$.Version' },
    },
    {
      kind: 'http',
      name: 'load',
      ...common,
      depth: 'Standard',
      url: `${rest}/Domain/Load/CPU`,
      measure: [{ name: 'load in percent', path: '$.Load', atMost: placeholder('load') }],
    },
    {
      kind: 'http',
      name: 'services',
      ...common,
      depth: 'Standard',
      timeout: '20s',
      url: `${rest}/Services`,
      measure: [{ name: 'services', path: '$.Services[*]', least: { limit: placeholder('services') } }],
      links: [
        {
          name: 'service',
          path: '$.Services[*].Identifier',
          url: `${rest}/Services/{}/Metrics`,
          most: 50,
          json: { '$.Metric.AcceptingWork': 'true' },
          measure: [
            {
              name: 'sessions refused for lack of a licence',
              path: '$.Metric.FailedLicenseCount',
              atMost: { warn: 0 },
            },
          ],
        },
      ],
    },
    {
      kind: 'http',
      name: 'machines',
      ...common,
      depth: 'Standard',
      url: `${rest}/Machines`,
      measure: [{ name: 'machines', path: '$.Machines[*]', least: { limit: placeholder('machines') } }],
    },
    {
      kind: 'http',
      name: 'stores',
      ...common,
      depth: 'Standard',
      url: `${rest}/Stores`,
      measure: [
        { name: 'stores offline', path: '$.Stores[*]', where: { Offline: 'true' }, count: { limit: 0 } },
        {
          name: 'free space of a store',
          path: '$.Stores[*]',
          where: { Offline: 'false' },
          value: 'AvailableSpace',
          of: 'TotalSpace',
          atLeast: placeholder('storeFree'),
        },
      ],
    },
    {
      kind: 'http',
      name: 'failed jobs',
      ...common,
      depth: 'Advanced',
      url: `${rest}/Workflows`,
      links: [
        {
          name: 'failed jobs of workflow',
          path: '$.Workflows[*].Identifier',
          url: `${rest}/Workflows/{}/Jobs?filter=Failed`,
          most: 50,
          measure: [
            {
              name: 'failed within the last hour',
              path: '$.Jobs[*]',
              time: 'Updated',
              last: '1h',
              count: placeholder('failedJobs'),
            },
          ],
        },
      ],
    },
    {
      kind: 'http',
      name: 'active jobs',
      ...common,
      depth: 'Advanced',
      url: `${rest}/Workflows`,
      links: [
        {
          name: 'active jobs of workflow',
          path: '$.Workflows[*].Identifier',
          url: `${rest}/Workflows/{}/Jobs?filter=Active`,
          most: 50,
          measure: [{ name: 'active jobs', path: '$.Jobs[*]', time: 'Started', age: placeholder('activeFor') }],
        },
      ],
    },
    {
      kind: 'http-steps',
      name: 'test job',
      when: ['testWorkflow'],
      dependsOn: ['port'],
      depth: 'Advanced',
      timeout: placeholder('testTimeout'),
      ...signIn,
      signed: true,
      allowWrites: placeholder('allowWrites'),
      url: rest,
      values: { workflow: placeholder('testWorkflow') },
      show: ['job'],
      steps: [
        {
          name: 'submit',
          method: 'POST',
          path: `/Workflows/${ofSteps('workflow')}/Submit`,
          body: placeholder('testBody'),
          capture: { job: '$.JobIdentifier' },
        },
        {
          name: 'job',
          path: `/Jobs/${ofSteps('job')}`,
          until: { expect: { '$.Job.State': placeholder('testComplete') }, every: '1s', most: 1_000 },
          fails: [{ expect: { '$.Job.State': placeholder('testFailed') }, says: 'the test job failed' }],
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
  ],
} as const satisfies Profile
