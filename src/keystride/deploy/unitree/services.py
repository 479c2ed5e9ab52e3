"""Unitree's request and response services: the motion switcher and the sport service, client and server side."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from cyclonedds.domain import DomainParticipant

from keystride.deploy.unitree.codec import CHECK_MODE, RELEASE_MODE, SELECT_MODE, STAND_DOWN
from keystride.deploy.unitree.dds_types import (
    Request,
    RequestHeader,
    RequestIdentity,
    RequestLease,
    RequestPolicy,
    Response,
    ResponseHeader,
    ResponseStatus,
)
from keystride.deploy.unitree.link import Publication, Subscription

Answer = tuple[int, str]  # status code (0 is good) and JSON text
ATTEMPT = 0.5  # s


class ServiceError(RuntimeError):
    """The robot did not answer, or refused."""


class Client:
    """Sends one request at a time and waits for its response.

    Messages can get lost, above all while the two sides are still finding each other: a request is repeated under its
    number until the answer comes. All calls made here may be repeated.
    """

    def __init__(self, participant: DomainParticipant, service: str) -> None:
        self.service = service
        self._answers: dict[int, Answer] = {}
        self._came = threading.Condition()
        self._requests = Publication(participant, f"rt/api/{service}/request", Request)
        self._responses = Subscription(participant, f"rt/api/{service}/response", Response, self._received)

    def _received(self, response: Any) -> None:
        with self._came:
            self._answers[response.header.identity.id] = (response.header.status.code, response.data)
            self._came.notify_all()

    def call(self, api: int, parameter: str = "{}", attempts: int = 10) -> Answer:
        identity = RequestIdentity(id=time.monotonic_ns(), api_id=api)
        request = Request(RequestHeader(identity, RequestLease(0), RequestPolicy(0, False)), parameter, [])
        with self._came:
            self._answers.clear()
            for _ in range(attempts):
                self._requests.send(request)
                if self._came.wait_for(lambda: identity.id in self._answers, ATTEMPT):
                    return self._answers[identity.id]
        raise ServiceError(f"no answer from the robot's {self.service} service (call {api})")

    def close(self) -> None:
        self._responses.close()


class Server:
    """Answers requests with `handle(api, parameter)`."""

    def __init__(self, participant: DomainParticipant, service: str, handle: Callable[[int, str], Answer]) -> None:
        self._handle = handle
        self._responses = Publication(participant, f"rt/api/{service}/response", Response)
        self._requests = Subscription(participant, f"rt/api/{service}/request", Request, self._received)

    def _received(self, request: Any) -> None:
        code, data = self._handle(request.header.identity.api_id, request.parameter)
        if not request.header.policy.noreply:
            header = ResponseHeader(request.header.identity, ResponseStatus(code))
            self._responses.send(Response(header, data, []))

    def close(self) -> None:
        self._requests.close()


def active_mode(switcher: Client, attempts: int = 10) -> str:
    """Return the name of the motion service that holds the motors; empty when none does."""
    code, data = switcher.call(CHECK_MODE, attempts=attempts)
    if code != 0:
        raise ServiceError(f"the robot's motion switcher answered with error {code}")
    try:
        return str(json.loads(data).get("name") or "")
    except (ValueError, AttributeError) as error:
        raise ServiceError(
            f"the robot's motion switcher gave an answer that is not understood: {data[:80]!r}"
        ) from error


def release_motors(switcher: Client, sport: Client, *, settle: float = 2.5, attempts: int = 5) -> list[str]:
    """Lay the robot down and switch its own motion service off; return the names that were released.

    While that service runs it sends commands of its own, and the motors would obey two programs in turn.
    """
    released = []
    for _ in range(attempts):
        name = active_mode(switcher)
        if not name:
            return released
        lay_down(sport, settle)
        switcher.call(RELEASE_MODE)
        released.append(name)
    raise ServiceError(f"the robot did not release its motion service ({released[-1]})")


def lay_down(sport: Client, settle: float) -> None:
    """Released while it stands, the robot would drop."""
    code, _ = sport.call(STAND_DOWN)
    if code != 0:
        raise ServiceError(f"the robot refused to lie down (error {code})")
    time.sleep(settle)


def select_motion_service(switcher: Client, name: str) -> None:
    """Give the motors back to one of the robot's own motion services."""
    code, _ = switcher.call(SELECT_MODE, json.dumps({"name": name}))
    if code != 0:
        raise ServiceError(f"the robot refused to select the motion service {name} (error {code})")
