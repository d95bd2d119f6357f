import { corpus } from './corpus.ts'
import { neverMet } from './never-met.ts'

for (const group of neverMet('postgres', 'pgbouncer', 'mariadb', 'redis', 'sentinel', 'rabbitmq')) corpus(group)
