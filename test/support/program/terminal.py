"""Runs a command whose standard error is a terminal of its own, driven by lines on standard input.

The first line of output is the command's process id. `read` copies what the terminal shows to
standard output from then on, `off` and `on` are ctrl-S and ctrl-Q. Without `read` nobody takes
anything from the terminal. Ends with the command's exit code.
"""

import os
import pty
import select
import subprocess
import sys
import termios

master, slave = pty.openpty()
attributes = termios.tcgetattr(slave)
attributes[1] &= ~termios.OPOST
termios.tcsetattr(slave, termios.TCSANOW, attributes)
child = subprocess.Popen(
    sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave, start_new_session=True
)
print(child.pid, flush=True)
reading = False
commands = [sys.stdin.fileno()]
while True:
    ended = child.poll() is not None
    ready, _, _ = select.select(commands + ([master] if reading else []), [], [], 0.05)
    if sys.stdin.fileno() in ready:
        line = os.read(sys.stdin.fileno(), 64).decode().strip()
        if line == "read":
            reading = True
        elif line == "off":
            termios.tcflow(slave, termios.TCOOFF)
        elif line == "on":
            termios.tcflow(slave, termios.TCOON)
        else:
            # The test has ended: so does the command.
            commands = []
            child.kill()
    if master in ready:
        os.write(sys.stdout.fileno(), os.read(master, 65536))
    elif ended:
        sys.exit(child.returncode)
