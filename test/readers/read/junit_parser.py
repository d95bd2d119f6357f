"""junitparser: its element tree of suites and cases, with the results of each case."""
from importlib.metadata import version

import common
import junitparser


def read(path):
    cases = [case for suite in junitparser.JUnitXml.fromfile(path) for case in suite]
    failed, skipped = [], 0
    for case in cases:
        kinds = {type(result) for result in case.result}
        if kinds & {junitparser.Failure, junitparser.Error}:
            failed.append(f"{case.classname} › {case.name}")
        elif junitparser.Skipped in kinds:
            skipped += 1
    return common.summary(len(cases), len(failed), skipped, failed)


common.run(version("junitparser"), read)
