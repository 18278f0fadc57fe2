"""The machine's disk and the one in memory behave alike; what is the machine's alone comes
after."""

import errno
import subprocess
import sys
import threading
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.env.disk import (
    FileRange,
    LockedByOther,
    RealDisk,
    RealFile,
    read_whole,
    replace_file,
)
from kafkalite.env.memory import DiskImage, MemoryDisk


@pytest.fixture(params=["real", "memory"])
def place(request, tmp_path):
    """A disk and an empty directory on it."""
    disk = RealDisk() if request.param == "real" else MemoryDisk()
    root = str(tmp_path)
    disk.make_directory(root)
    return disk, root


def test_bytes_come_back_from_where_they_were_written(place):
    disk, root = place
    file = disk.create(f"{root}/a")
    file.write_at(0, b"hello")
    file.write_at(8, memoryview(b"world"))
    assert file.read_at(0, 100) == b"hello\0\0\0world"
    assert file.read_at(3, 4) == b"lo\0\0"
    assert file.read_at(13, 4) == b""
    assert file.size() == 13
    file.truncate(4)
    file.sync()
    file.close()
    assert disk.size_of(f"{root}/a") == 4
    assert file.read_at(0, 9) == b"hell"
    assert FileRange(disk.open(f"{root}/a"), 1, 2).read() == b"el"


def test_creating_a_file_again_empties_it(place):
    disk, root = place
    disk.create(f"{root}/a").write_at(0, b"hello")
    assert disk.create(f"{root}/a").size() == 0


def test_using_a_missing_file_fails_when_it_is_used(place):
    disk, root = place
    file = disk.open(f"{root}/missing")
    with pytest.raises(FileNotFoundError):
        file.size()
    with pytest.raises(FileNotFoundError):
        disk.create(f"{root}/no/such")
    with pytest.raises(FileNotFoundError):
        disk.remove(f"{root}/missing")
    with pytest.raises(FileNotFoundError):
        disk.list_directory(f"{root}/missing")


def test_directories_hold_names(place):
    disk, root = place
    disk.make_directory(f"{root}/x/y")
    disk.create(f"{root}/x/b")
    disk.create(f"{root}/x/y/c")
    assert disk.list_directory(f"{root}/x") == ["b", "y"]
    assert disk.is_directory(f"{root}/x/y")
    assert not disk.is_directory(f"{root}/x/b")
    disk.rename(f"{root}/x", f"{root}/z")
    disk.sync_directory(root)
    assert not disk.exists(f"{root}/x")
    assert disk.exists(f"{root}/z/y/c")
    disk.remove_tree(f"{root}/z")
    assert disk.list_directory(root) == []


def test_renaming_a_file_replaces_the_target_and_keeps_the_handle_alive(place):
    disk, root = place
    file = disk.create(f"{root}/a")
    file.write_at(0, b"new")
    disk.create(f"{root}/b").write_at(0, b"older")
    disk.rename(f"{root}/a", f"{root}/b")
    file.path = f"{root}/b"
    file.write_at(3, b"er")
    assert read_whole(disk, f"{root}/b") == b"newer"
    assert disk.list_directory(root) == ["b"]


def test_replacing_a_file_leaves_only_the_new_contents(place):
    disk, root = place
    replace_file(disk, f"{root}/checkpoint", b"one")
    replace_file(disk, f"{root}/checkpoint", b"two")
    assert read_whole(disk, f"{root}/checkpoint") == b"two"
    assert disk.list_directory(root) == ["checkpoint"]


def test_a_lock_is_held_by_one(place):
    disk, root = place
    lock = disk.lock(f"{root}/.lock")
    with pytest.raises(LockedByOther):
        disk.lock(f"{root}/.lock")
    lock.release()
    disk.lock(f"{root}/.lock").release()


def test_space_is_known(place):
    disk, root = place
    total, usable = disk.space(root)
    assert 0 < usable <= total


def test_a_full_memory_disk_refuses_growth_and_takes_it_again_when_there_is_room():
    disk = MemoryDisk(capacity=10)
    disk.make_directory("/d")
    file = disk.create("/d/a")
    file.write_at(0, b"12345678")
    with pytest.raises(OSError) as failure:
        file.write_at(8, b"abc")
    assert failure.value.errno == errno.ENOSPC
    assert file.size() == 8
    disk.remove("/d/a")
    assert disk.space("/d") == (10, 10)
    disk.create("/d/b").write_at(0, b"1234567890")


