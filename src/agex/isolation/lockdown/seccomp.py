"""Seccomp filter of a worker: a list of allowed system calls, as a BPF program assembled here.

See seccomp(2). A call that is not on the list fails with EPERM. Some are allowed with certain
arguments only: files are opened for reading, `clone` makes threads, a signal goes to this very
process, a socket is one end of a connected pair.

A worker with a directory of its own may call what works on files, too: there the mounts and Landlock decide
which files. It makes neither devices nor pipes with a name, sets no attributes, and has no other memory files.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Mapping, Sequence

from agex.isolation.lockdown.syscalls import machine, syscall

__all__ = ["ARCHITECTURES", "program", "restrict"]

_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _EQUALS, _AND, _RETURN, _AT_LEAST = 0x20, 0x15, 0x54, 0x06, 0x35
_NUMBER, _ARCH = 0, 4
_X32 = 0x40000000

ARCHITECTURES: Mapping[str, int] = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""Name to audit number. Those of aarch64 are from its table and were not run."""

_FREE = {
    "x86_64": (
        "read:0 write:1 close:3 fstat:5 poll:7 lseek:8 mmap:9 mprotect:10 munmap:11 brk:12 rt_sigaction:13 "
        "rt_sigprocmask:14 rt_sigreturn:15 pread64:17 readv:19 writev:20 access:21 pipe:22 select:23 "
        "sched_yield:24 mremap:25 msync:26 mincore:27 madvise:28 dup:32 dup2:33 nanosleep:35 getitimer:36 "
        "setitimer:38 getpid:39 recvfrom:45 sendmsg:46 recvmsg:47 shutdown:48 getsockname:51 getpeername:52 "
        "setsockopt:54 getsockopt:55 exit:60 uname:63 getcwd:79 readlink:89 stat:4 lstat:6 "
        "gettimeofday:96 getrlimit:97 getrusage:98 sysinfo:99 times:100 getuid:102 getgid:104 geteuid:107 "
        "getegid:108 getppid:110 getpgrp:111 rt_sigpending:127 sigaltstack:131 gettid:186 futex:202 "
        "sched_getaffinity:204 epoll_create:213 getdents64:217 set_tid_address:218 restart_syscall:219 "
        "clock_gettime:228 clock_getres:229 clock_nanosleep:230 exit_group:231 epoll_wait:232 epoll_ctl:233 "
        "newfstatat:262 readlinkat:267 faccessat:269 pselect6:270 ppoll:271 set_robust_list:273 "
        "epoll_pwait:281 eventfd2:290 epoll_create1:291 dup3:292 pipe2:293 preadv:295 getcpu:309 "
        "getrandom:318 membarrier:324 statx:332 rseq:334 epoll_pwait2:441 faccessat2:439"
    ),
    "aarch64": (
        "getcwd:17 epoll_create1:20 epoll_ctl:21 epoll_pwait:22 dup:23 dup3:24 faccessat:48 close:57 "
        "pipe2:59 getdents64:61 lseek:62 read:63 write:64 readv:65 writev:66 pread64:67 preadv:69 pselect6:72 "
        "ppoll:73 readlinkat:78 newfstatat:79 fstat:80 exit:93 exit_group:94 set_tid_address:96 futex:98 "
        "set_robust_list:99 nanosleep:101 getitimer:102 setitimer:103 clock_gettime:113 clock_getres:114 "
        "clock_nanosleep:115 sched_getaffinity:123 sched_yield:124 restart_syscall:128 sigaltstack:132 "
        "rt_sigaction:134 rt_sigprocmask:135 rt_sigpending:136 rt_sigreturn:139 times:153 uname:160 "
        "getrlimit:163 getrusage:165 getcpu:168 gettimeofday:169 getpid:172 getppid:173 getuid:174 geteuid:175 "
        "getgid:176 getegid:177 gettid:178 sysinfo:179 recvfrom:207 setsockopt:208 getsockopt:209 shutdown:210 "
        "getsockname:204 getpeername:205 sendmsg:211 recvmsg:212 brk:214 munmap:215 mremap:216 mmap:222 "
        "mprotect:226 msync:227 mincore:232 madvise:233 getrandom:278 membarrier:283 statx:291 rseq:293 "
        "eventfd2:19 epoll_pwait2:441 faccessat2:439"
    ),
}  # fmt: skip
"""Calls that change nothing but this process and what it has open already."""

