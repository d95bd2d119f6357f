"""Drives the package servicestack with the generated types: url, password, folder of dtos.py, style of the names."""

import datetime
import json
import sys

sys.path.insert(0, sys.argv[3])

import dtos
from dtos import (AssignRoles, Authenticate, ExecutionMode, HealthCheckRequest, HeartbeatStatus, ReportHeartbeat,
                  ServerType, UnAssignRoles)
from servicestack import JsonServiceClient, WebServiceException, to_json
from servicestack.utils import snakecase

url, password, _, style = sys.argv[1:]
report = {}


def field(name):
    return snakecase(name) if style == "camelCase" else name


def make(cls, **values):
    return cls(**{field(name): value for name, value in values.items()})


def get(value, *names):
    for name in names:
        value = getattr(value, field(name))
    return value


def note(name, call):
    try:
        report[name] = call()
    except WebServiceException as error:
        status = error.response_status
        report[name] = {"status": error.status_code, "error": status.to_dict() if status else None}


def facts(health):
    start = get(health, "ExecutionMetrics", "StartDateTime")
    duration = get(health, "ExecutionMetrics", "Duration")
    return {
        "status": get(health, "Status").value,
        "typed": isinstance(get(health, "Status"), dtos.MonitoringStatus),
        "failed": get(health, "FailedMonitorCount"),
        "monitors": len(get(health, "MonitorSummaries")),
        "results": all(isinstance(one, dtos.MonitoringResult)
                       for summary in get(health, "MonitorSummaries") for one in get(summary, "Results")),
        "recent": abs((datetime.datetime.now() - start.replace(tzinfo=None)).total_seconds()) < 90_000,
        "duration": isinstance(duration, datetime.timedelta),
    }


def health(server_type, **more):
    return make(HealthCheckRequest, ExecutionMode=ExecutionMode.BASIC, ServerType=server_type, **more)


def sign_in(client):
    return client.post(make(Authenticate, provider="credentials", UserName="Ann", Password=password))


client = JsonServiceClient(url)
note("health by GET", lambda: facts(client.get(health(ServerType.APP))))
note("health by POST", lambda: facts(client.post(health(ServerType.APP))))
note("health by its own verb", lambda: facts(client.send(health(ServerType.APP))))
note("unhealthy", lambda: client.get(health(ServerType.FTP)))
note("unhealthy, suppressed", lambda: facts(client.get(health(ServerType.FTP, SuppressErrorCodes=True))))
note("nobody", lambda: client.post(make(AssignRoles, UserName="Ned", Roles=["R1"])))
note("sign-in", lambda: get(sign_in(client), "Roles"))
note("assign", lambda: get(client.post(make(AssignRoles, UserName="Ned", Roles=["R1", "R2"])), "AllRoles"))
note("unassign", lambda: get(client.post(make(UnAssignRoles, UserName="Ned", Roles=["R1"])), "AllRoles"))
note("batch", lambda: [get(one, "AllRoles") for one in client.send_all([
    make(AssignRoles, UserName="Ned", Roles=["B1"]), make(AssignRoles, UserName="Ned", Roles=["B2"])])])
note("heartbeat", lambda: get(client.post(make(
    ReportHeartbeat, Name="agent-1", Status=HeartbeatStatus.OK, Interval=datetime.timedelta(minutes=5), ExitCode=0,
    Duration=datetime.timedelta(seconds=1.5),
    StartedAt=datetime.datetime.now(datetime.timezone.utc))), "Name"))
report["members"] = json.loads(to_json(make(Authenticate, provider="p", oauth_token="t", UserName="u")))
note("sign-out", lambda: client.post(make(Authenticate, provider="logout")) is not None)
note("after", lambda: client.post(make(AssignRoles, UserName="Ned", Roles=["R1"])))
print(json.dumps(report))
