"""The frame of a reader: a folder of outputs in, `{version, runs: {name: {tests, failed, skipped, alerts, figures}}}` out."""
import json
import os
import re
import sys


def summary(tests, failed, skipped, alerts, figures=None):
    return {
        "tests": tests,
        "failed": failed,
        "skipped": skipped,
        "alerts": sorted(alerts),
        "figures": figures or {},
    }


def counted(figures, name):
    """The sum of a count over all types: `failed`, or `App failed` and `Sql failed`."""
    return sum(value for label, value in figures.items() if re.fullmatch(rf"(\w+ )?{name}", label))


def of_samples(samples):
    def monitors(*states):
        return sum(
            value for name, labels, value in samples if name == "svc_type_monitors" and labels["status"] in states
        )

    def series(labels):
        return "/".join(labels[part] for part in ("monitor", "check", "item") if part in labels)

    bad = {("svc_check_success", 0), ("svc_check_warning", 1)}
    values = re.compile(r"svc_check_value(_(?!timestamp)\w+)?")
    return summary(
        monitors("ok", "warning", "failed", "not_checked"),
        monitors("failed"),
        monitors("not_checked"),
        {series(labels) for name, labels, value in samples if (name, value) in bad},
        {series(labels): value for name, labels, value in samples if values.fullmatch(name)},
    )


def run(version, read):
    folder = sys.argv[1]
    seen = {}
    for file in sorted(os.listdir(folder)):
        try:
            seen[file] = read(os.path.join(folder, file))
        except Exception as error:  # pylint: disable=broad-except
            seen[file] = {"error": f"{type(error).__name__}: {error}"}
    json.dump({"version": version, "runs": seen}, sys.stdout)
