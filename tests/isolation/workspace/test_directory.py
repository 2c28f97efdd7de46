"""What code writes in the directory of its worker becomes the workspace, and what the host writes is found there.

The worker may be hostile: at level kernel it reaches nothing else by this directory.

Stopped by: isolation.workspace.directory, isolation.lockdown.own_directory, isolation.lockdown.seccomp, isolation.lockdown.landlock.
"""

from __future__ import annotations

import os

import pytest
from directory_worker import Worker, content, do_anything

from agex.errors import EvalError
from agex.files import MountedFiles, Workspace, connect_fs
from agex.isolation import KernelExecutor, ProcessExecutor
from agex.isolation.kernel import missing
from agex.isolation.workspace.lower import lowers

WALLS = pytest.mark.skipif(bool(missing()), reason=f"the kernel level does not hold here: {missing()}")
LEVELS = [pytest.param("kernel", marks=WALLS), "process"]


@pytest.fixture(scope="module")
def executors():
    made = {"process": ProcessExecutor()}
    if not missing():
        made["kernel"] = KernelExecutor()
    yield made
    for each in made.values():
        each.close()


@pytest.fixture(params=LEVELS)
def level(request, executors):
    return executors[request.param]


@pytest.fixture
def kernel(executors):
    if "kernel" not in executors:
        pytest.skip(f"the kernel level does not hold here: {missing()}")
    return executors["kernel"]


@pytest.fixture
def files():
    made = connect_fs(type="virtual")
    made.write("old.txt", "old")
    made.write("folder/deep/in.txt", "in")
    made.write("folder/out.txt", "out")
    return made


# -- from the worker to the workspace --------------------------------------------------------------


def test_the_workspace_is_the_current_directory(level, files):
    with Worker(level, files) as worker:
        shown = worker.run("import os; print(sorted(os.listdir()), open('folder/deep/in.txt').read())")
    assert shown == "['folder', 'old.txt'] in\n"


def test_new_changed_and_removed_files_are_changes_of_the_workspace(level, files):
    with Worker(level, files) as worker:
        worker.run("""
            import os
            open("new.txt", "w").write("new")
            open("old.txt", "a").write(" and more")
            os.remove("folder/out.txt")
            os.makedirs("a/b")
        """)
        assert content(files) == {
            "a": None, "a/b": None, "folder": None, "folder/deep": None, "folder/deep/in.txt": b"in",
            "new.txt": b"new", "old.txt": b"old and more",
        }  # fmt: skip
        worker.run("os.remove('new.txt'); os.rmdir('a/b')")
        assert "new.txt" not in content(files)
        assert "a/b" not in content(files)
        assert "a" in content(files)


def test_the_time_of_the_last_write_is_that_of_the_worker(level, files):
    with Worker(level, files) as worker:
        worker.run("import os; open('new.txt', 'w').write('x'); os.utime('new.txt', (10**9, 10**9))")
    assert files.stat("new.txt").modified_at == "2001-09-09T01:46:40+00:00"


@pytest.mark.parametrize("move", ["os.rename", "os.replace", "shutil.move"])
def test_a_directory_that_was_there_before_can_be_moved(level, files, move):
    with Worker(level, files) as worker:
        worker.run(f"import os, shutil; {move}('folder', 'moved')")
    assert content(files) == {
        "moved": None, "moved/deep": None, "moved/deep/in.txt": b"in", "moved/out.txt": b"out", "old.txt": b"old",
    }  # fmt: skip


def test_a_directory_can_become_a_file_and_a_file_a_directory(level, files):
    with Worker(level, files) as worker:
        worker.run("""
            import os, shutil
            shutil.rmtree("folder"); open("folder", "w").write("now a file")
            os.remove("old.txt"); os.mkdir("old.txt"); open("old.txt/in", "w").write("now inside")
        """)
        assert content(files) == {"folder": b"now a file", "old.txt": None, "old.txt/in": b"now inside"}
        worker.run("""
            os.remove("folder"); os.mkdir("folder"); open("folder/out.txt", "w").write("again")
            shutil.rmtree("old.txt"); open("old.txt", "w").write("again")
        """)
        assert content(files) == {"folder": None, "folder/out.txt": b"again", "old.txt": b"again"}


