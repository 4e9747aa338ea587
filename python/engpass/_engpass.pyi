"""What the Rust side gives to Python: a handful of coarse calls, none of them per packet."""

from collections.abc import Sequence
from typing import final

from engpass.error import Diagnostic

__all__ = [
    "Campaign",
    "Interrupt",
    "Interrupted",
    "InvalidTestbed",
    "NotMeasured",
    "Probe",
    "Unsupported",
    "agent",
    "catalogue",
    "check_end",
    "emulate",
    "join_path",
    "load",
    "replay",
    "schema",
    "split_path",
    "version",
]

class InvalidTestbed(ValueError):
    """A testbed that does not pass the check, with everything that is wrong with it."""

    diagnostics: list[Diagnostic]
    rendered: str
    rendered_color: str

class Interrupted(RuntimeError):
    """The run of a point was given up because its interrupt was set."""

class NotMeasured(RuntimeError):
    """A point with real hosts has no outcome; its arguments are the cause, and the cure or `None`."""

class Unsupported(RuntimeError):
    """The engine does not support a part of the testbed."""

def version() -> str:
    """Version of the native module."""

def schema() -> str:
    """JSON Schema of testbed files."""

def catalogue() -> str:
    """All component kinds as JSON."""

def split_path(path: str) -> list[str]:
    """Parts of a dotted key; raises `ValueError`."""

def join_path(parts: Sequence[str]) -> str:
    """Dotted key of these parts, with quotes where TOML needs them."""

@final
class Interrupt:
    """Set from any thread, it makes the runs it was given to end soon."""

    def __new__(cls) -> Interrupt: ...
    def set(self) -> None:
        """Ask the runs that hold this interrupt to end."""

    def is_set(self) -> bool:
        """True if the interruption was requested."""

    def under_way(self) -> float:
        """How much of the runs under way is done: the sum of their shares of virtual time."""

