"""The DDS link to a Go2: message types, low-level commands and states, and the services of its motion software.

Every uint8 is declared as `byte`: for uint8 current Cyclone DDS sends type information that crashes peers of
version 0.10.2, which the robot runs.
"""

import json
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from cyclonedds import idl
from cyclonedds.core import GuardCondition, InstanceState, Policy, Qos, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import annotations, types
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

from keystride.deploy.clock import Latest
from keystride.deploy.unitree.codec import CHECK_MODE, LOOPBACK, RELEASE_MODE, SELECT_MODE, STAND_DOWN
from keystride.deploy.unitree.wire_format import (
    LOW_CMD,
    LOW_STATE,
    Field,
    Record,
    Struct,
    from_wire,
    is_sealed,
    seal,
    to_wire,
)

_PRIMITIVES: dict[str, Any] = {
    "u1": types.byte,
    "i2": types.int16,
    "u2": types.uint16,
    "i4": types.int32,
    "u4": types.uint32,
    "f4": types.float32,
}


def idl_type(struct: Struct) -> Any:
    """Return the DDS type of a struct, serialised field by field by Cyclone DDS."""
    members = {field.name: _member(field) for field in struct.fields}
    made = idl.make_idl_struct(struct.name.rsplit(".", 1)[-1], struct.name, members)
    return _final(made)


def _member(field: Field) -> Any:
    kind = idl_type(field.kind) if isinstance(field.kind, Struct) else _PRIMITIVES[field.kind]
    return kind if field.count is None else types.array[kind, field.count]


def _final(made: Any) -> Any:
    annotations.autoid("sequential")(made)
    annotations.final(made)
    return made


def record_type(struct: Struct) -> type[Any]:
    """Return the same DDS type with NumPy records as samples, which serialise 50 times faster."""
    made: Any = idl_type(struct)

    def start(self: Any, record: Record | None = None) -> None:
        self.record = struct.new() if record is None else record

    made.__init__ = start

    def load(cls: Any, data: bytes, has_header: bool = True, use_version_2: bool | None = None) -> Any:
        return cls(from_wire(struct, data))

    made.serialize = lambda self, buffer=None, endianness=None, use_version_2=None: to_wire(struct, self.record)
    made.deserialize = classmethod(load)
    made.deserialize_key = classmethod(lambda cls, data, has_header=True, use_version_2=None: cls())  # no key
    return made


LowCmd = record_type(LOW_CMD)
LowState = record_type(LOW_STATE)


def _api_type(name: str, **members: Any) -> Any:
    return _final(idl.make_idl_struct(name, f"unitree_api.msg.dds_.{name}", members))


RequestIdentity = _api_type("RequestIdentity_", id=types.int64, api_id=types.int64)
RequestLease = _api_type("RequestLease_", id=types.int64)
RequestPolicy = _api_type("RequestPolicy_", priority=types.int32, noreply=bool)
RequestHeader = _api_type("RequestHeader_", identity=RequestIdentity, lease=RequestLease, policy=RequestPolicy)
Request = _api_type("Request_", header=RequestHeader, parameter=str, binary=types.sequence[types.byte])
ResponseStatus = _api_type("ResponseStatus_", code=types.int32)
ResponseHeader = _api_type("ResponseHeader_", identity=RequestIdentity, status=ResponseStatus)
Response = _api_type("Response_", header=ResponseHeader, data=str, binary=types.sequence[types.byte])


LOW_CMD_TOPIC = "rt/lowcmd"
LOW_STATE_TOPIC = "rt/lowstate"
ATTEMPT = 0.5  # s to wait for a service's answer before asking again
SENDER_GONE = 1.0  # s of silence after which another sender counts as the same robot; it is braked by then
LIES_FOR = 0.5  # s for which low states must show the robot lying before its motors are released

Answer = tuple[int, str]  # status code (0 for success) and JSON text

_ANY = ViewState.Any | InstanceState.Any | SampleState.Any


def dds_config(interface: str) -> str:
    """Return Cyclone DDS settings for one interface, given by name or address.

    Discovery uses multicast, except on the loopback interface, which has none.
    """
    loopback = interface in LOOPBACK
    interface = "127.0.0.1" if loopback else interface
    kind = "address" if "." in interface else "name"
    general = f'<Interfaces><NetworkInterface {kind}="{interface}"/></Interfaces>'
    discovery = ""
    if loopback:
        general += "<AllowMulticast>false</AllowMulticast>"
        discovery = (
            "<Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>32</MaxAutoParticipantIndex>"
            '<Peers><Peer address="127.0.0.1"/></Peers></Discovery>'
        )
    return f'<CycloneDDS><Domain Id="any"><General>{general}</General>{discovery}</Domain></CycloneDDS>'


@cache
def _domain(domain: int, interface: str) -> Domain:
    return Domain(domain, dds_config(interface))  # a process can configure a domain only once


def join(interface: str, domain: int = 0) -> DomainParticipant:
    """Join a DDS domain. Raise cyclonedds.core.DDSException when there is no such interface."""
    _domain(domain, interface)
    return DomainParticipant(domain)


