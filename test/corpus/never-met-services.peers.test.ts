import { corpus } from './corpus.ts'
import { keysOfNeverMet, neverMet } from './never-met.ts'

const data = new Set(['postgres', 'pgbouncer', 'mariadb', 'redis', 'sentinel', 'rabbitmq'])
for (const group of neverMet(...keysOfNeverMet.filter((key) => !data.has(key)))) corpus(group)
