#!/usr/bin/env bash
# xunit-viewer has a status "system-err" for a test that passed and wrote to its standard error.
#
# Expected before the run: the status "system-err", as its source suggests. Most people expect "passed": system-err is
# output, as system-out is, and says nothing about the result.
#
# Seen on 2026-11-30 with xunit-viewer 10.6.1: a test with system-out alone, or with system-out before system-err, is
# "passed"; with system-err alone, or first, it is "system-err", which no filter of the page shows as passed.
#
# Needs node and npm. Fails if the version, the behaviour or the output changes.
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"

echo '{"private":true,"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts --save-exact xunit-viewer@10.6.1

cat >report.xml <<'XML'
<testsuites>
  <testsuite name="disks" tests="4">
    <testcase classname="disks" name="out"><system-out>41 % free</system-out></testcase>
    <testcase classname="disks" name="err"><system-err>slow</system-err></testcase>
    <testcase classname="disks" name="out, err"><system-out>41 % free</system-out><system-err>slow</system-err></testcase>
    <testcase classname="disks" name="err, out"><system-err>slow</system-err><system-out>41 % free</system-out></testcase>
  </testsuite>
</testsuites>
XML
cat >read.mjs <<'JS'
import { readFileSync } from 'node:fs'
import describe from 'xunit-viewer/src/cli/get-description.js'
import parse from 'xunit-viewer/src/cli/parse.js'
const report = await parse(readFileSync('report.xml', 'utf8'))
for (const { tests } of Object.values(report.suites))
  for (const name of ['out', 'err', 'out, err', 'err, out'])
    console.log(`${name}: ${Object.values(tests).find((test) => test.name === name)?.status}`)
console.log(describe(report))
JS
{
  echo "version $(node -p "require('./node_modules/xunit-viewer/package.json').version")"
  node read.mjs
} | tee seen

diff - seen <<'EXPECTED' && echo 'as described'
version 10.6.1
out: passed
err: system-err
out, err: passed
err, out: system-err
2 passed, 2 system-err
EXPECTED
