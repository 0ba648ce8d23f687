"""The line to the agent: nothing that comes out of a guest is taken on trust."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.executors.qemu.guest import Channel, Control, ControlFailed, GuestGone, line_pair, parse

FAR = 1e9


@pytest.fixture
def line() -> Iterator[tuple[Channel, socket.socket]]:
    ours, theirs = line_pair()
    channel = Channel(ours, clock=lambda: 0.0)
    yield channel, theirs
    channel.close()
    theirs.close()


def test_agent_and_events_are_objects_and_the_rest_is_text() -> None:
    assert {"agent": "ready", "tainted": 0} == parse(b'{"agent": "ready", "tainted": 0}\r')
    assert {"event": "step", "step": "mkfs"} == parse(b'{"event": "step", "step": "mkfs"}')
    assert '{"other": 1}' == parse(b'{"other": 1}')
    assert "Traceback" == parse(b"Traceback\n")
    assert "[1]" == parse(b"[1]")


def test_nested_values_do_not_reach_the_display() -> None:
    assert {"event": "x"} == parse(b'{"event": "x", "deep": {"a": 1}, "list": [1], "none": null}')


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message(data: bytes) -> None:
    assert isinstance(parse(data), (str, dict))


def test_deeply_nested_lines_are_text() -> None:
    assert isinstance(parse(b"[" * 200_000), str)


def test_a_line_comes_whole_however_it_is_cut(line: tuple[Channel, socket.socket]) -> None:
    channel, theirs = line
    text = b'{"agent": "ended", "status": 0}\n{"event": "a"}\nrest'
    for byte in text:
        theirs.send(bytes([byte]))
    assert {"agent": "ended", "status": 0} == channel.receive(until=FAR)
    assert {"event": "a"} == channel.receive(until=FAR)
    theirs.close()
    with pytest.raises(GuestGone):
        channel.receive(until=FAR)


def test_a_deadline_that_is_over_gives_none_at_once(line: tuple[Channel, socket.socket]) -> None:
    assert line[0].receive(until=-1.0) is None


def test_what_has_come_is_given_even_after_the_deadline(line: tuple[Channel, socket.socket]) -> None:
    channel, theirs = line
    theirs.sendall(b"a\nb\n")
    assert "a" == channel.receive(until=FAR)
    assert "b" == channel.receive(until=-1.0)


def test_an_endless_line_is_dropped_and_the_next_one_heard(line: tuple[Channel, socket.socket]) -> None:
    channel, theirs = line

    def write() -> None:
        theirs.sendall(b"x" * (3 << 20) + b"\n" + b'{"agent": "alive"}\n')

    writer = threading.Thread(target=write)
    writer.start()
    heard = channel.receive(until=FAR)
    while isinstance(heard, str):
        assert len(heard) <= 2 << 20
        heard = channel.receive(until=FAR)
    writer.join()
    assert {"agent": "alive"} == heard


def test_sending_to_nobody_says_so(line: tuple[Channel, socket.socket]) -> None:
    channel, theirs = line
    theirs.close()
    with pytest.raises(GuestGone):
        channel.send("visit 1")


def _answer(theirs: socket.socket, *answers: object, heard: list[bytes]) -> threading.Thread:
    """QEMU's part: greets, and answers each line, which it notes, with the next answer, events mixed in."""

    def serve() -> None:
        theirs.sendall(b'{"QMP": {"version": {}}}\r\n')
        for answer, line in zip(answers, iter(lambda: theirs.recv(65536), b""), strict=False):
            heard.append(line)
            theirs.sendall(b'{"event": "RTC_CHANGE"}\r\n' + json.dumps(answer).encode() + b"\r\n")

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_a_resize_passes_over_greeting_and_events() -> None:
    ours, theirs = line_pair()
    with ours, theirs:
        heard: list[bytes] = []
        served = _answer(theirs, {"return": {}}, {"return": {}}, {"return": {}}, heard=heard)
        control = Control(ours)
        control.resize("bedplate-data", 1 << 30)
        control.resize("bedplate-data", 1 << 31)
        served.join()
    first, *asked = map(json.loads, heard)
    assert "qmp_capabilities" == first["execute"]
    assert [
        {"execute": "block_resize", "arguments": {"node-name": "bedplate-data", "size": size}}
        for size in (1 << 30, 1 << 31)
    ] == asked


def test_a_refusal_says_what_qemu_said() -> None:
    ours, theirs = line_pair()
    with ours, theirs:
        served = _answer(
            theirs, {"return": {}}, {"error": {"class": "x", "desc": "Cannot grow device"}}, heard=[]
        )
        with pytest.raises(ControlFailed, match="block_resize: Cannot grow device"):
            Control(ours).resize("bedplate-data", 1)
        served.join()


def test_a_qemu_that_ended_is_no_answer() -> None:
    ours, theirs = line_pair()
    theirs.sendall(b'{"QMP": {}}\n')
    theirs.shutdown(socket.SHUT_WR)
    with ours, theirs, pytest.raises(ControlFailed, match="ended before it answered"):
        Control(ours).resize("bedplate-data", 1)