def test_a_lock_names_the_process_that_holds_it(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD_LOCK, f"{tmp_path}/.lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LockedByOther) as refused:
            RealDisk().lock(f"{tmp_path}/.lock")
        assert refused.value.pid == holder.pid
        holder.communicate()


_HOLD_LOCK = """
import sys
from kafkalite.env.disk import RealDisk
lock = RealDisk().lock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_only_so_many_files_stay_open(tmp_path):
    disk = RealDisk(max_open_files=4)
    files = [disk.create(f"{tmp_path}/{index}") for index in range(20)]
    for index, file in enumerate(files):
        file.write_at(0, str(index).encode())
    assert len(disk._open) == 4
    assert [int(file.read_at(0, 9)) for file in files] == list(range(20))
    for file in files:
        file.close()
    assert len(disk._open) == 0


def test_a_file_in_use_outlives_files_used_once(tmp_path):
    disk = RealDisk(max_open_files=4)
    hot = disk.create(f"{tmp_path}/hot")
    descriptor = hot.fileno()
    for index in range(20):
        disk.create(f"{tmp_path}/{index}").size()
        assert hot.fileno() == descriptor


def test_files_of_other_threads_are_not_closed_behind_their_back(tmp_path):
    disk = RealDisk(max_open_files=2)
    theirs: list[RealFile] = []

    def work() -> None:
        theirs.extend(disk.create(f"{tmp_path}/their-{index}") for index in range(5))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    descriptors = [file.fileno() for file in theirs]
    for index in range(5):
        disk.create(f"{tmp_path}/{index}")
    assert [file.fileno() for file in theirs] == descriptors
    assert len(disk._open) == 2
    for file in theirs:
        file.close()


# --- images ---------------------------------------------------------------------------------------


@given(st.data())
def test_an_image_stays_as_it_was_whatever_comes(data):
    """Against plain bytes, over files that are written, cut, renamed and imaged again and again."""
    disk = MemoryDisk()
    plain: dict[str, bytes] = {}
    images: list[tuple[DiskImage, dict[str, bytes]]] = []
    disk.make_directory("/d")
    for _ in range(data.draw(st.integers(1, 30))):
        act = data.draw(st.sampled_from(["write", "write", "cut", "remove", "image", "back"]))
        path = f"/d/{data.draw(st.integers(0, 2))}"
        if act == "write":
            file = disk.open(path) if path in plain else disk.create(path)
            position = data.draw(st.integers(0, 40))
            written = data.draw(st.binary(min_size=1, max_size=20))
            file.write_at(position, written)
            before = plain.get(path, b"").ljust(position, b"\0")
            plain[path] = before[:position] + written + before[position + len(written) :]
        elif act == "cut" and path in plain:
            size = data.draw(st.integers(0, 50))
            disk.open(path).truncate(size)
            plain[path] = plain[path][:size].ljust(size, b"\0")
        elif act == "remove" and path in plain:
            disk.remove(path)
            del plain[path]
        elif act == "image":
            images.append((disk.image(), dict(plain)))
        elif act == "back" and images:
            image, then = data.draw(st.sampled_from(images))
            disk, plain = MemoryDisk.of(image, lambda: 0), dict(then)
    for image, then in [*images, (disk.image(), plain)]:
        again = MemoryDisk.of(image, lambda: 0)
        assert {path: read_whole(again, path) for path in then} == then
        assert again.list_directory("/d") == sorted(path[3:] for path in then)
        for path, whole in then.items():
            first, length = data.draw(st.integers(0, 50)), data.draw(st.integers(0, 50))
            assert again.open(path).read_at(first, length) == whole[first : first + length]


def test_an_image_shares_the_bytes():
    disk = MemoryDisk()
    disk.create("/large").write_at(0, bytes(50_000_000))
    before = tracemalloc_peak(lambda: [MemoryDisk.of(disk.image(), lambda: 0) for _ in range(20)])
    assert before < 1_000_000


def tracemalloc_peak(act):
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
