"""Runs a program on a terminal of its own, follows steps, and prints what the terminal showed.

Usage: typed.py COLUMNS ROWS PROGRAM…, with a JSON list of steps on standard input. Each step waits for a regular
expression in what was shown since the step before, then does one thing: {"type": TEXT}, {"signal": NAME} to the
programs in the foreground, {"resize": [COLUMNS, ROWS]}, or {"close": true}, which takes the terminal away. Prints one
JSON object: the output in pieces, one for each step and one for the rest, and how the program ended.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

columns, rows = int(sys.argv[1]), int(sys.argv[2])
steps = json.load(sys.stdin)
# The bound only ends a hang.
ends = time.monotonic() + 40


def resize(terminal, columns, rows):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


pid, terminal = pty.fork()
if pid == 0:
    resize(0, columns, rows)
    os.execvp(sys.argv[3], sys.argv[3:])
pieces, output, status = [], "", None
while time.monotonic() < ends:
    ready, _, _ = select.select([terminal], [], [], 0.05)
    if ready:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            data = b""
        if not data:
            break
        output += data.decode("utf8", "replace")
    if not steps or not re.search(steps[0][0], output, re.S):
        continue
    _, action = steps.pop(0)
    pieces.append(output)
    output = ""
    if "type" in action:
        os.write(terminal, action["type"].encode())
    elif "signal" in action:
        os.killpg(os.tcgetpgrp(terminal), getattr(signal, action["signal"]))
    elif "resize" in action:
        resize(terminal, *action["resize"])
    else:
        os.close(terminal)
        break
else:
    os.killpg(os.tcgetpgrp(terminal), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
_, status = os.waitpid(pid, 0)
print(json.dumps({"pieces": [*pieces, output], "left": len(steps), "code": os.waitstatus_to_exitcode(status)}))
