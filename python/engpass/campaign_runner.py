"""Runs the points of a campaign that a store does not have yet.

Points go to an executor, a bounded number at a time. The calling thread takes their outcomes from one queue
and alone writes to the store. A point counts, for the progress and for output, only once it is stored.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import platform
import random
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from engpass import _engpass
from engpass.campaign import MODEL, Plan, Point, build
from engpass.capture import ENGINE, Captures
from engpass.environment import cores
from engpass.error import EngpassError
from engpass.store import Finished, Store

if TYPE_CHECKING:
    from engpass.emulation import Options
    from engpass.measure import Session


class Job(msgspec.Struct, frozen=True):
    """All data with which a worker, in this process or another, can run any point of a campaign."""

    token: str
    build: str
    """Fingerprint of the core (`campaign.build`) that all workers must have."""
    text: str
    source: str
    overrides: tuple[tuple[str, str], ...]
    captures: Captures | None = None


class Progress(msgspec.Struct, frozen=True):
    """The progress of a campaign, in points. Those in `done` and `failed` are in the store."""

    total: int
    done: int
    failed: int
    found: int
    """Points that the store already had when this session began."""
    ready: int
    """Number of points from the start of the plan up to the first unfinished one; these can be printed."""
    under_way: float = 0.0
    """Sum over the running points of the shares of their virtual time that have passed (0 to 1 each)."""


class Ended(msgspec.Struct, frozen=True):
    """The result of one session of a campaign: the progress, and whether a signal ended it early."""

    progress: Progress
    interrupted: bool


Watch = Callable[[Progress], None]

# Seconds between reports on the progress of running points.
_LOOK_SECONDS = 0.5
# Points that end within these seconds are written together: a transaction takes as long as a short point.
_GATHER_SECONDS = 0.1
# A worker gets as many short points at a time as take about this long: to hand one over costs as much as to
# run it, and only one thread at a time can do it. The worker returns early if they take longer.
_BATCH_SECONDS = 0.02
_MOST_IN_BATCH = 256
# Batches handed to the executor for each worker, so that none waits while points are written.
_AHEAD = 16

# Campaigns that run in this process, by the token of their job; threads share a campaign and its interrupt.
_LOCAL: dict[str, tuple[_engpass.Campaign, _engpass.Interrupt]] = {}


def work(job: Job, point: Point) -> str:
    """Run one point of the model, in any process, and return its outcome."""
    campaign, interrupt = _LOCAL.get(job.token) or _remote(job)
    if job.captures is not None and point.engine == ENGINE:
        return job.captures.run(campaign, point, interrupt)
    return campaign.run(point.engine, point.variant, list(point.sweep), point.repeat, interrupt)


Batch = Sequence[Point]
Work = Callable[[Job, Batch], list[Finished]]
"""Runs points in order; returns early when they take long, and after an interruption."""


def _work_on(job: Job, points: Batch) -> list[Finished]:
    return _each(points, lambda point: work(job, point))


def _each(points: Batch, run: Callable[[Point], str]) -> list[Finished]:
    """Run points until `_BATCH_SECONDS` have passed; one that fails has its error in place of an outcome."""
    ended: list[Finished] = []
    start = begin = time.perf_counter()
    for point in points:
        outcome, told = None, None
        try:
            outcome = run(point)
        except (_engpass.Interrupted, KeyboardInterrupt, SystemExit):
            break
        except BaseException as error:  # noqa: BLE001 (a panic of the native module is no `Exception`)
            told = _told(error)
        now = time.perf_counter()
        ended.append(Finished(point.position, now - begin, outcome, told))
        if now - start > _BATCH_SECONDS:
            break
        begin = now
    return ended


@functools.lru_cache(maxsize=4)
def _remote(job: Job) -> tuple[_engpass.Campaign, _engpass.Interrupt]:
    """Load the campaign of another process's job; raises `EngpassError` if the builds differ."""
    if job.build != build():
        raise EngpassError(
            f"the worker `{platform.node()}` has build {build()} of Engpass, but the campaign has"
            f" build {job.build}: "
            "the outcomes would be of another model",
            "install the same wheel on every worker, and run again",
        )
    campaign = _engpass.load(job.text.encode(), job.source, list(job.overrides), None)
    return campaign, _engpass.Interrupt()


