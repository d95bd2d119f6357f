#!/usr/bin/env bash
# nagiosplugin writes small and large figures with an exponent, which the plugin guidelines do not have.
#
# Expected before the run: `rate=5e-07`, as Python prints it. Most people expect digits: the guidelines say that a value
# is of the class [-0-9.], and a reader that follows them sees 5 with the unit "e-07".
#
# Seen on 2026-11-30 with nagiosplugin 1.4.0: 0.0000005 is `rate=5e-07`, 3e22 is `rate=3e+22`, and 0.1 + 0.2 is
# 0.30000000000000004 in the performance data and 0.3 in the text.
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

class Rate(nagiosplugin.Resource):
    def __init__(self, value):
        self.value = value
    def probe(self):
        return [nagiosplugin.Metric("rate", self.value)]

print("version", version("nagiosplugin"))
for value in (0.0000005, 3e22, 0.1 + 0.2):
    check = nagiosplugin.Check(Rate(value), nagiosplugin.ScalarContext("rate"))
    check()
    print(check.summary_str, "|", *check.perfdata)
PY
python/bin/python plugin.py | tee seen

diff - seen <<'EXPECTED' && echo 'as described'
version 1.4.0
rate is 5e-07 | rate=5e-07
rate is 3e+22 | rate=3e+22
rate is 0.3 | rate=0.30000000000000004
EXPECTED
