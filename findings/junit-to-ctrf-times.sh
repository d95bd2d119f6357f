#!/usr/bin/env bash
# junit-to-ctrf leaves out when the tests ran: `start` and `stop` of its summary are 0, whatever the report says.
#
# Expected before the run, and before reading its source: the timestamp of the suite and the end after its duration, in
# milliseconds since 1970. Most people expect the same: the difference of the two is the duration of the run.
#
# Seen on 2026-11-30 with junit-to-ctrf 0.0.14: a suite that began at 2026-03-01 03:00 and took 90 s has start 0 and
# stop 0; only the durations of its tests are there.
#
# Needs node and npm. Fails if the version, the behaviour or the output changes.
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"

echo '{"private":true,"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts --save-exact junit-to-ctrf@0.0.14

cat >report.xml <<'XML'
<testsuites time="90">
  <testsuite name="backups" tests="2" timestamp="2026-03-01T03:00:00" time="90">
    <testcase classname="backups" name="full" time="89.5"/>
    <testcase classname="backups" name="verify" time="0.5"/>
  </testsuite>
</testsuites>
XML
cat >read.mjs <<'JS'
import { convertJUnitToCTRFReport } from 'junit-to-ctrf'
const { results } = await convertJUnitToCTRFReport('report.xml')
console.log('start', results.summary.start, 'stop', results.summary.stop)
for (const { name, duration } of results.tests) console.log(name, duration)
JS
{
  echo "version $(node -p "require('./node_modules/junit-to-ctrf/package.json').version")"
  node read.mjs
} | tee seen

diff - seen <<'EXPECTED' && echo 'as described'
version 0.0.14
start 0 stop 0
full 89500
verify 500
EXPECTED
