#!/usr/bin/env bash
# The two client libraries of ServiceStack's interface read and write a TimeSpan (an XSD duration) differently.
#
# Expected before the run: the TypeScript and the Python client write 86,400 s and 90,061.5 s alike, read back what they
# write, and keep the sign of a negative duration, which XSD 1.0 section 3.2.6 puts in front: -PT1S.
#
# Seen on 2026-11-29, with the packages below on Node 20 and 24 and Python 3.11:
#   @servicestack/client 2.1.13   86400 s  -> P1D            -> 86400 s
#                                 -PT1S    -> 1 s            (the sign is lost)
#                                 -1 s     -> P              (not a duration)
#   servicestack 0.1.15 (Python)  86400 s  -> P1.0DT24H      (days as a decimal; the hours are not reduced by the days)
#                                 P1.0DT24H -> ValueError    (it cannot read what it wrote)
#                                 P1D      -> 1 day          (it reads what the TypeScript client writes)
#                                 -PT1S    -> ValueError
# Thus a duration of a day or more from the Python client is not a valid XSD duration, and a negative duration survives in
# neither. A service that takes durations from existing clients should accept decimal days, or use seconds.
#
# Needs node, npm and python3 with venv. Fails if a version, the behaviour or the output changes.
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"

echo '{"private":true,"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts --save-exact @servicestack/client@2.1.13
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check servicestack==0.1.15

cat >durations.mjs <<'JS'
import { fromXsdDuration, toXsdDuration } from '@servicestack/client'
console.log('ts write 86400', toXsdDuration(86400))
console.log('ts write 90061.5', toXsdDuration(90061.5))
console.log('ts read P1D', fromXsdDuration('P1D'))
console.log('ts read -PT1S', fromXsdDuration('-PT1S'))
console.log('ts write -1', toXsdDuration(-1))
JS
cat >durations.py <<'PY'
from datetime import timedelta
from importlib.metadata import version
from servicestack.utils import from_timespan, to_timespan

def read(text):
    try:
        return from_timespan(text).total_seconds()
    except Exception as error:
        return type(error).__name__

print('python version', version('servicestack'))
day = to_timespan(timedelta(days=1))
print('python write 86400', day)
print('python write 90061.5', to_timespan(timedelta(seconds=90061.5)))
print('python read its own 86400', read(day))
print('python read P1D', read('P1D'))
print('python read -PT1S', read('-PT1S'))
PY

{
  echo "ts version $(node -p "require('./node_modules/@servicestack/client/package.json').version")"
  node durations.mjs
  python/bin/python durations.py
} | tee seen

diff - seen <<'EXPECTED' && echo 'as described'
ts version 2.1.13
ts write 86400 P1D
ts write 90061.5 P1DT1H1M1.5S
ts read P1D 86400
ts read -PT1S 1
ts write -1 P
python version 0.1.15
python write 86400 P1.0DT24H
python write 90061.5 P1.0DT25H1M1.5S
python read its own 86400 ValueError
python read P1D 86400.0
python read -PT1S ValueError
EXPECTED