def run_points(
    campaign: _engpass.Campaign,
    plan: Plan,
    store: Store,
    run_id: str,
    session: int,
    *,
    source: str,
    overrides: tuple[tuple[str, str], ...],
    jobs: int | None = None,
    executor: Executor | None = None,
    watch: Watch | None = None,
    emulation: Options | None = None,
    captures: Captures | None = None,
) -> Ended:
    """Run the points that the store lacks. Returns when all have ended, or early after a signal.

    The signals are Ctrl-C, SIGTERM and SIGHUP, each only if it has its default handler.

    Points that failed in an earlier session are tried again. Raises `StoreError` if the store fails, and
    `EngpassError` if the executor fails; finished points stay in the store.
    """
    interrupt = _engpass.Interrupt()
    job = Job(secrets.token_hex(8), build(), campaign.text, source, overrides, captures)
    _LOCAL[job.token] = (campaign, interrupt)
    writer = _Writer(plan, store, run_id, session, watch)
    workers = jobs or (cores() if executor is None else getattr(executor, "_max_workers", None)) or 64
    try:
        with contextlib.ExitStack() as stack:
            if executor is None:
                threads = ThreadPoolExecutor(jobs or cores(), thread_name_prefix="engpass")
                stack.callback(threads.shutdown, wait=True, cancel_futures=True)
                executor = threads
            writer.begin()
            modelled = (point for point in writer.missing() if point.engine in MODEL)
            interrupted = _drive(writer, job, executor, _work_on, modelled, interrupt, int(workers))
        if not interrupted:
            # Points with real hosts run alone, because model points beside them would take the CPU cores.
            interrupted = _live(writer, job, plan, interrupt, emulation)
    finally:
        del _LOCAL[job.token]
    if not interrupted:
        store.end(session)
    return Ended(writer.progress, interrupted)


def _live(
    writer: _Writer, job: Job, plan: Plan, interrupt: _engpass.Interrupt, emulation: Options | None
) -> bool:
    """Run the missing points with real hosts, one at a time; returns True if a signal ended the session."""
    campaign, _ = _LOCAL[job.token]
    for engine in plan.engines:
        points = [point for point in writer.missing() if point.engine == engine and engine not in MODEL]
        if not points:
            continue
        # In random order a slow change (a warm CPU, other load) does not look like an effect of the sweep.
        random.Random(campaign.seed).shuffle(points)  # noqa: S311 (no secret)
        with (
            _session(engine, job, interrupt, emulation) as session,
            ThreadPoolExecutor(1, thread_name_prefix=f"engpass-{engine}") as alone,
        ):

            def made(_job: Job, points: Batch, session: Session = session) -> list[Finished]:
                return _each(points, session.run)

            if _drive(writer, job, alone, made, iter(points), interrupt, 1):
                return True
    return False


def _session(engine: str, job: Job, interrupt: _engpass.Interrupt, emulation: Options | None) -> Session:
    from engpass.measure import Session

    campaign, _ = _LOCAL[job.token]
    if engine != "emulate":
        return Session(campaign, job.source, interrupt.is_set)
    from engpass.emulation import Options
    from engpass.measure.emulated import EmulatedSession

    return EmulatedSession(
        campaign,
        job.source,
        interrupt.is_set,
        overrides=job.overrides,
        options=emulation or Options(),
    )


class _Writer:
    """The only writer to the store; it records which points are stored."""

    def __init__(self, plan: Plan, store: Store, run_id: str, session: int, watch: Watch | None) -> None:
        self._plan, self._store, self._run_id, self._session, self._watch = (
            plan,
            store,
            run_id,
            session,
            watch,
        )
        self._there = store.done(run_id, plan.total)
        self._batch: list[Finished] = []
        self._due = 0.0
        found = sum(self._there)
        self.progress = Progress(plan.total, found, 0, found, self._ready(0))

    def _ready(self, start: int) -> int:
        gap = self._there.find(0, start)
        return gap if gap >= 0 else self._plan.total

    def missing(self) -> Iterator[Point]:
        position = self._ready(0)
        while position < self._plan.total:
            yield self._plan.point(position)
            position = self._ready(position + 1)

    def begin(self) -> None:
        self._tell()

    def take(self, finished: list[Finished]) -> None:
        self._batch += finished

    @property
    def patience(self) -> float:
        """Seconds that `_drain` may wait for the next point before `settle` is called."""
        return max(self._due - time.monotonic(), 0.0) if self._batch else _LOOK_SECONDS

    def settle(self, under_way: float, *, now: bool) -> None:
        """Write the finished points to the store if they are due or `now` is set.

        Without any, report the progress of the running points.
        """
        if self._batch and (now or time.monotonic() >= self._due):
            self.keep(under_way)
        elif not self._batch and under_way != self.progress.under_way:
            self.progress = replace(self.progress, under_way=under_way)
            self._tell()

    def keep(self, under_way: float) -> None:
        """Write the finished points to the store and report the progress."""
        if not self._batch:
            return
        batch, self._batch = self._batch, []
        self._store.write(self._run_id, self._session, batch)
        failed = sum(finished.error is not None for finished in batch)
        p = self.progress
        for finished in batch:
            self._there[finished.position] = 1
        done = p.done + len(batch) - failed
        self.progress = Progress(p.total, done, p.failed + failed, p.found, self._ready(p.ready), under_way)
        self._due = time.monotonic() + _GATHER_SECONDS
        self._tell()

    def _tell(self) -> None:
        if self._watch is not None:
            self._watch(self.progress)