_OF_FILES = {
    "x86_64": (
        "open:2 pwrite64:18 sendfile:40 flock:73 fsync:74 fdatasync:75 truncate:76 ftruncate:77 chdir:80 fchdir:81 "
        "rename:82 mkdir:83 rmdir:84 creat:85 link:86 unlink:87 symlink:88 chmod:90 fchmod:91 umask:95 utime:132 "
        "statfs:137 fstatfs:138 getxattr:191 lgetxattr:192 fgetxattr:193 listxattr:194 llistxattr:195 "
        "flistxattr:196 fadvise64:221 utimes:235 openat:257 mkdirat:258 unlinkat:263 renameat:264 linkat:265 "
        "symlinkat:266 fchmodat:268 sync_file_range:277 utimensat:280 fallocate:285 pwritev:296 renameat2:316 "
        "copy_file_range:326 preadv2:327 pwritev2:328 close_range:436 fchmodat2:452"
    ),
    "aarch64": (
        "getxattr:8 lgetxattr:9 fgetxattr:10 listxattr:11 llistxattr:12 flistxattr:13 flock:32 mkdirat:34 "
        "unlinkat:35 symlinkat:36 linkat:37 renameat:38 statfs:43 fstatfs:44 truncate:45 ftruncate:46 fallocate:47 "
        "chdir:49 fchdir:50 fchmod:52 fchmodat:53 openat:56 pwrite64:68 pwritev:70 sendfile:71 fsync:82 "
        "fdatasync:83 sync_file_range:84 utimensat:88 umask:166 fadvise64:223 renameat2:276 copy_file_range:285 "
        "preadv2:286 pwritev2:287 close_range:436 fchmodat2:452"
    ),
}  # fmt: skip
"""Calls on files, for a worker that has a directory to write in."""

