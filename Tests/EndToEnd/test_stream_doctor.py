"""`roost doctor` says what is wrong with the folder of streams, and with the statement that writes rows."""

import contextlib
import json
import os
import subprocess
import tempfile

import pytest

from support.http import HTTPConnection
from support.streams import Stream

pytestmark = pytest.mark.anyio

STATEMENT = "insert into reply (name, body) values ($1, $2) returning id"


def findings(hub, **settings):
    """What it finds of streams: severity and sentence of each."""
    report = json.loads(hub.run("doctor", "--json", check=False, **settings).stdout)
    return [(one["severity"], one["message"]) for one in report["findings"] if one["subject"] == "streams"]


def finding(hub, **settings):
    found = findings(hub, **settings)
    assert len(found) == 1, found
    return found[0]


def test_a_folder_that_is_right(own_hub):
    # /tmp, where tests have their folders, may be in memory; of little there is enough on any disk.
    folder = f"{os.getcwd()}/streams"
    severity, said = finding(
        own_hub, ROOST_STREAMS_DIRECTORY=folder, ROOST_STREAMS_TOTAL_BYTES="1048576", ROOST_STREAMS_COUNT="1")
    assert (severity, said) == ("good", f"Streams can be kept in {folder}.") or "(tmpfs)" in said
    assert not os.path.exists(folder), "it makes nothing"
    assert finding(own_hub, ROOST_STREAMS_DIRECTORY="") == ("good", "The hub serves no streams (streams.directory is not set).")


def test_a_folder_that_cannot_be(own_hub, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    severity, said = finding(own_hub, ROOST_STREAMS_DIRECTORY=str(file))
    assert severity == "error" and "is not a folder" in said
    severity, said = finding(own_hub, ROOST_STREAMS_DIRECTORY=str(tmp_path / "not" / "there"))
    assert severity == "error" and "cannot be made" in said and "No such file" in said
    severity, said = finding(own_hub, ROOST_STREAMS_DIRECTORY=f"{file}/streams")
    assert severity == "error" and "Not a directory" in said


def test_a_folder_that_is_not_writable(own_hub):
    """As root everything is, but what the kernel itself keeps."""
    severity, said = finding(own_hub, ROOST_STREAMS_DIRECTORY="/proc/sys")
    assert severity == "error" and "cannot be written" in said, said


def test_files_that_were_put_aside_are_named(own_hub):
    folder = own_hub.environment["ROOST_STREAMS_DIRECTORY"]
    os.mkdir(folder)
    for number in range(2):
        open(f"{folder}/{number}.stream.damaged", "w").close()
    assert [said for severity, said in findings(own_hub) if severity == "warning" and "2 files that no stream could be made of" in said]


def test_a_route_that_is_none(own_hub):
    found = findings(own_hub, ROOST_STREAMS_ROUTES="/reply=reply/{conversation}, /broken")
    assert [(severity, "`/broken`" in said) for severity, said in found if "streams.routes" in said] == [("error", True)]


@contextlib.contextmanager
def in_memory(size):
    """A tmpfs, which takes the right to mount one."""
    with tempfile.TemporaryDirectory(prefix="roost-e2e-tmpfs-") as folder:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size},nr_inodes=100", "tmpfs", folder], capture_output=True, text=True)
        if mounted.returncode:
            pytest.skip(f"nothing can be mounted here: {mounted.stderr}")
        try:
            yield folder
        finally:
            subprocess.run(["umount", folder], check=True)


def test_a_folder_in_memory_with_little_room(own_hub):
    with in_memory("16m") as folder:
        found = findings(own_hub, ROOST_STREAMS_DIRECTORY=f"{folder}/streams")
        assert [severity for severity, _ in found] == ["warning"] * 3
        memory, room, files = (said for _, said in found)
        assert "is in memory (tmpfs)" in memory
        assert "has 16 MiB left, and streams may grow to 256 (streams.total_bytes)" in room
        assert "more files, and there may be 10000 streams" in files
        # It is enough for less; and what streams have already, they need not find.
        os.mkdir(f"{folder}/streams")
        with open(f"{folder}/streams/1.stream", "wb") as file:
            file.write(b"x" * 10_000_000)
        found = findings(own_hub, ROOST_STREAMS_DIRECTORY=f"{folder}/streams", ROOST_STREAMS_TOTAL_BYTES="15000000",
                         ROOST_STREAMS_COUNT="50")
        assert [said for _, said in found if "tmpfs" not in said] == []


def test_a_disk_that_is_full(own_hub):
    with in_memory("2m") as folder:
        with open(f"{folder}/something", "wb") as file:
            file.write(b"x" * 1_500_000)
        found = findings(own_hub, ROOST_STREAMS_DIRECTORY=folder)
        assert [said for severity, said in found if severity == "error"] == [
            f"The disk of {folder} is full, so appends are refused; make room on it."]


def test_a_statement_that_fits_the_database(own_hub, cluster):
    settings = {"ROOST_STREAMS_DIRECTORY": "", "ROOST_STREAMS_ON_CLOSE": STATEMENT}

    def found(**more):
        none, (severity, said) = findings(own_hub, **{**settings, **more})
        assert none[1].startswith("The hub serves no streams")
        return severity, said
    with cluster.connect(own_hub.database) as sql:
        severity, said = found()
        assert severity == "error" and 'relation "reply" does not exist' in said
        assert own_hub.run("doctor", check=False, **settings).returncode == 69
        sql.execute("create table reply (id serial primary key, name text, body text)")
        sql.execute("revoke all on reply from service_role")
        severity, said = found()
        assert severity == "warning" and "service_role may not run streams.on_close (permission denied for table reply)" in said
        sql.execute("grant insert, select on reply to service_role; grant usage on sequence reply_id_seq to service_role")
        assert found() == ("good", "streams.on_close fits the database.")
        severity, said = found(ROOST_STREAMS_ON_CLOSE="insert into reply (name) values ($1)")
        assert severity == "error" and "RETURNING" in said
        severity, said = found(ROOST_STREAMS_ON_CLOSE="insert into reply (nam) values ($1) returning id")
        assert severity == "error" and '"nam"' in said
        severity, said = found(ROOST_STREAMS_ON_CLOSE="insert into reply (name, body) values ($1, $6) returning id")
        assert severity == "error" and "parameters beyond $5" in said
        # Two statements are none, and neither of them is run.
        severity, said = found(
            ROOST_STREAMS_ON_CLOSE="select $1) select 1 from closed; drop table reply; with closed as (select 1")
        assert severity == "error" and "multiple commands" in said
        assert sql.execute("select count(*) from reply").fetchone() == (0,), "it is planned, and not run"


async def test_the_doctor_beside_a_hub_that_runs(own_hub):
    own_hub.start()
    async with await HTTPConnection.open(own_hub.port) as http:
        stream = Stream(http)
        await stream.create(body=b"Hello")
        assert [severity for severity, _ in findings(own_hub) if severity == "error"] == []
        assert (await stream.append(b", world")).status == 204
