"""A site's rules: read, combined by narrowing, and kept by a fetch."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from nest.errors import ConfigError, DigestError, FetchError
from nest.weights import fetch, site
from nest.weights.site import machine_file, policy, user_file

from .conftest import REPO, REVISION, Command, LoopbackHub, MakeEntry
from .loopback import Fault, sha256

WEIGHTS = b"the publisher's own bytes"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Where the machine's file is looked for in tests."""
    path = tmp_path / "machine" / "config.toml"
    path.parent.mkdir()
    return path


@pytest.fixture
def user(tmp_path: Path) -> Path:
    path = tmp_path / "config" / "nest" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


class TestFiles:
    """Where the files are."""

    @pytest.mark.parametrize(
        ("platform", "machine", "user"),
        [
            ("linux", "/etc/xdg/nest/config.toml", ".config/nest/config.toml"),
            (
                "darwin",
                "/Library/Application Support/nest/config.toml",
                "Library/Application Support/nest/config.toml",
            ),
            ("win32", "C:/ProgramData/nest/config.toml", "AppData/Roaming/nest/config.toml"),
        ],
    )
    def test_by_platform(
        self, monkeypatch: pytest.MonkeyPatch, platform: str, machine: str, user: str
    ) -> None:
        monkeypatch.delenv("XDG_CONFIG_HOME")
        monkeypatch.delenv("APPDATA", raising=False)
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setattr(site, "_MACHINE_FILES", _MACHINE_FILES)
        monkeypatch.setattr(site, "_OTHER_MACHINE_FILE", _OTHER_MACHINE_FILE)
        assert machine_file() == Path(machine)
        assert user_file() == Path.home() / user

    def test_a_variable_moves_the_users_file_only(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        before = machine_file()
        monkeypatch.setenv("NEST_CONFIG", str(tmp_path / "mine.toml"))
        monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path))
        assert user_file() == tmp_path / "mine.toml"
        assert machine_file() == before

    def test_none_allows_everything(self) -> None:
        rules = policy()
        assert rules.sources == ("directory", "url", "hub", "package-index")
        assert (rules.require_hashes, rules.licenses, rules.mirrors, rules.files) == (None, (), (), ())

    def test_one_that_is_named_and_not_there(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("NEST_CONFIG", str(tmp_path / "none.toml"))
        with pytest.raises(ConfigError, match=r"none\.toml cannot be read: No such file or directory\."):
            policy()


_MACHINE_FILES, _OTHER_MACHINE_FILE = site._MACHINE_FILES, site._OTHER_MACHINE_FILE


class TestFaults:
    """What is wrong with a file is said with its line."""

    def test_all_at_once(self, user: Path) -> None:
        user.write_text(
            'sources = ["hub", "hubb"]\nrequire_hash = true\nlicenses = "MIT"\n\n[[mirror]]\n'
            'url = "https://m.example/{repo}/{file}"\n[[mirror]]\nurl = "ftp://m/{repo}{revision}{file}"\n'
            "[[mirror]]\n"
        )
        with pytest.raises(ConfigError) as caught:
            policy()
        lines = str(caught.value).splitlines()
        assert lines[0] == f"The configuration {user} is not valid:"
        for line, words in zip(
            lines[1:],
            [
                ":1, 'sources[1]': input should be 'directory', 'url', 'hub' or 'package-index'; came 'hubb'",
                ":3, 'licenses': input should be a valid list; came 'MIT'",
                ":6, 'mirror[0].url': expected a URL with {repo}, {revision}, {file}; {revision} is missing",
                ":8, 'mirror[1].url': expected an http or https URL; came 'ftp://m/{repo}{revision}{file}'",
                ":9, 'mirror[2]': expected a mirror with either 'url' or 'directory'",
                ":2, 'require_hash': unknown key. Did you mean 'require_hashes'?",
            ],
            strict=True,
        ):
            assert line == f"  {user}{words}"

    def test_a_mark_of_byte_order_is_no_fault(self, user: Path) -> None:
        user.write_bytes(b"\xef\xbb\xbfrequire_hashes = true\n")
        assert policy().require_hashes == user

    @pytest.mark.parametrize(
        ("url", "words"),
        [
            ("https:///{repo}/{revision}/{file}", "expected a URL with a host"),
            ("https://{repo}/{revision}/{file}", "expected a URL with a host"),
            ("https://m:99999/{repo}/{revision}/{file}", "Port out of range"),
            ("https://[m/{repo}/{revision}/{file}", "Invalid IPv6 URL"),
            ("https://m/{repo}/{revision}/#{file}", "without spaces and without a '#' part"),
            ("https://m/a b/{repo}/{revision}/{file}", "without spaces and without a '#' part"),
            ("https://m/{name}/{repo}/{revision}/{file}", "and no other braces; came {name}"),
            ("https://m/{repo}/{revision}/{file}}", "and no other braces; came }"),
        ],
    )
    def test_a_url_that_cannot_be(self, user: Path, url: str, words: str) -> None:
        user.write_text(f'[[mirror]]\nurl = "{url}"\n')
        with pytest.raises(ConfigError) as caught:
            policy()
        assert f"{user}:2, 'mirror[0].url': " in str(caught.value)
        assert words in str(caught.value)

    def test_a_home_that_is_not_there(self, user: Path) -> None:
        user.write_text('[[mirror]]\ndirectory = "~nosuchuser/x"\n')
        with pytest.raises(
            ConfigError, match=rf"A mirror's directory in {user} is '~nosuchuser/x': there is"
        ):
            policy()

    @pytest.mark.parametrize("text", [b"sources = [", b"\xff", b"require_hashes = " + b"9" * 5000])
    def test_not_toml(self, user: Path, text: bytes) -> None:
        user.write_bytes(text)
        with pytest.raises(ConfigError, match=rf"The configuration {user} is not valid TOML: "):
            policy()


class TestClosed:
    """Rules that cannot be read are not 'no rules'."""

    def test_a_link_that_leads_nowhere(self, machine: Path, tmp_path: Path) -> None:
        machine.symlink_to(tmp_path / "none")
        with pytest.raises(ConfigError, match=rf"{machine} cannot be read: No such file or directory\."):
            policy()

    def test_a_folder_that_is_a_link_that_leads_nowhere(self, machine: Path, tmp_path: Path) -> None:
        machine.parent.rmdir()
        machine.parent.symlink_to(tmp_path / "none")
        with pytest.raises(ConfigError, match=rf"{machine} cannot be read: "):
            policy()

    def test_a_folder_in_its_place(self, machine: Path) -> None:
        machine.mkdir()
        with pytest.raises(ConfigError, match=rf"{machine} cannot be read: Is a directory\."):
            policy()

    def test_a_folder_that_nobody_may_look_into(
        self, machine: Path, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lstat, closed = os.lstat, {machine, user}

        def refused(path: Path) -> os.stat_result:
            if path in closed:
                raise PermissionError(13, "Permission denied", str(path))
            return lstat(path)

        # The superuser, whom tests may run as, is refused nothing.
        monkeypatch.setattr("nest.weights.site.os.lstat", refused)
        with pytest.raises(ConfigError, match=rf"{machine} cannot be read: Permission denied\."):
            policy()
        closed.remove(machine)
        assert policy().files == ()


class TestNarrowing:
    """A user cannot loosen what the machine's file sets."""

    def test_sources(self, machine: Path, user: Path) -> None:
        machine.write_text('sources = ["package-index", "directory"]')
        user.write_text('sources = ["hub", "directory", "url", "package-index"]')
        rules = policy()
        assert rules.sources == ("package-index", "directory")
        assert rules.why_not("hub") == f"is not allowed by {machine}"
        user.write_text('sources = ["directory", "hub"]')
        assert policy().sources == ("directory",)
        assert policy().why_not("package-index") == f"is not allowed by {user}"

    def test_a_user_may_order_and_narrow_where_the_machine_says_nothing(self, user: Path) -> None:
        user.write_text('sources = ["package-index", "hub"]')
        assert policy().sources == ("package-index", "hub")

    def test_required_hashes(self, machine: Path, user: Path) -> None:
        machine.write_text("require_hashes = true")
        user.write_text("require_hashes = false")
        assert policy().require_hashes == machine

    def test_licences(self, machine: Path, user: Path, make_entry: MakeEntry) -> None:
        machine.write_text('licenses = ["MIT", "Apache-2.0"]')
        user.write_text('licenses = ["GPL-3.0", "mit"]')
        policy().check_license(make_entry({"w": b""}))
        entry = make_entry({"w": b""}, license_="GPL-3.0")
        with pytest.raises(FetchError) as caught:
            policy().check_license(entry)
        assert str(caught.value) == (
            f"'some-model' is under the licence GPL-3.0, which {machine} does not allow: its licenses are "
            f"Apache-2.0, MIT."
        )

    def test_a_users_url_is_left_out_where_the_machine_names_sources(self, machine: Path, user: Path) -> None:
        url = "https://anywhere.example/{repo}/{revision}/{file}"
        machine.write_text(f'sources = ["url"]\n[[mirror]]\nurl = "{url.replace("anywhere", "ours")}"\n')
        user.write_text(f'[[mirror]]\nurl = "{url}"\n[[mirror]]\ndirectory = "/mnt/mine"\n')
        assert [mirror.url for mirror in policy().mirrors] == [url.replace("anywhere", "ours"), None]
        # All four are named, and nothing is forbidden.
        machine.write_text('sources = ["hub", "directory", "url", "package-index"]')
        assert [mirror.url for mirror in policy().mirrors] == [None]
        machine.write_text("")
        assert [mirror.url for mirror in policy().mirrors] == [url, None]


class TestFetching:
    """A fetch keeps the rules."""

    def test_a_licence_that_is_not_listed_is_refused_though_cached(
        self, hub: LoopbackHub, make_entry: MakeEntry, cache: Path, user: Path
    ) -> None:
        hub.files["w.bin"] = WEIGHTS
        entry = make_entry({"w.bin": WEIGHTS})
        fetch(entry, cache_dir=cache)
        user.write_text('licenses = ["Apache-2.0"]')
        with pytest.raises(FetchError, match=r"under the licence MIT, which .* does not allow"):
            fetch(entry, cache_dir=cache)

    def test_a_package_under_a_licence_that_is_not_listed_is_passed_over(
        self, hub: LoopbackHub, make_entry: MakeEntry, cache: Path, user: Path
    ) -> None:
        mirror = (
            f'[[weights.mirror]]\npackage = "p==1"\nsha256 = "{"0" * 64}"\nsize = 1\nlicense = "GPL-3.0"\n'
            f'files = [{{ replaces = "w.bin", member = "m", sha256 = "{"0" * 64}", size = 1 }}]\n'
        )
        user.write_text('licenses = ["MIT"]')
        with pytest.raises(FetchError) as caught:
            fetch(make_entry({"w.bin": WEIGHTS}, mirror), cache_dir=cache)
        assert "p==1" not in str(caught.value)
        user.write_text('licenses = ["MIT", "GPL-3.0"]\nsources = ["hub"]')
        with pytest.raises(FetchError, match=f"package-index: is not allowed by {user}"):
            fetch(make_entry({"w.bin": WEIGHTS}, mirror), cache_dir=cache)

    def test_the_hub_is_not_asked_where_it_is_forbidden(
        self, hub: LoopbackHub, make_entry: MakeEntry, cache: Path, machine: Path
    ) -> None:
        hub.files["w.bin"] = WEIGHTS
        entry = make_entry({"w.bin": WEIGHTS})
        machine.write_text('sources = ["directory"]')
        with pytest.raises(FetchError, match=f"hub: is not allowed by {machine}"):
            fetch(entry, cache_dir=cache)
        assert hub.requests == []
        machine.unlink()
        fetch(entry, cache_dir=cache)
        machine.write_text('sources = ["directory"]')
        assert fetch(entry, cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS

    def test_a_url_is_asked_before_the_hub_and_without_its_token(
        self, hub: LoopbackHub, make_entry: MakeEntry, cache: Path, user: Path
    ) -> None:
        mirror = LoopbackHub()
        mirror.start()
        mirror.files["sub dir/w.bin"] = WEIGHTS
        user.write_text(f'[[mirror]]\nurl = "{mirror.endpoint}/m/{{repo}}/{{revision}}/{{file}}"\n')
        entry = make_entry({"sub dir/w.bin": WEIGHTS})
        mirror.files["sub%20dir/w.bin"] = WEIGHTS
        fetched = fetch(entry, cache_dir=cache, token="hf_secret")
        mirror.stop()
        assert fetched.origins == {"sub dir/w.bin": f"the mirror {mirror.endpoint.removeprefix('http://')}"}
        assert mirror.requests == [f"/m/{REPO}/{REVISION}/sub%20dir/w.bin"]
        assert "authorization" not in mirror.seen[0]
        assert hub.requests == []
        again = fetch(entry, cache_dir=cache, local_files_only=True)
        assert again.files == fetched.files

    @pytest.mark.parametrize("fault", [None, "other bytes", "refused", "unpinned"])
    def test_a_password_in_a_url_is_used_and_never_shown(
        self,
        hub: LoopbackHub,
        make_entry: MakeEntry,
        command: Command,
        user: Path,
        fault: str | None,
    ) -> None:
        hub.files["w.bin"] = WEIGHTS[::-1] if fault == "other bytes" else WEIGHTS
        if fault == "unpinned":
            hub.faults["w.bin"] = Fault(headers={"X-Repo-Commit": "f" * 40})
        host = "127.0.0.1:1" if fault == "refused" else hub.endpoint.removeprefix("http://")
        url = f"http://me:secret@{host}/{{repo}}/{{revision}}/{{file}}"
        user.write_text(f'sources = ["url"]\n[[mirror]]\nurl = "{url}"\n')
        folder = str(make_entry({"w.bin": None if fault == "unpinned" else WEIGHTS}).directory)
        planned = command("pull", folder, "--dry-run", "--json")
        pulled = command("pull", folder)
        assert pulled.code == int(fault is not None)
        assert host in pulled.out + pulled.err
        for outcome in (planned, pulled):
            assert "secret" not in outcome.out + outcome.err
        if fault is None:
            assert hub.seen[0]["authorization"].startswith("Basic ")

    def test_a_url_that_has_other_bytes_is_passed_over(
        self, hub: LoopbackHub, make_entry: MakeEntry, cache: Path, user: Path
    ) -> None:
        mirror = LoopbackHub()
        mirror.start()
        mirror.files["w.bin"] = WEIGHTS[::-1]
        hub.files["w.bin"] = WEIGHTS
        user.write_text(f'[[mirror]]\nurl = "{mirror.endpoint}/{{repo}}/{{revision}}/{{file}}"\n')
        entry = make_entry({"w.bin": WEIGHTS})
        assert fetch(entry, cache_dir=cache).origins["w.bin"].startswith(hub.endpoint)
        del hub.files["w.bin"]
        with pytest.raises(DigestError) as caught:
            fetch(entry, cache_dir=cache.parent / "another")
        mirror.stop()
        assert "the mirror 127.0.0.1:" in str(caught.value)
        assert "has no file 'w.bin'" in str(caught.value)


class TestDirectory:
    """A folder of the site is used where it lies."""

    @pytest.fixture
    def folder(self, tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
        user.write_text(f'sources = ["directory"]\n[[mirror]]\ndirectory = "{tmp_path / "models"}"\n')
        folder = tmp_path / "models" / REPO / REVISION
        folder.mkdir(parents=True)
        return folder

    def test_in_place_and_offline(self, folder: Path, make_entry: MakeEntry, cache: Path) -> None:
        (folder / "w.bin").write_bytes(WEIGHTS)
        fetched = fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache, local_files_only=True)
        assert fetched.files == {"w.bin": folder / "w.bin"}
        assert fetched.origins == {"w.bin": f"the folder {folder.parents[2]}"}
        assert fetched.notes == []

    def test_a_cache_of_the_client(
        self,
        folder: Path,
        hub: LoopbackHub,
        make_entry: MakeEntry,
        cache: Path,
        user: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        hub.files["w.bin"] = WEIGHTS
        entry = make_entry({"w.bin": WEIGHTS})
        rules = user.read_text()
        user.unlink()
        fetch(entry, cache_dir=folder.parents[2])
        user.write_text(rules)
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
        path = fetch(entry, cache_dir=cache).files["w.bin"]
        assert path.is_relative_to(folder.parents[2])
        assert path.read_bytes() == WEIGHTS

    def test_relative_to_the_file_that_names_it(
        self, folder: Path, make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (folder / "w.bin").write_bytes(WEIGHTS)
        config = folder.parents[2] / "config.toml"
        config.write_text('[[mirror]]\ndirectory = "."\n')
        monkeypatch.setenv("NEST_CONFIG", str(config))
        assert fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache, local_files_only=True).files

    def test_other_bytes_are_refused(self, folder: Path, make_entry: MakeEntry, cache: Path) -> None:
        (folder / "w.bin").write_bytes(WEIGHTS[::-1])
        with pytest.raises(DigestError, match=rf"{folder}/w\.bin is not the pinned 'w\.bin'"):
            fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)

    def test_a_file_that_is_not_there(self, folder: Path, make_entry: MakeEntry, cache: Path) -> None:
        with pytest.raises(FetchError) as caught:
            fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)
        assert f"the folder {folder.parents[2]}: it has no {folder}/w.bin; url: is not" in str(caught.value)

    def test_bytes_that_the_entry_declares_for_a_package_come_with_a_note(
        self, folder: Path, make_entry: MakeEntry, cache: Path
    ) -> None:
        other = b"the same model in another form"
        (folder / "w.bin").write_bytes(other)
        mirror = (
            f'[[weights.mirror]]\npackage = "p==1"\nsha256 = "{"0" * 64}"\nsize = 1\nlicense = "BSD-3-Clause"\n'
            f'files = [{{ replaces = "w.bin", member = "m", sha256 = "{sha256(other)}", size = {len(other)} }}]\n'
        )
        (note,) = fetch(make_entry({"w.bin": WEIGHTS}, mirror), cache_dir=cache).notes
        assert note == (
            f"w.bin: not the publisher's own bytes; from the folder {folder.parents[2]} (licence: BSD-3-Clause)"
        )

    def test_those_bytes_are_refused_where_their_licence_is(
        self, folder: Path, make_entry: MakeEntry, cache: Path, user: Path
    ) -> None:
        other = b"the same model in another form"
        (folder / "w.bin").write_bytes(other)
        mirror = (
            f'[[weights.mirror]]\npackage = "p==1"\nsha256 = "{"0" * 64}"\nsize = 1\nlicense = "GPL-3.0"\n'
            f'files = [{{ replaces = "w.bin", member = "m", sha256 = "{sha256(other)}", size = {len(other)} }}]\n'
        )
        user.write_text(f'licenses = ["MIT"]\n{user.read_text()}')
        with pytest.raises(DigestError, match="is not the pinned 'w"):
            fetch(make_entry({"w.bin": WEIGHTS}, mirror), cache_dir=cache)
