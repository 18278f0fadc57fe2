"""A Python as on a system that is no Linux: what Windows or macOS lack is taken away, then a module
is run as a program.

    python -m tests.unit.testing.elsewhere MODULE ARGUMENTS
"""

import asyncio
import os
import runpy
import select
import selectors
import signal
import socket
import sys
import time

MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "uvloop")
GONE = {
    os: "O_CLOEXEC O_DIRECTORY O_NONBLOCK fchmod fdatasync fork forkpty lockf memfd_create"
    " posix_fallocate posix_fadvise pread preadv pwrite pwritev readv register_at_fork sendfile"
    " statvfs sysconf writev",
    select: "epoll poll",
    signal: "SIGALRM SIGHUP SIGKILL SIGPIPE SIGUSR1 SIGUSR2 pthread_kill setitimer",
    socket: "MSG_MORE MSG_DONTWAIT SO_REUSEPORT",
    time: "clock_gettime pthread_getcpuclockid",
}  # fmt: skip
OF_SOCKETS = ("sendmsg", "recvmsg", "recvmsg_into")


class _Without(type):
    def __getattribute__(cls, name):
        if name in OF_SOCKETS:
            raise AttributeError(name)
        return super().__getattribute__(name)


class Socket(socket.socket, metaclass=_Without):
    """One that takes one buffer at a time."""

    def __getattribute__(self, name):
        if name in OF_SOCKETS:
            raise AttributeError(name)
        return super().__getattribute__(name)


class Proactor(asyncio.SelectorEventLoop):
    """What `asyncio.new_event_loop` gives on Windows: it watches no sockets."""


def not_there(*_):
    raise NotImplementedError


def take_away() -> None:
    other = [
        (Proactor, "add_reader", not_there), (Proactor, "add_writer", not_there),
        (asyncio.SelectorEventLoop, "add_signal_handler", not_there),
        (asyncio, "new_event_loop", Proactor), (socket, "socket", Socket),
        (selectors, "DefaultSelector", selectors.SelectSelector),
        *((sys.modules, name, None) for name in MODULES),
    ]  # fmt: skip
    for place, name, value in other:
        if isinstance(place, dict):
            place[name] = value
        else:
            setattr(place, name, value)
    for module, names in GONE.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)


if __name__ == "__main__":
    take_away()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