class Publication:
    def __init__(self, participant: DomainParticipant, topic: str, kind: type[Any]) -> None:
        self._writer = DataWriter(participant, Topic(participant, topic, kind))

    def send(self, sample: Any) -> None:
        self._writer.write(sample)

    @property
    def readers(self) -> int:
        return len(self._writer.get_matched_subscriptions())


class Subscription:
    """Calls `received` with every sample, on its own thread. Samples that cannot be decoded are counted and dropped."""

    def __init__(
        self,
        participant: DomainParticipant,
        topic: str,
        kind: type[Any],
        received: Callable[[Any], None],
        *,
        own: bool = True,  # whether to receive this participant's own samples
    ) -> None:
        self.unreadable = 0
        self._received = received
        quality = None if own else Qos(Policy.IgnoreLocal.Participant)
        self._reader = DataReader(participant, Topic(participant, topic, kind), qos=quality)
        self._kind = kind
        self._waitset = WaitSet(participant)
        self._waitset.attach(ReadCondition(self._reader, _ANY))
        self._wake = GuardCondition(participant)
        self._waitset.attach(self._wake)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=topic, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._closed.is_set():
            self._waitset.wait(duration(seconds=1))
            for sample in self._take():
                if isinstance(sample, self._kind):  # notices that a writer has left are not samples
                    self._received(sample)

    def _take(self) -> list[Any]:
        try:
            return self._reader.take(8)
        except ValueError:
            self.unreadable += 1
            return []

    def close(self) -> None:
        self._closed.set()
        self._wake.set(True)
        self._thread.join(timeout=2.0)


class RobotLink:
    """The controller's end of the link: keeps the newest low state and sends low commands."""

    def __init__(self, participant: DomainParticipant) -> None:
        self.states: Latest[Record] = Latest()
        self.corrupt = 0  # states with a wrong or missing checksum
        self.other_commands = 0  # low commands that other programs have sent
        self.other_states = 0  # low states from another sender than the first one: a second robot
        self._sender: int | None = None
        self._commands = Publication(participant, LOW_CMD_TOPIC, LowCmd)
        self._subscriptions = (
            Subscription(participant, LOW_STATE_TOPIC, LowState, self._received),
            Subscription(participant, LOW_CMD_TOPIC, LowCmd, self._overheard, own=False),
        )

    def _received(self, sample: Any) -> None:
        sender = sample.sample_info.publication_handle
        if self._sender is None or self.states.age() > SENDER_GONE:  # a robot that returns has a new sender id
            self._sender = sender
        if sender != self._sender:
            self.other_states += 1
        elif is_sealed(sample.record):
            self.states.put(sample.record)
        else:
            self.corrupt += 1

    def _overheard(self, sample: Any) -> None:
        self.other_commands += 1

    def send(self, command: Record) -> None:
        seal(command)
        self._commands.send(LowCmd(command))

    @property
    def connected(self) -> bool:
        return self._commands.readers > 0

    def close(self) -> None:
        for subscription in self._subscriptions:
            subscription.close()


class ServiceError(RuntimeError):
    """The robot did not answer, or refused."""


class Client:
    """Sends one request at a time and waits for its response.

    Messages can get lost, especially during discovery, so a request is repeated with the same id until it is answered.
    All calls made here are idempotent.
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
        raise ServiceError(f"the robot's motion switcher gave an invalid answer: {data[:80]!r}") from error


def release_motors(
    switcher: Client, sport: Client, lies: Callable[[], bool], *, settle: float = 8.0, attempts: int = 5
) -> list[str]:
    """Have the robot lie down and release its motion service; return the names of the services that were released.

    An active motion service sends its own motor commands, which would alternate with ours.
    """
    released = []
    for _ in range(attempts):
        name = active_mode(switcher)
        if not name:
            return released
        lay_down(sport, lies, settle)
        switcher.call(RELEASE_MODE)
        released.append(name)
    raise ServiceError(f"the robot did not release its motion service ({released[-1]})")


def lay_down(sport: Client, lies: Callable[[], bool], settle: float) -> None:
    """Have the robot lie down, because it would drop if released while standing. Its answer does not mean that it has."""
    code, _ = sport.call(STAND_DOWN)
    if code != 0:
        raise ServiceError(f"the robot refused to lie down (error {code})")
    until, since = time.monotonic() + settle, time.monotonic()
    while time.monotonic() - since < LIES_FOR:
        time.sleep(0.02)
        if not lies():
            since = time.monotonic()
        if since > until:
            raise ServiceError(f"the robot answered that it lies down, but still stands after {settle:g} s")


def select_motion_service(switcher: Client, name: str) -> None:
    """Give the motors back to one of the robot's own motion services."""
    code, _ = switcher.call(SELECT_MODE, json.dumps({"name": name}))
    if code != 0:
        raise ServiceError(f"the robot refused to select the motion service {name} (error {code})")