def test_a_directory_that_is_made_again_has_nothing_of_before(level, files):
    with Worker(level, files) as worker:
        worker.run("import os, shutil; shutil.rmtree('folder'); os.mkdir('folder')")
    assert content(files) == {"folder": None, "old.txt": b"old"}


def test_a_write_through_a_mapping_that_lives_on_is_found(level, files):
    with Worker(level, files) as worker:
        worker.run("""
            import mmap
            file = open("map", "wb+"); file.truncate(4096)
            memory = mmap.mmap(file.fileno(), 4096); memory[:5] = b"first"
        """)
        assert files.read("map")[:5] == b"first"
        worker.run("memory[:5] = b'again'")
        assert files.read("map")[:5] == b"again"
        worker.run("memory[:5] = b'third'; memory.close(); file.close()")
        assert files.read("map")[:5] == b"third"


def test_writes_of_one_size_in_quick_succession_are_all_found(level, files):
    with Worker(level, files) as worker:
        for number in range(100, 130):
            worker.run(f"_ = open('n', 'w').write('{number}')")
            assert files.read("n") == str(number).encode()


def test_a_thread_that_writes_on_stands_still_between_actions(level, files):
    with Worker(level, files) as worker:
        worker.run("""
            import threading, time
            def write():
                while not done.is_set():
                    time.sleep(0.001)
                    open("t", "w").write(str(time.monotonic_ns()))
            done = threading.Event()
            thread = threading.Thread(target=write); thread.start()
            while True:
                try:
                    if open("t").read(): break
                except FileNotFoundError: pass
        """)
        first = files.read("t")
        worker.run("done.set(); thread.join()")
        assert files.read("t") > first


# -- from the host to the worker ---------------------------------------------------------------------


def test_what_the_host_changes_is_there_at_the_next_action(level, files):
    with Worker(level, files) as worker:
        worker.run("open('own.txt', 'w').write('own')")
        files.write("from-host/new.txt", "new")
        files.write("old.txt", "other")
        files.write("own.txt", "also other")
        files.remove("folder/out.txt")
        shown = worker.run("""
            import os
            print(sorted(os.listdir()), os.listdir("folder"), open("from-host/new.txt").read())
            print(open("old.txt").read(), open("own.txt").read())
        """)
        assert shown == ("['folder', 'from-host', 'old.txt', 'own.txt'] ['deep'] new\nother also other\n")
        worker.run("os.remove('from-host/new.txt')")
        assert not files.exists("from-host/new.txt")
        assert files.read("own.txt") == b"also other"


def test_a_file_that_only_the_host_changes_is_never_written_back(level, files):
    with Worker(level, files) as worker:
        worker.run("x = open('old.txt').read()")
        files.write("old.txt", "of the host")
        worker.run("y = open('old.txt').read()")
        worker.run("z = 1")
        assert files.read("old.txt") == b"of the host"
        assert worker.run("print(x, y)") == "old of the host\n"


def test_each_worker_begins_with_the_files_of_its_time(level, files):
    with Worker(level, files) as first:
        first.run("open('one', 'w').write('1')")
        with Worker(level, files) as second:
            assert second.run("import os; print(sorted(os.listdir()))") == "['folder', 'old.txt', 'one']\n"
            second.run("os.remove('old.txt')")
        assert first.run("import os; print(sorted(os.listdir()))") == "['folder', 'one']\n"


