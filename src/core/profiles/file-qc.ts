import { type Profile, placeholder } from './profile.ts'

const signIn = {
  token: placeholder('token'),
  tokenHeader: placeholder('tokenHeader'),
  username: placeholder('username'),
  password: placeholder('password'),
}

/** Checks one clip with a job of its own: waits for its end and compares the verdict with the known one. */
const clip = (name: string, path: string, opposite: string, verdict: string, says: string) =>
  ({
    kind: 'http-steps',
    name,
    when: [path],
    dependsOn: ['port'],
    depth: 'Advanced',
    timeout: placeholder('clipTimeout'),
    ...signIn,
    signed: true,
    allowWrites: placeholder('allowWrites'),
    url: placeholder('api'),
    values: { clip: placeholder(path) },
    show: ['job'],
    steps: [
      {
        name: 'submit',
        method: 'POST',
        path: placeholder('submit'),
        body: placeholder('submitBody'),
        capture: { job: placeholder('jobId') },
      },
      {
        name: 'job',
        path: placeholder('jobPath'),
        until: {
          expect: { [placeholder('jobState')]: placeholder('jobFinished') },
          every: placeholder('jobEvery'),
          most: 500,
        },
        fails: [
          {
            expect: { [placeholder('jobState')]: placeholder('jobBroken') },
            says: 'the job was aborted, which proves nothing about the clip',
          },
          // Only for a finished job: before that, the verdict is not final.
          {
            expect: {
              [placeholder('jobState')]: placeholder('jobFinished'),
              [placeholder('jobVerdict')]: placeholder(opposite),
            },
            says,
          },
        ],
        expect: { [placeholder('jobVerdict')]: placeholder(verdict) },
      },
    ],
    cleanup: [
      { when: ['jobRemove'], name: 'remove', method: 'DELETE', path: placeholder('jobRemove'), undoes: 'submit' },
    ],
  }) as const

/**
 * Quality control of media files. No product publishes its interface, so paths into its answers are parameters.
 * Parameters that are not given are not checked.
 */
