"""The command: it refuses before it listens, prints an address that works, and ends on Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from patience import PATIENCE, until

import privcov as pc
from privcov.cli import main
from privcov.errors import OutputError
from privcov.web.server import _listening, _token
from privcov_lab.bench.serving import Page


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--directory", "nowhere"], 2, "E119"),
        (["--data", "../outside.csv"], 2, "--directory"),
        (["--schema", "/etc/hostname"], 2, "--directory"),
        (["--data", "nothing.csv"], 2, "E119"),
        (["--ledger", "nothing.ledger"], 3, "E302"),
        (["--sign", "nothing.key"], 2, "E6"),
        (["--port", "99999"], 2, "E407"),
        (["--port", "many"], 2, "E200"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_served(
    tmp_path, monkeypatch, capsys, options, code, says
):
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--no-browser", *options]) == code
    said = capsys.readouterr()
    assert says in said.err
    assert said.out == ""


def test_a_port_that_is_taken_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", "--no-browser", "--port", str(taken.getsockname()[1])]) == 2
    assert "E407" in capsys.readouterr().err


def test_the_socket_is_on_the_loopback_address():
    with _listening(0) as door:
        assert door.getsockname()[0] == "127.0.0.1"
    with pytest.raises(OutputError):
        _listening(-1)


def test_every_start_has_its_own_token_of_256_bits():
    tokens = {_token() for _ in range(20)}
    assert len(tokens) == 20
    assert all(re.fullmatch("[0-9a-f]{64}", token) for token in tokens)


def test_without_the_extra_it_says_which_one_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("uvicorn", "starlette.applications"):
        with monkeypatch.context() as patched:
            patched.delitem(sys.modules, "privcov.web.server", raising=False)
            patched.setitem(sys.modules, name, None)
            assert main(["serve", "--no-browser"]) == 2
        assert "privcov[web]" in capsys.readouterr().err


def test_the_browser_is_not_started_with_the_token_in_its_arguments(tmp_path, monkeypatch):
    """Other accounts can list arguments; they cannot read a file of mode 600."""
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {seen}.part\nmv {seen}.part {seen}\n')
    browser.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "privcov", "serve"],
        cwd=tmp_path,
        env={**os.environ, "BROWSER": f"{browser} %s"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        url = process.stdout.readline().strip()
        until(seen.exists)
        argument = seen.read_text()
        door = Path(unquote(urlparse(argument).path))
        assert argument.startswith("file://")
        assert "token" not in argument
        assert url in door.read_text()
        assert stat.S_IMODE(door.stat().st_mode) == 0o600
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert not door.exists()


def test_the_printed_address_works_and_ctrl_c_ends_it(people):
    pc.Ledger.init(people.parent / "people.ledger", pc.PureDP(epsilon=1, neighbours="replace-one"))
    page = Page(people.parent, "--data", "people.csv", "--ledger", "people.ledger")
    try:
        reply = page.reply("start")
        assert reply.status == 200
        assert json.loads(reply.read())["given"] == {
            "data": "people.csv",
            "schema": "",
            "ledger": "people.ledger",
        }
        assert reply.getheader("server") is None  # nor any other word about what answers
    finally:
        rest = page.end()
    assert page.process.returncode == 0
    assert rest[0].strip() == b""
    assert b"Traceback" not in rest[1]
    assert page.token.encode() not in rest[1]
