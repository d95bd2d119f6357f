#!/usr/bin/env bash
# nagiosplugin removes a `|` from the text of a plugin, joins what stood beside it, and adds a warning as a line.
#
# Expected before the run: an exception, as for a label with a quote. Most people expect that, or another character in its
# place.
#
# Seen on 2026-11-30 with nagiosplugin 1.4.0: "queue a|b is short" becomes "queue ab is short", which may be the name of
# another queue, and "warning: removed illegal characters (0x7c) from status line" is the second line; the exit code is 0.
#
# Needs python3 with venv. Fails if the version, the behaviour or the output changes.
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check nagiosplugin==1.4.0

cat >plugin.py <<'PY'
import nagiosplugin

class Queue(nagiosplugin.Resource):
    def probe(self):
        return [nagiosplugin.Metric("length", 1)]

class Text(nagiosplugin.Summary):
    def ok(self, results):
        return "queue a|b is short"

nagiosplugin.Check(Queue(), nagiosplugin.ScalarContext("length"), Text()).main()
PY
{
  python/bin/python -c 'from importlib.metadata import version; print("version", version("nagiosplugin"))'
  code=0
  python/bin/python plugin.py || code=$?
  echo "exit $code"
} | tee seen

diff - seen <<'EXPECTED' && echo 'as described'
version 1.4.0
QUEUE OK - queue ab is short | length=1
warning: removed illegal characters (0x7c) from status line
exit 0
EXPECTED
