#!/usr/bin/env bash
# nagiosplugin: a figure without limits is CRITICAL if it is negative.
#
# Expected before the run: CRITICAL for -5 without any limit, since a range without an end begins at 0. Most people expect
# OK: without a limit there is nothing to exceed.
#
# Seen on 2026-11-30 with nagiosplugin 1.4.0: ScalarContext('temperature') makes -5 CRITICAL, "outside range 0:", though
# its performance data has no limit, and with critical='~:20' alone it is a WARNING, for the same reason.
#
# Needs python3 with venv. Fails if the version, the behaviour or the output changes.
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check nagiosplugin==1.4.0

cat >plugin.py <<'PY'
from importlib.metadata import version
import nagiosplugin

class Outside(nagiosplugin.Resource):
    def probe(self):
        return [nagiosplugin.Metric("temperature", -5)]

print("version", version("nagiosplugin"))
for limits in ({}, {"critical": "~:20"}, {"warning": "~:10", "critical": "~:20"}):
    check = nagiosplugin.Check(Outside(), nagiosplugin.ScalarContext("temperature", **limits))
    check()
    print(limits, "exit", check.exitcode, check.summary_str, check.perfdata)
PY
python/bin/python plugin.py | tee seen

diff - seen <<'EXPECTED' && echo 'as described'
version 1.4.0
{} exit 2 temperature is -5 (outside range 0:) ['temperature=-5']
{'critical': '~:20'} exit 1 temperature is -5 (outside range 0:) ['temperature=-5;;~:20']
{'warning': '~:10', 'critical': '~:20'} exit 0 temperature is -5 ['temperature=-5;~:10;~:20']
EXPECTED
