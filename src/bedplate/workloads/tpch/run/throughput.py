"""A throughput run: several streams of the 22 queries at once, each in an order of its own (clause 5.3.5)."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from queue import SimpleQueue
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.server import cluster_of
from bedplate.errors import BedplateError
from bedplate.workloads.tpch.model import QUERY_NUMBERS, THROUGHPUT
from bedplate.workloads.tpch.run.answer_check import check_answers, item_place
from bedplate.workloads.tpch.run.asking import ask, limit_of, questions, session_for_queries
from bedplate.workloads.tpch.run.plans import keep_plans
from bedplate.workloads.tpch.run.power import timed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.engines.postgresql.session import Session
    from bedplate.workloads.tpch.run.asking import QueryAnswer, QueryCall
    from bedplate.workloads.tpch.run.recording import TpchRecording


def run_throughput(recording: TpchRecording) -> None:
    """Let all streams run at once, then look at every plan and check every answer.

    Raises what stopped the first that was stopped.
    """
    count = recording.spec.levels.integer("streams")
    if count is None or count < 1:
        raise BedplateError(
            f"run {recording.spec.name}: it takes one stream or more, and the plan says {count}"
        )
    limit_s = limit_of(recording.spec)
    numbers = range(1, count + 1)
    asked_for = [questions(recording.spec, recording.scale_factor, stream=number) for number in numbers]
    recording.facts["streams"] = count
    with ExitStack() as stack:
        sessions = [stack.enter_context(session_for_queries(cluster_of(recording.context))) for _ in numbers]
        streams = _Streams(recording, sessions, asked_for, limit_s)
        with recording.watched(sessions, first_phase=THROUGHPUT):
            try:
                with recording.phase(THROUGHPUT, sessions):
                    streams.run()
            finally:
                for one in streams.asked:
                    recording.add(timed(one, limit_s))
        keep_plans(recording, sessions[0], (question for stream in asked_for for question in stream))
    recording.facts["streams_s"] = max(one.received_s for one in streams.asked) - min(
        one.sent_s for one in streams.asked
    )
    check_answers(recording, streams.asked)


# How long an interruption waits for a stream whose session was abandoned.
_END_S = 10.0


class _Streams:
    """One thread for each stream; they wait for one another before the first query."""

    def __init__(
        self,
        recording: TpchRecording,
        sessions: Sequence[Session],
        asked_for: Sequence[Sequence[QueryCall]],
        limit_s: float | None,
    ) -> None:
        self._recording = recording
        self._sessions = sessions
        self._asked_for = asked_for
        self._limit_s = limit_s
        self._start = threading.Barrier(len(sessions))
        self._stopped = threading.Event()
        self._counting = threading.Lock()
        self._begun = 0
        self._asked: list[list[QueryAnswer]] = [[] for _ in sessions]

    @property
    def asked(self) -> list[QueryAnswer]:
        """What was asked, stream by stream."""
        return [one for stream in self._asked for one in stream]

    def run(self) -> None:
        """Until all have ended. One that fails lets the others end with the query they are at."""
        # Not futures: a signal that comes while their locks are taken leaves these taken, and the streams wait for them for ever.
        ended: SimpleQueue[BaseException | None] = SimpleQueue()
        threads = [
            threading.Thread(
                target=self._end_stream, args=(place, ended), name=f"stream-{place}", daemon=True
            )
            for place in range(len(self._sessions))
        ]
        try:
            for thread in threads:
                thread.start()
            failures = [ended.get() for _ in threads]
        except BaseException:
            # An interruption: what the threads wait for must end before they can.
            self._stopped.set()
            self._start.abort()
            for session in self._sessions:
                session.abandon()
            for thread in threads:
                if thread.is_alive():
                    thread.join(_END_S)
            raise
        for failure in failures:
            if failure is not None:
                raise failure

    def _end_stream(self, place: int, ended: SimpleQueue[BaseException | None]) -> None:
        """A stream, and what it failed of."""
        try:
            self._run_stream(place)
        except BaseException as failure:  # noqa: BLE001 - it is raised where the streams are waited for
            ended.put(failure)
        else:
            ended.put(None)

    def _run_stream(self, place: int) -> None:
        self._start.wait()
        for question in self._asked_for[place]:
            if self._stopped.is_set():
                return
            self._tell(question)
            try:
                self._asked[place].append(ask(self._sessions[place], question, self._limit_s))
            except BedplateError:
                self._stopped.set()
                raise

    def _tell(self, question: QueryCall) -> None:
        with self._counting:
            self._begun += 1
            of = len(self._sessions) * len(QUERY_NUMBERS)
            self._recording.tell(*item_place(question), done=self._begun, of=of)