@final
class Campaign:
    """A checked testbed with its variants and sweep."""

    @property
    def name(self) -> str:
        """Name in the file."""

    @property
    def description(self) -> str | None:
        """Description in the file."""

    @property
    def text(self) -> str:
        """The file's text."""

    @property
    def variants(self) -> list[str]:
        """Names of the variants, at least one."""

    @property
    def repeats(self) -> int:
        """Repeats of every point."""

    @property
    def seed(self) -> int:
        """Seed of the first repeat."""

    @property
    def duration_s(self) -> float:
        """Simulated time of one run in seconds."""

    def axes(self) -> str:
        """Swept paths and their values as JSON."""

    def topology(self) -> str:
        """Nodes, links, circuits and flows as JSON, for drawing."""

    def numbers(self, variant: str, sweep: Sequence[tuple[str, str]]) -> str:
        """Hosts, links and traffic of one point in whole numbers, as JSON; raises `InvalidTestbed`."""

    def shares_down(self, variant: str, sweep: Sequence[tuple[str, str]], repeat: int) -> str:
        """By link, if it is down in the measurement window of a repeat: for which share of it, as JSON."""

    def settings(
        self, variant: str | None, sweep: Sequence[tuple[str, str]], families: Sequence[str]
    ) -> bytes:
        """Settings of some families at one point as a tree, as JSON; without a variant those of the file."""

    def check_agents(self, variant: str, sweep: Sequence[tuple[str, str]]) -> None:
        """Raise `InvalidTestbed` if agents of real hosts cannot be asked for the traffic of one point."""

    def rendered_unmade(self, color: bool) -> str:
        """What agents cannot be asked for and no warning says, as text; empty if there is nothing."""

    def memory(self, variants: Sequence[str], sweep: Sequence[tuple[str, str]] | None) -> str:
        """Bytes of memory for this campaign, a point and a run of each engine, estimated, as JSON.

        At one point of the sweep, or where none is given the most at some of them.
        """

    def warnings(self, variants: Sequence[str] | None = None) -> str:
        """What is in order but probably not meant, as JSON; of these variants alone, if any are given."""

    def rendered_warnings(self, color: bool, variants: Sequence[str] | None = None) -> str:
        """The same as text with the lines of the file, empty if there is nothing; perhaps with colours."""

    def left_out(self, variant: str, sweep: Sequence[tuple[str, str]]) -> list[str]:
        """What `limit` and `simulate` leave out of a point: a sentence for each key."""

    def unset_keys(self, variant: str, sweep: Sequence[tuple[str, str]], engine: str) -> list[str]:
        """TCP keys of a point that this engine with real hosts cannot set: a sentence for each end."""

    def requests(self, variant: str, sweep: Sequence[tuple[str, str]], asked: bytes) -> bytes:
        """Requests to the agents of one point as JSON; raises `InvalidTestbed`, `NotMeasured`."""

    def measured(
        self, variant: str, sweep: Sequence[tuple[str, str]], repeat: int, asked: bytes, answers: bytes
    ) -> str:
        """Outcome of one point, from the answers of its agents, as JSON; raises what `requests` raises."""

    def refusals(self, variant: str, sweep: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Engines of the model that have no answer for a point, with reason and cure in two lines."""

    def run(
        self, engine: str, variant: str, sweep: Sequence[tuple[str, str]], repeat: int, interrupt: Interrupt
    ) -> str:
        """Outcome of one point as JSON; raises `InvalidTestbed`, `Unsupported`, `Interrupted`."""

    def check_captures(
        self,
        variant: str,
        sweep: Sequence[tuple[str, str]],
        points: Sequence[str],
        form: str | None,
        limit: str | None,
    ) -> None:
        """Raise `ValueError` where a point has no such link point, form or limit; and `InvalidTestbed`."""

    def capture(
        self,
        variant: str,
        sweep: Sequence[tuple[str, str]],
        repeat: int,
        captures: Sequence[tuple[str, str]],
        form: str | None,
        limit: str | None,
        interrupt: Interrupt,
    ) -> tuple[str, str]:
        """Simulate one point and write what passes link points to files: pairs of a point and a path.

        Returns the outcome as `run` does, and what each file has, as JSON. Raises what `run` and
        `check_captures` raise, and `OSError` for a file that cannot be written.
        """

    def timeline(
        self, variant: str, sweep: Sequence[tuple[str, str]], repeat: int, samples: int, interrupt: Interrupt
    ) -> str:
        """Windows, queues and events of one simulated point over time, as JSON; raises what `run` raises."""

def load(text: bytes, source: str, overrides: Sequence[tuple[str, str]], max_points: int | None) -> Campaign:
    """Check a testbed; raises `InvalidTestbed` with all that is wrong."""

def agent(max_rate: str | None, max_bytes: str | None, max_time: str | None, silence: str) -> int:
    """Be the agent of a controller on standard input and output until the channel ends; the exit code.

    Raises `ValueError` for a text that is no quantity. The interpreter lock is released.
    """

def check_end(flow: str, host: str, told: bytes) -> None:
    """Raise `NotMeasured` if an end of a flow failed or ended before its time, by its event `done`."""

def emulate(config: str) -> str:
    """Carry real packets through a testbed's network until `stop`, SIGTERM or Ctrl-C; the last status.

    `config` and what is written to standard output are described in `docs/driver.md`. Raises
    `InvalidTestbed`, `Unsupported`, `ValueError` for a wrong configuration and `OSError`. The interpreter
    lock is released.
    """

def replay(path: str) -> str:
    """The inputs of a driver's log in virtual time: whether the outputs are identical, as JSON.

    Raises `InvalidTestbed`, `Unsupported`, `ValueError` for a log of another version and `OSError`. Ctrl-C
    ends it.
    """

@final
class Probe:
    """A probe of this host: run its steps one after the other, then ask for what they found."""

    def __new__(cls, quick: bool, directory: str) -> Probe: ...
    def steps(self) -> list[str]:
        """What the steps are about, in their order."""

    def run(self, step: int) -> None:
        """Run a step, by its place among them; `ValueError` if there is none.

        Ctrl-C does not wait for its end.
        """

    def report(self) -> str:
        """What the steps found so far, as JSON."""

    def table(self, name: str) -> str:
        """The host as a table of a testbed, under this name."""
