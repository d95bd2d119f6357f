"""nagiosplugin: its ranges, and its own notation of a label with a value and ranges."""
import re
from importlib.metadata import version

import common
import nagiosplugin

DATUM = re.compile(r"('[^']*'|\S+?)=(\S*)")
VALUE = re.compile(r"([-+.\d]+)(.*)")


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        first = file.readline()
    figures, alerts, totals = {}, [], []
    for label, data in DATUM.findall(first.partition("|")[2]):
        name = label.strip("'")
        number, warn, critical, least, most = (data.split(";") + [""] * 5)[:5]
        value, unit = VALUE.fullmatch(number).groups()
        written = nagiosplugin.Performance(name, value, unit, warn, critical, least or None, most or None)
        if str(written) != f"{label}={data}":
            raise ValueError(f"{label}={data} becomes {written}")
        figures[name] = float(value)
        if any(spec and not nagiosplugin.Range(spec).match(float(value)) for spec in (warn, critical)):
            alerts.append(name)
        if re.fullmatch(r"(\w+ )?failed", name):
            totals.append(int(most))
    return common.summary(
        sum(totals), common.counted(figures, "failed"), common.counted(figures, "not_checked"), alerts, figures
    )


common.run(version("nagiosplugin"), read)
