"""Many traces: one after another here, or spread over a Dask cluster.

One trace is one task. A task never raises: whatever goes wrong is a ``TraceFailure`` with one line. Dask computes the traces of
a lost worker again elsewhere and suspects all of them; those that it gives up are computed once more, one at a time, and only
one that kills its worker again is a failure. Few tasks are in flight, so the scheduler never holds ten thousand of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from overhead_lens.errors import OverheadLensError, UsageError, in_one_line, internal_error
from overhead_lens.readers.recording import Reading, read_recording
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.taxonomy.rules import Rule, all_rules
from overhead_lens.traces.analyzer import analyze_trace
from overhead_lens.traces.model import TraceAnalysis, TraceFailure

Result = TraceAnalysis | TraceFailure

LOCAL = "local"

_CONNECT_TIMEOUT_S = 5
_TASKS_PER_THREAD = 2
_QUIET = {"logging": {"distributed": "critical", "distributed.nanny": "critical", "distributed.scheduler": "critical"}}


def analyze_here(
    paths: Sequence[Path],
    rules: Path | None = None,
    begun: Mapping[Path, Reading] | None = None,
    *,
    critical_path: bool = False,
) -> Iterator[Result]:
    """The analyses one after another, in this process; ``begun`` are traces that are being read already."""
    options = _options(paths, critical_path=critical_path)
    loaded, begun = all_rules(rules), dict(begun or {})
    for path in paths:
        yield analyze_file(str(path), loaded, begun.pop(path, None), **options)


def analyze_on(
    scheduler: str, paths: Sequence[Path], rules: Path | None = None, *, critical_path: bool = False
) -> Iterator[Result]:
    """The analyses on a Dask cluster, in order of completion.

    Args:
        scheduler: ``local`` for one worker process per core of this machine, or the address of a scheduler whose workers
            see the same files under the same paths.

    Raises:
        UsageError: dask.distributed is not installed, or the scheduler does not answer.
    """
    loaded = all_rules(rules)
    absolute = {str(path.absolute()): str(path) for path in paths}  # not resolved: two names of one file are two traces
    options = _options(paths, critical_path=critical_path)
    with _client(scheduler) as client:
        for result in _computed(client, list(absolute), loaded, **options):
            yield replace(result, path=absolute[result.path])


def analyze_file(
    path: str,
    rules: tuple[Rule, ...],
    begun: Reading | None = None,
    *,
    critical_path: bool = False,
    is_rank: bool = False,
) -> Result:
    """The analysis of one file; anything that goes wrong is a failure with its reason."""
    try:
        trace = read_recording(Path(path)) if begun is None else begun()
        return analyze_trace(trace, Classifier(rules), critical_path=critical_path, is_rank=is_rank)
    except OverheadLensError as error:
        return TraceFailure(path, str(error))
    except MemoryError:
        return TraceFailure(path, f"{path} does not fit into memory")
    except Exception as error:
        return TraceFailure(path, f"{path}: {internal_error(error)}")


def _options(paths: Sequence[Path], *, critical_path: bool) -> dict[str, bool]:
    """Options of an analysis; with several traces, the chains for a path over ranks are kept."""
    return {"critical_path": critical_path, "is_rank": len(paths) > 1}


def _computed(client: Any, paths: list[str], rules: tuple[Rule, ...], **options: bool) -> Iterator[Result]:
    """Results as they come, with a bounded number of tasks in flight."""
    from distributed import as_completed

    waiting = iter(paths)
    shared = client.scatter(rules, broadcast=True) if paths else None
    limit = max(2, _TASKS_PER_THREAD * sum(client.nthreads().values()))
    running = as_completed()
    path_of, suspects = {}, []

    def submit_next() -> None:
        path = next(waiting, None)
        if path is not None:
            future = client.submit(analyze_file, path, shared, pure=False, retries=0, **options)
            path_of[future.key] = path
            running.add(future)

    for _ in range(min(limit, len(paths))):
        submit_next()
    for future in running:
        path = path_of.pop(future.key)
        try:
            yield future.result()
        except Exception:
            suspects.append(path)
        future.release()
        submit_next()
    yield from (_alone(client, path, rules, **options) for path in suspects)


def _alone(client: Any, path: str, rules: tuple[Rule, ...], **options: bool) -> Result:
    try:
        result: Result = client.submit(analyze_file, path, rules, pure=False, **options).result()
    except Exception as error:
        return TraceFailure(path, _lost(path, error))
    return result


def _lost(path: str, error: Exception) -> str:
    if type(error).__name__ == "KilledWorker":
        return f"{path}: every worker that took it was killed (out of memory?)"
    return f"{path}: the cluster gave no result: {in_one_line(error)}"


@contextmanager
def _client(scheduler: str) -> Iterator[Any]:
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise UsageError("--dask needs dask.distributed: pip install distributed") from None
    with dask.config.set(_QUIET):
        if scheduler == LOCAL:
            with (
                LocalCluster(
                    threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=60
                ) as cluster,
                Client(cluster) as client,
            ):
                yield client
            return
        try:
            client = Client(scheduler, timeout=_CONNECT_TIMEOUT_S)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise UsageError(f"no Dask scheduler answers at {scheduler}: {reason}") from None
        with client:
            if not client.nthreads():
                raise UsageError(f"the Dask scheduler at {scheduler} has no workers")
            yield client
