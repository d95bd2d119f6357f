"""servicestack for Python: its readers of dates and durations, as its typed answers use them."""
import json
from datetime import timezone
from importlib.metadata import version

import common
from servicestack.utils import from_datetime, from_timespan


def read(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text == "":
        return common.summary(0, 0, None, [])
    answer = json.loads(text)
    monitors = answer["MonitorSummaries"]
    metrics = answer["ExecutionMetrics"]

    def instant(text):
        return round(from_datetime(text).replace(tzinfo=timezone.utc).timestamp() * 1000)

    return common.summary(
        len(monitors),
        answer["FailedMonitorCount"],
        None,
        [monitor["MonitorName"] for monitor in monitors if monitor["Status"] == "Failure"],
        {
            "seconds": from_timespan(metrics["Duration"]).total_seconds(),
            "start": instant(metrics["StartDateTime"]),
            "end": instant(metrics["EndDateTime"]),
        },
    )


common.run(version("servicestack"), read)