def test_workers_of_one_workspace_do_not_write_into_each_others_directory(level):
    files = connect_fs(type="virtual")
    files.write("shared", "before")
    copies = [files.fresh() for _ in range(3)]
    workers = [Worker(level, copy) for copy in copies]
    for number, worker in enumerate(workers):
        worker.run(f"open('shared', 'w').write('{number}')")
    for number, worker in enumerate(workers):
        assert worker.run("print(open('shared').read())") == f"{number}\n"
        worker.session.close()
    assert [copy.read("shared") for copy in copies] == [b"0", b"1", b"2"]
    assert files.read("shared") == b"before"


def test_mounted_trees_are_there_and_cannot_be_changed_for_good(level, files):
    skill = connect_fs(type="virtual")
    skill.write("guide.md", "how to")
    tree = Workspace(MountedFiles(files.files, {"/skills/one": skill.files}))
    with Worker(level, tree) as worker:
        assert worker.run("print(open('skills/one/guide.md').read())") == "how to\n"
        shown = worker.run("_ = open('skills/one/guide.md', 'w').write('nonsense')")
    assert shown == "Note: not kept in the workspace: skills/one/guide.md (Read-only file system).\n"
    assert skill.read("guide.md") == b"how to"


def test_a_directory_of_the_host_is_written_back_within_its_quota(level, tmp_path):
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "old.txt").write_text("old")
    (root / "link").symlink_to("/etc/passwd")
    files = connect_fs(type="isolated", root=root, max_size_mb=1)
    with Worker(level, files) as worker:
        worker.run("""
            import os
            print(sorted(os.listdir()))
            open("sub/old.txt", "a").write(" more"); open("new.txt", "w").write("new")
            os.symlink("/etc/shadow", "out")
        """)
        assert sorted(path.name for path in root.iterdir()) == ["link", "new.txt", "sub"]
        assert (root / "sub" / "old.txt").read_text() == "old more"
        files.write("host.txt", "host")
        worker.run("_ = open('new.txt', 'a').write(open('host.txt').read())")
    assert (root / "new.txt").read_text() == "newhost"


# -- a differential test: the workspace is what the directory is ---------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_after_any_operations_the_workspace_is_what_the_directory_is(level, seed):
    do_anything(level, seed)


# -- what is not kept ---------------------------------------------------------------------------------


def test_what_is_no_file_is_named_once_and_dropped(level, files):
    with Worker(level, files) as worker:
        first = worker.run("import os; os.symlink('/etc/passwd', 'link'); os.symlink('.', 'dot')")
        again = worker.run("x = 1")
    assert first == "Note: not kept in the workspace: dot (it is a link), link (it is a link).\n"
    assert again == ""
    assert not files.exists("link")


def test_a_file_that_becomes_a_link_is_a_file_no_more(level, files):
    with Worker(level, files) as worker:
        worker.run("import os; os.remove('old.txt'); os.symlink('/etc/passwd', 'old.txt')")
        assert not files.exists("old.txt")
        worker.run("os.remove('old.txt'); open('old.txt', 'w').write('back')")
    assert files.read("old.txt") == b"back"


def test_names_that_are_no_text_are_named_and_other_names_are_kept(level, files):
    with Worker(level, files) as worker:
        shown = worker.run(r"""
            import os
            for name in (b"\xff\xfe", b"line\nend", b"\x1b[31mred", b"a" * 255):
                open(name, "w").close()
        """)
    assert shown == r"Note: not kept in the workspace: \udcff\udcfe (its name is not UTF-8)." + "\n"
    assert files.isfile("line\nend")
    assert files.isfile("\x1b[31mred")
    assert files.isfile("a" * 255)


def test_what_a_killed_action_wrote_is_dropped(level, files):
    with Worker(level, files, seconds=0.5) as worker:
        worker.run("open('kept', 'w').write('kept')")
        error = worker.session.run("open('lost', 'w').write('lost'); sum(range(10**13))").error
        assert error is not None
        assert not files.exists("lost")
        assert worker.run("import os; print(sorted(os.listdir()))") == "['folder', 'kept', 'old.txt']\n"


