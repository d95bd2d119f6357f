import { figure, onDatabase, text } from '../../database/index.ts'
import { atMost, notChecked, type Result } from '../../engine/index.ts'

export const historyList = onDatabase({
  depth: 'Advanced',
  results: { 'history list': 'InnoDB removes old row versions as fast as they arise' },
  settings: {
    historyList: {
      type: 'threshold',
      unit: 'count',
      default: { warn: 100_000, limit: 1_000_000 },
      doc: 'Maximum length of the history list of InnoDB: transactions whose old row versions are not removed yet',
    },
  },
  privilege: 'GRANT PROCESS ON *.* TO <account>',
  observe: async ({ ask }) => {
    // MariaDB and MySQL differ in the column that says whether the figure is counted.
    const [row] = await ask("SELECT * FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'")
    const counted = row && Object.entries(row).find(([name]) => /^(enabled|status)$/i.test(name))?.[1]
    const value = row && Object.keys(row).find((name) => name.toLowerCase() === 'count')
    return {
      isCounted: counted === undefined ? undefined : /^(1|enabled)$/.test(text({ counted }, 'counted')),
      length: value === undefined ? undefined : figure(row, value),
    }
  },
  evaluate: ({ isCounted, length: value }, { historyList: threshold }): Result<'history list'> => {
    if (isCounted === false) {
      const details = ["next: SET GLOBAL innodb_monitor_enable = 'trx_rseg_history_len'"]
      return notChecked('history list', 'missing', 'the server does not count trx_rseg_history_len', { details })
    }
    const what = 'transactions in the history list:'
    const figure = 'the length of the history list'
    const details = [
      'a long transaction or a slow purge keeps old row versions: SELECT * FROM information_schema.innodb_trx',
    ]
    return atMost({ check: 'history list', what, figure, value, unit: 'count', threshold, details })
  },
})
