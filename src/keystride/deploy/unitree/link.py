"""The DDS link to a Go2: a participant on one network interface, low-level commands out, low-level states in."""

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from cyclonedds.core import InstanceState, Policy, Qos, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

from keystride.deploy.clock import Latest
from keystride.deploy.unitree.codec import LOOPBACK
from keystride.deploy.unitree.dds_types import LowCmd, LowState
from keystride.deploy.unitree.wire_format import Record, is_sealed, seal

LOW_CMD_TOPIC = "rt/lowcmd"
LOW_STATE_TOPIC = "rt/lowstate"

_ANY = ViewState.Any | InstanceState.Any | SampleState.Any


def dds_config(interface: str) -> str:
    """Cyclone DDS settings for one interface, given by name or address. Loopback has no multicast to discover with."""
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
    """Raises cyclonedds.core.DDSException when there is no such interface."""
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
    """Hands every sample to `received`, on a thread of its own. Samples that cannot be read are counted and dropped."""

    def __init__(
        self,
        participant: DomainParticipant,
        topic: str,
        kind: type[Any],
        received: Callable[[Any], None],
        *,
        own: bool = True,  # whether to hear what this participant itself sends
    ) -> None:
        self.unreadable = 0
        self._received = received
        quality = None if own else Qos(Policy.IgnoreLocal.Participant)
        self._reader = DataReader(participant, Topic(participant, topic, kind), qos=quality)
        self._kind = kind
        self._waitset = WaitSet(participant)
        self._waitset.attach(ReadCondition(self._reader, _ANY))
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=topic, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._closed.is_set():
            self._waitset.wait(duration(milliseconds=100))
            for sample in self._take():
                if isinstance(sample, self._kind):  # a notice that a writer went away is not
                    self._received(sample)

    def _take(self) -> list[Any]:
        try:
            return self._reader.take(8)
        except ValueError:
            self.unreadable += 1
            return []

    def close(self) -> None:
        self._closed.set()
        self._thread.join(timeout=2.0)


class RobotLink:
    """What the controlling side holds: the newest low state, and a way to send low commands."""

    def __init__(self, participant: DomainParticipant) -> None:
        self.states: Latest[Record] = Latest()
        self.corrupt = 0  # states with a wrong checksum, or none
        self.other_commands = 0  # low commands that somebody else has sent
        self._commands = Publication(participant, LOW_CMD_TOPIC, LowCmd)
        self._subscriptions = (
            Subscription(participant, LOW_STATE_TOPIC, LowState, self._received),
            Subscription(participant, LOW_CMD_TOPIC, LowCmd, self._overheard, own=False),
        )

    def _received(self, sample: Any) -> None:
        if is_sealed(sample.record):
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