def test_files_and_variables_of_an_action_are_kept_or_lost_together(level, files):
    with Worker(level, files) as worker:
        worker.run("x = 1; open('one', 'w').write('1')")
        assert worker.session.namespace["x"] is not None
        before, at = content(files), files.stat("old.txt")
        worker.run("""
            import os, shutil
            x = 2
            shutil.rmtree("folder"); os.mkdir("new"); open("new/file", "w").write("2")
            open("one", "w").write("2"); open("old.txt", "a").write("2")
        """)
        assert content(files) != before
        worker.session._connection.worker.terminate()
        with pytest.raises(EvalError):
            _ = worker.session.namespace
        assert content(files) == before
        assert files.stat("old.txt") == at
        assert worker.run("print(open('one').read())") == "1\n"


def test_files_outside_of_the_workspace_are_not_kept(level, files):
    before = content(files)
    with Worker(level, files) as worker:
        shown = worker.run("""
            import os, tempfile, pathlib
            with tempfile.NamedTemporaryFile("w", delete=False) as file: file.write("x")
            (pathlib.Path.home() / "cache").write_text("x")
            print(pathlib.Path.home() == pathlib.Path(tempfile.gettempdir()))
        """)
    assert shown == "True\n"
    assert content(files) == before


def test_a_change_of_directory_changes_nothing_of_what_is_kept(level, files):
    with Worker(level, files) as worker:
        worker.run("import os; os.chdir('folder'); open('new.txt', 'w').write('new')")
        files.write("host.txt", "host")
        worker.run("assert open('../host.txt').read() == 'host'")
    assert files.read("folder/new.txt") == b"new"


# -- bounds -------------------------------------------------------------------------------------------


def test_max_size_mb_is_held_by_the_kernel_and_what_was_there_stays(kernel):
    files = connect_fs(type="virtual", max_size_mb=1)
    files.write("old.txt", "old")
    with Worker(kernel, files) as worker:
        assert "No space left" in worker.error("""
            for number in range(20): open(f"{number}", "wb").write(bytes(100_000))
        """)
        worker.run("import os; [os.remove(name) for name in os.listdir() if name != 'old.txt']")
        assert "File too large" in worker.error("os.truncate('old.txt', 1 << 40)")
    assert content(files) == {"old.txt": b"old"}


def test_more_than_the_workspace_may_hold_is_named_and_not_kept(level):
    files = connect_fs(type="virtual", max_size_mb=1)
    files.write("before", bytes(900_000))
    with Worker(level, files) as worker:
        shown = worker.run("_ = open('more', 'wb').write(bytes(500_000))")
        assert "Note: not kept in the workspace: more (VFS size limit exceeded" in shown
        assert files.list() == ["before"]
        worker.run("import os; os.remove('before'); _ = open('more', 'ab').write(b'x')")
    assert {path: len(files.read(path)) for path in files.list()} == {"more": 500_001}


def test_names_without_end_stop_at_the_kernels_bound(kernel, files):
    with Worker(kernel, files, seconds=60.0) as worker:
        assert "No space left" in worker.error("""
            for number in range(10**6): open(f"n{number}", "x").close()
        """)
        shown = worker.run(
            "import os; left = [os.remove(f'n{n}') for n in range(10**6) if os.path.exists(f'n{n}')]"
        )
    assert "Traceback" not in shown
    assert set(content(files)) == {"folder", "folder/deep", "folder/deep/in.txt", "folder/out.txt", "old.txt"}


def test_a_deep_tree_is_named_and_harms_nothing(kernel, files):
    with Worker(kernel, files) as worker:
        shown = worker.run("""
            import os
            for _ in range(3000): os.mkdir("d"); os.chdir("d")
            os.chdir("/workspace")
        """)
        assert "more than 64 directories deep" in shown
        assert worker.run("print(open('old.txt').read())") == "old\n"


# -- walls --------------------------------------------------------------------------------------------


