import { boolean } from '@oclif/core/flags'
import { text } from './flags.ts'

/** Where a command acts, and with what. */
export const connectionFlags = {
  server: text('server')({
    description: 'URL of a server (SVC_SERVER); without it the profile, else this machine',
    helpGroup: 'TARGET',
  }),
  profile: text('profile')({ description: 'Act at the server of this profile (SVC_PROFILE)', helpGroup: 'TARGET' }),
  local: boolean({ description: 'Run here, whatever SVC_SERVER and the profile say', helpGroup: 'TARGET' }),
  store: text('store')({ description: "The embedded store's file (SVC_STORE)", helpGroup: 'TARGET' }),
  config: text('config')({ description: 'The svc.yaml to use (SVC_CONFIG)', helpGroup: 'TARGET' }),
  'ca-file': text('ca-file')({
    description: 'PEM file of a private certificate authority (SVC_CA_FILE)',
    helpGroup: 'TARGET',
  }),
  'insecure-http': boolean({ description: 'Allow plain http to another machine', helpGroup: 'TARGET' }),
} as const
