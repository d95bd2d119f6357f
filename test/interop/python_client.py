"""Drives the package servicestack, unmodified, at the server named by the first argument; says what came back as JSON."""

import json
import sys
from dataclasses import dataclass
from enum import Enum
from typing import List, Optional

from dataclasses_json import LetterCase, Undefined, dataclass_json
from servicestack import IGet, IReturn, JsonServiceClient, ResponseStatus, WebServiceException
from servicestack.types import AssignRoles, Authenticate, UnAssignRoles


class ExecutionMode(str, Enum):
    Basic = "Basic"


class ServerType(str, Enum):
    App = "App"
    Ftp = "Ftp"


@dataclass_json(letter_case=LetterCase.CAMEL, undefined=Undefined.EXCLUDE)
@dataclass
class MonitorSummary:
    monitor_name: Optional[str] = None
    status: Optional[str] = None


@dataclass_json(letter_case=LetterCase.CAMEL, undefined=Undefined.EXCLUDE)
@dataclass
class HealthCheckResponse:
    status: Optional[str] = None
    status_message: Optional[str] = None
    correlation_id: Optional[str] = None
    failed_monitor_count: int = -1
    monitor_summaries: Optional[List[MonitorSummary]] = None
    response_status: Optional[ResponseStatus] = None


@dataclass_json(letter_case=LetterCase.CAMEL, undefined=Undefined.EXCLUDE)
@dataclass
class HealthCheckRequest(IReturn[HealthCheckResponse], IGet):
    execution_mode: Optional[ExecutionMode] = None
    server_type: Optional[ServerType] = None
    suppress_error_codes: Optional[bool] = None


url, password = sys.argv[1], sys.argv[2]
said = {}


def note(name, call):
    try:
        answer = call()
        said[name] = [one.to_dict() for one in answer] if isinstance(answer, list) else answer.to_dict()
        return answer
    except WebServiceException as error:
        status = error.response_status
        said[name] = {"status": error.status_code, "error": status.to_dict() if status else None}
        return None


def ann():
    return Authenticate(provider="credentials", user_name="Ann", password=password)


client = JsonServiceClient(url)
healthy = HealthCheckRequest(execution_mode=ExecutionMode.Basic, server_type=ServerType.App)
unhealthy = HealthCheckRequest(execution_mode=ExecutionMode.Basic, server_type=ServerType.Ftp)
note("health by GET", lambda: client.get(healthy))
note("health by POST", lambda: client.post(healthy))
note("unhealthy", lambda: client.get(unhealthy))
note("unhealthy, suppressed", lambda: client.get(
    HealthCheckRequest(execution_mode=ExecutionMode.Basic, server_type=ServerType.Ftp, suppress_error_codes=True)))
note("field errors", lambda: client.get(HealthCheckRequest()))
note("nobody", lambda: client.post(AssignRoles(user_name="Ned", roles=["R1"])))
note("wrong password", lambda: client.post(Authenticate(provider="credentials", user_name="Ann", password="wrong")))
signed_in = note("sign-in", lambda: client.post(ann()))
note("assign", lambda: client.post(AssignRoles(user_name="Ned", roles=["R1", "R2"])))
note("unassign", lambda: client.post(UnAssignRoles(user_name="Ned", roles=["R1"])))
note("batch", lambda: client.send_all([AssignRoles(user_name="Ned", roles=["B1"]), AssignRoles(user_name="Ned", roles=["B2"])]))

by_token = JsonServiceClient(url)
by_token.set_bearer_token(signed_in.bearer_token if signed_in else "")
note("by token", lambda: by_token.post(UnAssignRoles(user_name="Ned", roles=["B1"])))

renewing = JsonServiceClient(url)
renewing.set_bearer_token("of yesterday")
renewing.set_refresh_token(signed_in.refresh_token if signed_in else "")
note("renewed", lambda: renewing.post(UnAssignRoles(user_name="Ned", roles=["B2"])))
said["renewed token"] = renewing.bearer_token != "of yesterday"

note("sign-out", lambda: client.post(Authenticate(provider="logout")))
note("after", lambda: client.post(AssignRoles(user_name="Ned", roles=["R1"])))
print(json.dumps(said))