def test_nothing_else_can_be_written(kernel, files, tmp_path):
    with Worker(kernel, files) as worker:
        shown = worker.run(f"""
            import os, errno
            def attempt(work):
                try:
                    work()
                except OSError as error:
                    return errno.errorcode[error.errno]
                return "done"
            for path in ("/x", "/usr/lib/x", "/etc/passwd", "/dev/x", "/old/x", "/stage/x", os.__file__,
                         {str(tmp_path)!r} + "/x", "/proc/self/mem", "/sys/x"):
                print(path, attempt(lambda: open(path, "w")))
            for path in ("/usr/lib", os.path.dirname(os.__file__), "/etc", "/"):
                print(path, attempt(lambda: os.mkdir(path + "/new")))
                print(path, attempt(lambda: os.rename(path, "mine")))
                print(path, attempt(lambda: os.symlink("x", path + "/link")))
            print("link", attempt(lambda: os.link(os.__file__, "module")))
            print("device", attempt(lambda: os.open("/dev/zero", os.O_WRONLY)))
        """)
    assert "done" not in shown


def test_what_is_no_file_cannot_even_be_made(kernel, files):
    with Worker(kernel, files) as worker:
        shown = worker.run("""
            import os, errno, socket
            def attempt(work):
                try:
                    work()
                except OSError as error:
                    return errno.errorcode[error.errno]
                return "done"
            for at in (".", "/tmp"):
                print(attempt(lambda: os.mkfifo(at + "/pipe")), attempt(lambda: os.mknod(at + "/node", 0o600 | 0o020000, 0)))
                print(attempt(lambda: os.setxattr(at, "user.overlay.opaque", b"y")))
                print(attempt(lambda: os.chown(at, 0, 0)))
            print(attempt(lambda: os.memfd_create("x")), attempt(lambda: socket.socket()))
            print(attempt(lambda: os.chroot(".")), attempt(lambda: os.execv("/bin/true", ["true"])))
        """)
    assert "done" not in shown


def test_no_descriptor_of_the_host_is_left_in_the_worker(kernel, files):
    with Worker(kernel, files) as worker:
        shown = worker.run("""
            import os, stat
            for number in range(64):
                try:
                    mode = os.fstat(number).st_mode
                except OSError:
                    continue
                if stat.S_ISDIR(mode): print("directory", number)
        """)
    assert shown == ""


def test_a_guarded_worker_may_do_none_of_it(kernel):
    from hostile import attempt

    def write():
        import os

        done = []
        for work in (
            lambda: os.open("/tmp/x", os.O_WRONLY | os.O_CREAT),
            lambda: os.mkdir("/tmp/x"),
            lambda: os.chdir("/tmp"),
            lambda: os.umask(0),
            lambda: os.open("/etc/passwd", os.O_RDONLY),
            lambda: os.truncate("/dev/null", 0),
            lambda: os.lstat("/workspace"),
        ):
            try:
                work()
            except OSError as error:
                done.append(error.errno)
            else:
                done.append(0)
        return done

    assert "0" not in attempt(kernel, write).strip("[]").split(", ")


# -- nothing is left ----------------------------------------------------------------------------------


def mounts():
    with open("/proc/self/mountinfo") as file:
        return [line for line in file if "agex" in line or "/stage" in line]


def test_a_worker_that_ends_leaves_no_mount_and_no_descriptor(kernel, files):
    with Worker(kernel, files) as worker:  # the zygote of the policy has its own
        worker.run("x = 1")
    before = len(os.listdir("/proc/self/fd"))
    for number in range(20):
        worker = Worker(kernel, files, seconds=0.3)
        if number % 2:
            worker.session.run("import os; os._exit(0)")
        else:
            worker.run("open('x', 'w').write('x')")
        worker.session.close()
    assert len(os.listdir("/proc/self/fd")) <= before
    assert mounts() == []
    assert all(each.users == 0 for each in lowers.held())