_CHECKED = {
    "x86_64": "fcntl:72 open:2 openat:257 clone:56 clone3:435 tgkill:234 kill:62 socketpair:53 sendto:44 prlimit64:302 ioctl:16 prctl:157",
    "aarch64": "fcntl:25 openat:56 clone:220 clone3:435 tgkill:131 kill:129 socketpair:199 sendto:206 prlimit64:261 ioctl:29 prctl:167",
}
"""Calls that are allowed with certain arguments."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_THREAD = 0x00010000  # CLONE_THREAD: a thread of this process, not another process
_AF_UNIX, _SOCK_STREAM = 1, 1
_SOCK_TYPE = 0xF
_IOCTLS = (0x5421, 0x5450, 0x5451, 0x541B)  # FIONBIO, FIONCLEX, FIOCLEX, FIONREAD
_FCNTLS = (0, 1, 2, 3, 4, 1030, 1033, 1034)
"""Duplicate, get and set flags, seals: no locks, no leases, and above all no owner that gets signals."""
_LOCKS = (5, 6, 7, 36, 37, 38)
"""To ask for, to set, and to wait for locks of a process and of an open file."""
_SET_NAME, _SET_VMA = 15, 0x53564D41


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value & 0xFFFFFFFF)


def _numbers(text: str) -> dict[str, int]:
    return {name: int(number) for name, _, number in (one.partition(":") for one in text.split())}


def _fail(number: int) -> bytes:
    return _op(_RETURN, _ERRNO | number)


_PASS = _op(_RETURN, _ALLOW)


def _arg(index: int, *, high: bool = False) -> int:
    return 16 + 8 * index + (4 if high else 0)


def _needs(index: int, value: int, mask: int = 0xFFFFFFFF) -> list[bytes]:
    """Go on only if an argument, masked, is a value; else fail. Only its low half is looked at."""
    masked = [_op(_AND, mask)] if mask != 0xFFFFFFFF else []
    return [_op(_LOAD, _arg(index)), *masked, _op(_EQUALS, value, 1, 0), _fail(errno.EPERM)]


def _is_null(index: int) -> list[bytes]:
    """Go on only if a pointer is null; both its halves are looked at."""
    return [
        *_needs(index, 0),
        _op(_LOAD, _arg(index, high=True)),
        _op(_EQUALS, 0, 1, 0),
        _fail(errno.EPERM),
    ]


def _rules(pid: int, *, writes: bool) -> dict[str, list[bytes]]:
    """Return the check of each call; a call that reaches its end is allowed."""
    return {
        "open": [*_needs(1, 0, _WRITES), _PASS],
        "openat": [*_needs(2, 0, _WRITES), _PASS],
        "clone": [*_needs(0, _THREAD, _THREAD), _PASS],
        "clone3": [_fail(errno.ENOSYS)],  # its flags are in memory; callers fall back to clone
        "tgkill": [*_needs(0, pid), _PASS],
        "kill": [*_needs(0, pid), _PASS],
        "socketpair": [*_needs(0, _AF_UNIX), *_needs(1, _SOCK_STREAM, _SOCK_TYPE), _PASS],
        "sendto": [*_is_null(4), _PASS],
        "prlimit64": [*_needs(0, 0), *_is_null(2), _PASS],
        "ioctl": _one_of(1, _IOCTLS, errno.ENOTTY),  # as isatty() expects of anything but a terminal
        "fcntl": _one_of(1, (*_FCNTLS, *_LOCKS) if writes else _FCNTLS, errno.EPERM),
        "prctl": _one_of(0, (_SET_NAME, _SET_VMA), errno.EPERM),
    }


def _one_of(index: int, values: Sequence[int], otherwise: int) -> list[bytes]:
    """Allow a call if an argument is one of these values; else fail as told."""
    checks = [_op(_EQUALS, value, len(values) - at, 0) for at, value in enumerate(values)]
    return [_op(_LOAD, _arg(index)), *checks, _fail(otherwise), _PASS]


def program(architecture: str, pid: int, *, writes: bool = False) -> bytes:
    """Assemble the filter.

    Args:
        architecture: one of `ARCHITECTURES`.
        pid: of this process, as it sees itself.
        writes: whether it has a directory to write in.
    """
    parts = [_op(_LOAD, _ARCH), _op(_EQUALS, ARCHITECTURES[architecture], 1, 0), _op(_RETURN, _KILL)]
    parts += [_op(_LOAD, _NUMBER)]
    if architecture == "x86_64":
        parts += [_op(_AT_LEAST, _X32, 0, 1), _op(_RETURN, _KILL)]
    checked, rules = _numbers(_CHECKED[architecture]), _rules(pid, writes=writes)
    free = _numbers(_FREE[architecture])
    if writes:
        free |= _numbers(_OF_FILES[architecture])
    for name, number in checked.items():
        if name in free:
            continue
        rule = rules[name]
        parts += [_op(_EQUALS, number, 0, len(rule)), *rule]
    parts += _allowed(free.values())
    return b"".join([*parts, _fail(errno.EPERM)])


def _allowed(numbers: Iterable[int]) -> list[bytes]:
    return [op for number in sorted(numbers) for op in (_op(_EQUALS, number, 0, 1), _PASS)]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_FILTER, _TSYNC = 1, 1


def restrict(*, writes: bool = False) -> None:
    """Allow this process, all its threads included, no other calls from now on.

    It must have given up to gain privileges before (``PR_SET_NO_NEW_PRIVS``).

    Args:
        writes: whether it has a directory to write in.
    """
    code = program(machine(), os.getpid(), writes=writes)
    buffer = ctypes.create_string_buffer(code, len(code))
    assembled = _Program(len(code) // 8, ctypes.addressof(buffer))
    syscall(
        "seccomp",
        _SECCOMP[machine()],
        ctypes.c_uint(_SET_FILTER),
        ctypes.c_uint(_TSYNC),
        ctypes.byref(assembled),
    )
