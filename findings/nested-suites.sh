#!/usr/bin/env bash
# A suite within a suite of a JUnit report: junit2html and Allure 3 leave its tests out, and the report turns green.
# junitparser and junit-to-ctrf read them.
#
# Expected before the run: junit2html shows two tests, one of which failed; of the others there was no guess. Most people
# expect the same of all: several of the schemas in use have suites within suites, and a reader without them would say so.
#
# Seen on 2026-11-30, the outer suite with a test that passes, the inner one with a test that fails:
#   junit2html 31.1.4       1 test, 0 failures
#   allure 3.18.0           1 test, passed
#   junitparser 5.0.3       2 tests, 1 failure
#   junit-to-ctrf 0.0.14    2 tests, 1 failure
#
# Needs node, npm and python3 with venv. Fails if a version, the behaviour or the output changes.
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"

echo '{"private":true,"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts --save-exact allure@3.18.0 junit-to-ctrf@0.0.14
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check junit2html==31.1.4 junitparser==5.0.3

mkdir results
cat >results/report.xml <<'XML'
<testsuites>
  <testsuite name="shop" tests="2" failures="1">
    <testcase classname="shop" name="opens"/>
    <testsuite name="shop › basket" tests="1" failures="1">
      <testcase classname="basket" name="adds"><failure message="502"/></testcase>
    </testsuite>
  </testsuite>
</testsuites>
XML

cat >read.py <<'PY'
from importlib.metadata import version
import junitparser
from junit2htmlreport import parser

path = "results/report.xml"
suites = parser.Junit(filename=path).suites
cases = [case for suite in suites for group in suite.classes.values() for case in group.cases]
print("junit2html", version("junit2html"), len(cases), len([case for case in cases if case.failed()]))
cases = [case for suite in junitparser.JUnitXml.fromfile(path) for case in suite]
print("junitparser", version("junitparser"), len(cases), len([case for case in cases if case.result]))
PY
cat >read.mjs <<'JS'
import { readFileSync } from 'node:fs'
import { convertJUnitToCTRFReport } from 'junit-to-ctrf'
const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8')).version
const path = 'results/report.xml'
const { stats } = JSON.parse(readFileSync('report/summary.json', 'utf8'))
console.log('allure', version('allure'), stats.total, stats.failed ?? 0)
const { results } = await convertJUnitToCTRFReport(path)
console.log('junit-to-ctrf', version('junit-to-ctrf'), results.summary.tests, results.summary.failed)
JS
node_modules/.bin/allure generate results --output report >log 2>&1 || cat log

{
  python/bin/python read.py
  node read.mjs
} | tee seen

diff - seen <<'EXPECTED' && echo 'as described'
junit2html 31.1.4 1 0
junitparser 5.0.3 2 1
allure 3.18.0 1 0
junit-to-ctrf 0.0.14 2 1
EXPECTED
