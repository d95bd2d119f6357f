/** When a change of svc.yaml is put into force while `svc serve` runs. */
export {
  afterLook,
  afterNewFiles,
  afterRefusal,
  type ConfigWatch,
  type Consequences,
  isSettled,
  isToRead,
  lookEveryMs,
  newConfigWatch,
  overdue,
  reasonToWait,
  type Stamp,
} from './config-watch.ts'
