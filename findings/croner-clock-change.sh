#!/usr/bin/env bash
# croner leaves out a day's runs when the clock is set forward, or not: it depends on how the minutes are written.
#
# Expected before the run: `30 2 * * *` runs at 03:00 on the day without 02:30, `*/30 2 * * *` not at all, and in autumn
# once and four times (claimed by a colleague); of `0,30 2 * * *` there was no guess. Most people expect it to be like
# `30 2 * * *`: both name fixed times.
#
# Seen on 2026-11-30 with croner 11.0.1, time zone Europe/Berlin, no 02:00 to 03:00 on 2026-03-29, and two of them on
# 2026-10-25: `30 2` runs at 03:00 and, in autumn, once. `*/30 2` and `0,30 2` do not run on that day, and run four times
# in autumn.
#
# Needs node and npm. Fails if the version, the behaviour or the output changes.
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"

echo '{"private":true,"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts --save-exact croner@11.0.1

cat >next.mjs <<'JS'
import { Cron } from 'croner'
const day = (pattern, date) => {
  const job = new Cron(pattern, { timezone: 'Europe/Berlin', paused: true })
  const runs = []
  const end = Date.parse(`${date}T21:00:00Z`)
  for (let at = job.nextRun(new Date(end - 22 * 3_600_000)); at.getTime() < end; at = job.nextRun(at))
    runs.push(at.toISOString().slice(11, 16))
  return runs.join(' ') || 'none'
}
for (const pattern of ['30 2 * * *', '0,30 2 * * *', '*/30 2 * * *'])
  console.log(pattern, '| spring, UTC:', day(pattern, '2026-03-29'), '| autumn, UTC:', day(pattern, '2026-10-25'))
JS
{
  echo "version $(node -p "require('./node_modules/croner/package.json').version")"
  node next.mjs
} | tee seen

diff - seen <<'EXPECTED' && echo 'as described'
version 11.0.1
30 2 * * * | spring, UTC: 01:00 | autumn, UTC: 00:30
0,30 2 * * * | spring, UTC: none | autumn, UTC: 00:00 00:30 01:00 01:30
*/30 2 * * * | spring, UTC: none | autumn, UTC: 00:00 00:30 01:00 01:30
EXPECTED
