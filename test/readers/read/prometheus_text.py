"""prometheus_client: its parser of the text format."""
from importlib.metadata import version

import common
from prometheus_client.parser import text_fd_to_metric_families


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        samples = [sample for family in text_fd_to_metric_families(file) for sample in family.samples]
    return common.of_samples([(sample.name, sample.labels, sample.value) for sample in samples])


common.run(version("prometheus_client"), read)
