"""junit2html: the model from which it renders its page."""
from importlib.metadata import version

import common
from junit2htmlreport import parser


def read(path):
    cases = [
        case
        for suite in parser.Junit(filename=path).suites
        for testclass in suite.classes.values()
        for case in testclass.cases
    ]
    failed = [f"{case.testclass.name} › {case.name}" for case in cases if case.failed()]
    return common.summary(len(cases), len(failed), len([case for case in cases if case.skipped]), failed)


common.run(version("junit2html"), read)
