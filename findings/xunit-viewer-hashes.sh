#!/usr/bin/env bash
# xunit-viewer knows a test by a 32-bit hash of its name and class name: two tests with the same hash are one.
#
# Expected before the run: one test, as its source suggests. Most people expect two tests, one of which failed, because
# their names differ.
#
# Seen on 2026-11-30 with xunit-viewer 10.6.1: the tests "Aa" (failed) and "BB" (passed) of one class have the same hash,
# the later one wins, and the page says "1 passed".
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
  <testsuite name="columns" tests="2" failures="1">
    <testcase classname="columns" name="Aa"><failure message="empty"/></testcase>
    <testcase classname="columns" name="BB"/>
  </testsuite>
</testsuites>
XML
cat >read.mjs <<'JS'
import { readFileSync } from 'node:fs'
import describe from 'xunit-viewer/src/cli/get-description.js'
import parse from 'xunit-viewer/src/cli/parse.js'
const report = await parse(readFileSync('report.xml', 'utf8'))
console.log(Object.values(report.suites).flatMap(({ tests }) => Object.values(tests)).length, 'test')
console.log(describe(report))
JS
{
  echo "version $(node -p "require('./node_modules/xunit-viewer/package.json').version")"
  node read.mjs
} | tee seen

diff - seen <<'EXPECTED' && echo 'as described'
version 10.6.1
1 test
1 passed
EXPECTED
