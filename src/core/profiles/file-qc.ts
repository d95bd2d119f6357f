import { type Profile, placeholder } from './profile.ts'

const signIn = {
  token: placeholder('token'),
  tokenHeader: placeholder('tokenHeader'),
  username: placeholder('user'),
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
            says: 'the job broke off, which says nothing of the clip',
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
  doc: 'An inference: no product of the kind documents its interface in public, so say where its answers hold what. Tried against a simulated server only.',
  parameters: {
    host: { type: 'text', required: true, doc: 'Host name or address' },
    port: { type: 'integer', default: 80, min: 1, max: 65_535, doc: 'Port of its web interface' },
    process: { type: 'text', doc: 'Name of its process, where it runs on this machine' },
    service: { type: 'text', doc: 'Name of its service, where it runs on this machine' },
    url: { type: 'url', doc: 'A page of its web interface' },
    user: { type: 'text', doc: 'User of HTTP basic sign-in, with password' },
    password: { type: 'secret', doc: 'Its password' },
    token: { type: 'secret', doc: 'A token instead' },
    tokenHeader: { type: 'text', doc: 'Header that takes the bare token, e.g. X-Api-Key' },
    licence: { type: 'url', doc: 'Where it tells of its licence, in JSON or XML' },
    licenceExpiry: { type: 'text', default: '$.expires', doc: 'Path of the date on which the licence ends' },
    licenceDays: {
      type: 'threshold',
      unit: 'days',
      default: { warn: 30, limit: 7 },
      doc: 'Days that the licence must have left',
    },
    seats: { type: 'text', default: '$.freeSeats', doc: 'Path of the number of free seats' },
    freeSeats: { type: 'threshold', unit: 'ratio', default: { limit: 1 }, doc: 'Seats that must be free' },
    workers: { type: 'url', doc: 'Where it lists its workers, in JSON or XML' },
    workerList: { type: 'text', default: '$.workers[*]', doc: 'Path of the workers' },
    workerState: { type: 'text', default: 'state', doc: 'Where, in a worker, its state stands' },
    workerOnline: {
      type: 'text',
      default: '/^(online|idle|busy|running)$/i',
      doc: 'What the state of a worker that is online is',
    },
    workersOnline: { type: 'threshold', unit: 'count', default: { limit: 1 }, doc: 'Workers that must be online' },
    tasks: { type: 'url', doc: 'Where it lists its tasks, in JSON or XML' },
    taskList: { type: 'text', default: '$.tasks[*]', doc: 'Path of the tasks' },
    taskState: { type: 'text', default: 'state', doc: 'Where, in a task, its state stands' },
    taskRunning: { type: 'text', default: '/^(running|processing)$/i', doc: 'What the state of a task under way is' },
    taskProgress: { type: 'text', default: 'updated', doc: 'Where, in a task, the date of its last progress stands' },
    withoutProgress: {
      type: 'threshold',
      unit: 'duration',
      default: { limit: '15m' },
      doc: 'How long ago the last progress of a task under way may be',
    },
    reports: {
      type: 'text',
      doc: 'The folder of its reports, as a path on this machine; its disk is judged by the host block',
    },
    goodClip: {
      type: 'text',
      needs: ['allowWrites', 'api'],
      doc: 'A clip known to be good, by its path as the analyser sees it: it must pass',
    },
    badClip: {
      type: 'text',
      needs: ['allowWrites', 'api'],
      doc: 'A clip known to be bad, likewise: it must not pass',
    },
    allowWrites: { type: 'flag', default: false, doc: 'Submit those clips, in every Advanced run; else nothing is' },
    api: { type: 'url', doc: 'What the paths of a job are below, e.g. https://qc.example.com/api' },
    submit: { type: 'text', default: '/jobs', doc: 'Path to which a job is sent by POST' },
    submitBody: {
      type: 'text',
      default: `{"file": "\${clip}"}`,
      doc: `What is sent, JSON or XML: \${clip} in it is the path of the clip`,
    },
    jobId: { type: 'text', default: '$.id', doc: `Path, in the answer to that, of the id of the job, for \${job}` },
    jobPath: { type: 'text', default: `/jobs/\${job}`, doc: 'Path at which the job is read' },
    jobState: { type: 'text', default: '$.state', doc: 'Path of its state' },
    jobFinished: {
      type: 'text',
      default: '/^(done|finished|completed?|passed|failed)$/i',
      doc: 'What the state of a job that has ended is',
    },
    jobBroken: {
      type: 'text',
      default: '/^(error|aborted|cancell?ed)$/i',
      doc: 'What the state of a job that broke off is',
    },
    jobVerdict: { type: 'text', default: '$.verdict', doc: 'Path of its verdict; it may be that of the state' },
    jobPassed: { type: 'text', default: '/^(pass|passed|ok|good)$/i', doc: 'What the verdict on a good clip is' },
    jobFailed: { type: 'text', default: '/^(fail|failed|bad)$/i', doc: 'What the verdict on a bad clip is' },
    jobRemove: {
      type: 'text',
      doc: `Path to which DELETE is sent when it is over, e.g. /jobs/\${job}; without it the job stays there`,
    },
    jobEvery: { type: 'duration', default: '2s', doc: 'How often its state is read' },
    clipTimeout: {
      type: 'duration',
      default: '40s',
      doc: 'How long one clip may take in all; a run ends after 45 s, unless svc health is given a longer --timeout',
    },
    folder: { type: 'text', doc: 'A watch folder, as a path on this machine' },
    folderAge: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: '30m', limit: '2h' },
      doc: 'How old the oldest file of the watch folder may be',
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
    clip('good clip', 'goodClip', 'jobFailed', 'jobPassed', 'a clip known to be good was found bad'),
    clip(
      'bad clip',
      'badClip',
      'jobPassed',
      'jobFailed',
      'a clip known to be bad passed: the analyser is blind, or its template lets everything pass',
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