class _Stopped(Exception):  # noqa: N818 (not an error: a user asked for it)
    """An item of the queue of ended points that wakes the writer up because a signal came."""


def _drive(
    writer: _Writer,
    job: Job,
    executor: Executor,
    does: Work,
    todo: Iterator[Point],
    interrupt: _engpass.Interrupt,
    workers: int,
) -> bool:
    """Keep the executor busy and write what comes back; returns whether it was interrupted."""
    pending: dict[Future[list[Finished]], Batch] = {}
    ended: SimpleQueue[Future[list[Finished]] | _Stopped] = SimpleQueue()
    stopped = False
    size = 1
    with _signals(interrupt, ended):
        try:
            while True:
                while not stopped and len(pending) < _AHEAD * workers:
                    if not (batch := list(itertools.islice(todo, size))):
                        break
                    future = _submit(executor, does, job, batch)
                    pending[future] = batch
                    future.add_done_callback(ended.put)
                writer.settle(interrupt.under_way(), now=stopped or not pending)
                if not pending:
                    return stopped
                for item in _drain(ended, writer.patience):
                    if isinstance(item, _Stopped):
                        stopped = True
                        _cancel(pending)
                        continue
                    done = pending.pop(item)
                    finished = _finished(item, done)
                    writer.take(finished)
                    if finished:
                        size = _next_size(finished)
                        todo = itertools.chain(done[len(finished) :], todo)
        except BrokenExecutor as error:
            raise _gave_up(error) from error
        finally:
            # However this ends, no thread may go on with a campaign whose outcomes are no longer stored.
            if pending:
                interrupt.set()
                _cancel(pending)
            writer.keep(interrupt.under_way())


def _next_size(finished: Sequence[Finished]) -> int:
    """How many points like these a worker does in `_BATCH_SECONDS`, and at most twice as many as before."""
    seconds = sum(one.seconds for one in finished)
    at_pace = len(finished) * _BATCH_SECONDS / max(seconds, 1e-9)
    return max(1, min(_MOST_IN_BATCH, 2 * len(finished), int(at_pace)))


def _submit(executor: Executor, does: Work, job: Job, batch: Batch) -> Future[list[Finished]]:
    try:
        return executor.submit(does, job, batch)
    except RuntimeError as error:
        # The executor cannot start a thread, was shut down, or its processes were killed.
        raise _gave_up(error) from error


def _gave_up(error: Exception) -> EngpassError:
    return EngpassError(
        f"the worker processes failed: {error}", "run again with fewer `--jobs`; stored points are kept"
    )


def _drain(
    queue: SimpleQueue[Future[list[Finished]] | _Stopped], patience: float
) -> Iterator[Future[list[Finished]] | _Stopped]:
    """Wait `patience` seconds for one item, then yield all that are there."""
    with contextlib.suppress(Empty):
        yield queue.get(timeout=patience)
        while True:
            yield queue.get_nowait()


def _cancel(pending: dict[Future[list[Finished]], Batch]) -> None:
    for future in list(pending):
        future.cancel()


def _finished(future: Future[list[Finished]], batch: Batch) -> list[Finished]:
    """The first points of a batch that have ended; none if it was cancelled or interrupted."""
    if future.cancelled():
        return []
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, _engpass.Interrupted | KeyboardInterrupt):
        return []
    if isinstance(error, BrokenExecutor):
        raise error
    return [Finished(point.position, 0.0, None, _told(error)) for point in batch]


def _told(error: BaseException) -> str:
    """Text of the error with which a point failed, for the store."""
    if isinstance(error, _engpass.InvalidTestbed):
        return error.rendered
    if isinstance(error, _engpass.Unsupported | EngpassError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory\nhelp: run with fewer `--jobs`, or a smaller testbed"
    # A panic of the native module arrives as an exception of a separate class, with the panic's message.
    return f"internal error, a bug in Engpass: {type(error).__name__}: {error}"


@contextlib.contextmanager
def _signals(
    interrupt: _engpass.Interrupt, queue: SimpleQueue[Future[list[Finished]] | _Stopped]
) -> Iterator[None]:
    """On Ctrl-C, SIGTERM or SIGHUP stop the running points and wake the writer; a second one acts as usual.

    Only a second SIGHUP is ignored: a terminal that closes causes two of them, from the shell and from the
    kernel, and the second must not interrupt the cleanup.

    The handler raises nothing: a `KeyboardInterrupt` could strike in the middle of a commit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stop(number: int, _frame: FrameType | None) -> None:
        restore()
        if number == signal.SIGHUP:
            before[signal.SIGHUP] = signal.SIG_IGN
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        interrupt.set()
        queue.put(_Stopped())  # `SimpleQueue.put` may be called from a handler

    # Only default handlers are replaced, not those of `nohup`, background jobs or applications.
    usual = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    for number, handler in usual.items():
        if signal.getsignal(number) == handler:
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        restore()