export default {
  title: 'Quality control of media files',
  doc: 'An inference: no such product documents its interface publicly, so parameters define where its responses contain what. Tested only against a simulated server.',
  parameters: {
    host: { type: 'text', required: true, doc: 'Host name or address' },
    port: { type: 'integer', default: 80, min: 1, max: 65_535, doc: 'Port of its web interface' },
    process: { type: 'text', doc: 'Name of its process, if it runs on this machine' },
    service: { type: 'text', doc: 'Name of its service, if it runs on this machine' },
    url: { type: 'url', doc: 'A page of its web interface' },
    username: { type: 'text', doc: 'User for HTTP basic authentication, with password' },
    password: { type: 'secret', doc: 'Password of the user' },
    token: { type: 'secret', doc: 'Token, instead of username and password' },
    tokenHeader: { type: 'text', doc: 'Header for the bare token, e.g. X-Api-Key' },
    licence: { type: 'url', doc: 'URL of its licence information, in JSON or XML' },
    licenceExpiry: { type: 'text', default: '$.expires', doc: 'Path of the expiry date of the licence' },
    licenceDays: {
      type: 'threshold',
      unit: 'days',
      default: { warn: 30, limit: 7 },
      doc: 'Minimum remaining validity of the licence, in days',
    },
    seats: { type: 'text', default: '$.freeSeats', doc: 'Path of the number of free seats' },
    freeSeats: { type: 'threshold', unit: 'ratio', default: { limit: 1 }, doc: 'Minimum number of free seats' },
    workers: { type: 'url', doc: 'URL of its list of workers, in JSON or XML' },
    workerList: { type: 'text', default: '$.workers[*]', doc: 'Path of the workers' },
    workerState: { type: 'text', default: 'state', doc: 'Path of the state within a worker' },
    workerOnline: {
      type: 'text',
      default: '/^(online|idle|busy|running)$/i',
      doc: 'State of a worker that is online',
    },
    workersOnline: { type: 'threshold', unit: 'count', default: { limit: 1 }, doc: 'Minimum number of workers online' },
    tasks: { type: 'url', doc: 'URL of its list of tasks, in JSON or XML' },
    taskList: { type: 'text', default: '$.tasks[*]', doc: 'Path of the tasks' },
    taskState: { type: 'text', default: 'state', doc: 'Path of the state within a task' },
    taskRunning: { type: 'text', default: '/^(running|processing)$/i', doc: 'State of a task in progress' },
    taskProgress: { type: 'text', default: 'updated', doc: 'Path of the date of the last progress within a task' },
    withoutProgress: {
      type: 'threshold',
      unit: 'duration',
      default: { limit: '15m' },
      doc: 'Maximum time since the last progress of a task',
    },
    reports: {
      type: 'text',
      doc: 'Path of the folder of its reports on this machine; the host block checks its disk',
    },
    goodClip: {
      type: 'text',
      needs: ['allowWrites', 'api'],
      doc: 'Path of a good clip, as the analyser sees it: the clip must pass',
    },
    badClip: {
      type: 'text',
      needs: ['allowWrites', 'api'],
      doc: 'Path of a bad clip, as the analyser sees it: the clip must not pass',
    },
    allowWrites: {
      type: 'flag',
      default: false,
      doc: 'Submit these clips in every Advanced run; otherwise svc submits nothing',
    },
    api: { type: 'url', doc: 'Base URL for the paths of a job, e.g. https://qc.example.com/api' },
    submit: { type: 'text', default: '/jobs', doc: 'Path to which svc sends a job by POST' },
    submitBody: {
      type: 'text',
      default: `{"file": "\${clip}"}`,
      doc: `Body of that request, JSON or XML; \${clip} is the path of the clip`,
    },
    jobId: { type: 'text', default: '$.id', doc: `Path of the job ID in the response, for \${job}` },
    jobPath: { type: 'text', default: `/jobs/\${job}`, doc: 'Path at which svc reads the job' },
    jobState: { type: 'text', default: '$.state', doc: 'Path of the state of the job' },
    jobFinished: {
      type: 'text',
      default: '/^(done|finished|completed?|passed|failed)$/i',
      doc: 'State of a finished job',
    },
    jobBroken: {
      type: 'text',
      default: '/^(error|aborted|cancell?ed)$/i',
      doc: 'State of an aborted job',
    },
    jobVerdict: {
      type: 'text',
      default: '$.verdict',
      doc: 'Path of the verdict; can be the same as that of the state',
    },
    jobPassed: { type: 'text', default: '/^(pass|passed|ok|good)$/i', doc: 'Verdict for a good clip' },
    jobFailed: { type: 'text', default: '/^(fail|failed|bad)$/i', doc: 'Verdict for a bad clip' },
    jobRemove: {
      type: 'text',
      doc: `Path to which svc sends DELETE afterwards, e.g. /jobs/\${job}; without it, the job remains there`,
    },
    jobEvery: { type: 'duration', default: '2s', doc: 'Interval between reads of the state' },
    clipTimeout: {
      type: 'duration',
      default: '40s',
      doc: 'Maximum total time for one clip; a run ends after 45 s, unless svc health has a longer --timeout',
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
    { kind: 'service', name: 'service', when: ['service'], service: placeholder('service') },
    { kind: 'process', name: 'process', when: ['process'], executable: placeholder('process') },
    { kind: 'http', name: 'web', when: ['url'], dependsOn: ['port'], ...signIn, url: placeholder('url') },
    {
      kind: 'http',
      name: 'licence',
      when: ['licence'],
      dependsOn: ['port'],
      depth: 'Standard',
      ...signIn,
      url: placeholder('licence'),
      measure: [
        { name: 'licence', path: placeholder('licenceExpiry'), time: '.', left: placeholder('licenceDays') },
        { name: 'free seats', path: placeholder('seats'), atLeast: placeholder('freeSeats') },
      ],
    },
    {
      kind: 'http',
      name: 'workers',
      when: ['workers'],
      dependsOn: ['port'],
      depth: 'Standard',
      ...signIn,
      url: placeholder('workers'),
      measure: [
        {
          name: 'workers online',
          path: placeholder('workerList'),
          where: { [placeholder('workerState')]: placeholder('workerOnline') },
          least: placeholder('workersOnline'),
        },
      ],
    },
    {
      kind: 'http',
      name: 'tasks',
      when: ['tasks'],
      dependsOn: ['port'],
      depth: 'Advanced',
      ...signIn,
      url: placeholder('tasks'),
      measure: [
        {
          name: 'tasks without progress',
          path: placeholder('taskList'),
          where: { [placeholder('taskState')]: placeholder('taskRunning') },
          time: placeholder('taskProgress'),
          age: placeholder('withoutProgress'),
        },
      ],
    },
    clip('good clip', 'goodClip', 'jobFailed', 'jobPassed', 'a good clip was rated bad'),
    clip(
      'bad clip',
      'badClip',
      'jobPassed',
      'jobFailed',
      'a bad clip passed: the analyser does not work, or its template accepts everything',
    ),
    {
      kind: 'file-age',
      name: 'reports',
      when: ['reports'],
      depth: 'Standard',
      path: placeholder('reports'),
      age: 'off',
    },
    {
      kind: 'file-age',
      name: 'watch folder',
      when: ['folder'],
      depth: 'Standard',
      path: placeholder('folder'),
      age: placeholder('folderAge'),
    },
  ],
} as const satisfies Profile
