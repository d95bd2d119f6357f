#!/usr/bin/env bash
# Allure 3 does not decode the entities of a JUnit report: names and messages show `&lt;` where the test said `<`.
#
# Expected before the run: names as an XML parser reads them: `R&D`, `a < b`, `is "less"`. Most people expect the same.
#
# Seen on 2026-11-30 with allure 3.18.0: the suite is `R&amp;D`, the class `a &lt; b`, the test `is &quot;less&quot;` and
# the message `1 &lt; 2`, as they stand in the file. Two writers that escape differently (`"` and `&quot;`) give one test
# two identities, so that its history begins anew.
#
# Needs node and npm. Fails if the version, the behaviour or the output changes.
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"

echo '{"private":true,"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts --save-exact allure@3.18.0

mkdir results
cat >results/report.xml <<'XML'
<testsuites>
  <testsuite name="R&amp;D" tests="1" failures="1">
    <testcase classname="a &lt; b" name="is &quot;less&quot;"><failure message="1 &lt; 2"/></testcase>
  </testsuite>
</testsuites>
XML
node_modules/.bin/allure generate results --output report >log 2>&1 || cat log

cat >show.mjs <<'JS'
import { readdirSync, readFileSync } from 'node:fs'
const folder = 'report/data/test-results'
for (const file of readdirSync(folder)) {
  const { name, labels, error } = JSON.parse(readFileSync(`${folder}/${file}`, 'utf8'))
  for (const label of labels) console.log(label.name, label.value)
  console.log('name', name)
  console.log('message', error.message)
}
JS
{
  echo "version $(node -p "require('./node_modules/allure/package.json').version")"
  node show.mjs
} | tee seen

diff - seen <<'EXPECTED' && echo 'as described'
version 3.18.0
suite R&amp;D
testClass a &lt; b
name is &quot;less&quot;
message 1 &lt; 2
EXPECTED
