"""
Git, by its command, in a way that an agent cannot turn against us.

Arguments are lists, never a shell line. The repository, the work tree and the
index are always said explicitly, so a `.git` that an agent planted is never
looked at. Refs move by compare-and-swap, and what is committed is synced.

A repository's own configuration can name programs in some forty ways, and every
git learns more. We do not forbid them one by one: our commands do not read that
configuration. They see a `Room`, a private stand-in for the common directory whose
objects and refs are the real ones and whose settings are ours, plus the few of the
person's that decide what a file looks like (line endings, modes, ignored names). The
room is made once, so what an agent changes in `.git` later changes no commit either.
A process of the same user outside any sandbox could change the room too; then it could
as well change us.

Tried with git 2.39: of the commands used here, filters (by `config`, `include`,
`includeIf`, `config.worktree`, `info/attributes`) ran in `worktree add`, `add`,
`status`, `diff*`, `checkout-index` and `archive`; `merge.default` in `merge-tree`;
a promisor remote's `core.sshCommand` or `uploadpack` wherever an object was missing.
Aliases, pagers, editors, signing, credentials and trailers never ran. In a room none
of it does. `worktree` commands need the real directory, so `worktree add` makes its
entry there without files and the files are written from the room; a populated
submodule is looked into with its own settings by `status`, `diff*` and `add`: the former
are told not to, and `add` fails rather than do it.

Filters being off, Git LFS files are the pointers that the repository holds, on the
way in and on the way out: an unchanged one is no change.

A room costs 3 ms once, 2 of them for reading the settings, and 0.04 ms a call; a call
takes 2 ms. A commit takes 2 ms, not 6, since the person's name is read with the settings.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path

import msgspec

from planforge.actions import Action, Advice, Hint
from planforge.errors import GitFailed, NoRepository
from planforge.kernel import locks
from planforge.kernel.files import read_regular

MINIMUM = (2, 38)
"""The first git that can merge without a work tree (`merge-tree --write-tree`)."""

HARDENED = (
    "-c", "core.fsmonitor=false",
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.attributesFile=/dev/null",
    "-c", "core.commitGraph=false",
    "-c", "core.fsync=committed",
    "-c", "core.untrackedCache=false",
    "-c", "core.quotePath=false",
    "-c", "core.safecrlf=false",
    "-c", "core.sparseCheckout=false",
    "-c", "commit.gpgSign=false",
    "-c", "diff.renames=false",
    "-c", "gc.auto=0",
    "-c", "i18n.commitEncoding=UTF-8",
    "-c", "maintenance.auto=false",
    "-c", "merge.renames=true",
    "-c", "protocol.allow=never",
    "-c", "submodule.recurse=false",
    "-c", "worktree.guessRemote=false",
    "-c", "worktree.useRelativePaths=false",
    "-c", "advice.detachedHead=false",
)  # fmt: skip
"""
What holds in every repository that a command touches: also where the room does not reach, which is
`init`, `worktree`, and the processes that git starts inside a submodule.
"""

KEPT = frozenset({
    "core.autocrlf", "core.createobject", "core.eol", "core.filemode", "core.ignorecase",
    "core.logallrefupdates", "core.precomposeunicode", "core.repositoryformatversion",
    "core.sharedrepository", "core.symlinks",
})  # fmt: skip
"""
The settings of a repository that count: they say what a file on this disk looks like. None names a program.
All `extensions.*` are kept too, since git must refuse a format that it does not know.
"""
NOT_KEPT = ("extensions.partialclone", "extensions.worktreeconfig")
"""Extensions that would have git read settings or fetch objects from somewhere else."""

SHARED = ("objects", "refs", "packed-refs", "logs", "shallow", "worktrees")
"""
What a room has in common with the real directory, by links that git follows. Git 2.39 looks for refs and
their logs where HEAD is, in the real directory anyway; the links say the same to one that does not.
"""

LOOKS_INTO_SUBMODULES = ("status", "diff", "diff-files", "diff-index")
BUSY = re.compile(rb"Unable to create '.*index\.lock': File exists")
LOCKED = re.compile(r"\.lock'?: File exists")
MISSING = re.compile("missing|unable to read|not a valid object|bad object|could not fetch|failed to read")
UNKNOWN = re.compile(b"unknown repository extension|git repo version")
"""What `git config` says, on the side, before it passes over the settings of a format it does not know."""
ROOMS = "planforge-git"
WITH_VALUE = ("-b", "-B", "--reason")

PATIENCE = 10.0
"""How many seconds to wait for a lock of another git's."""
SECONDS = 900.0
"""How many seconds one command may take."""
SLOW = 10.0
"""After how many seconds to look for what a command may be waiting for."""

PROTOCOLS = "https:ssh:file"
"""How other repositories may be spoken with: not in the clear, and not by a program that an address names."""
LOGS_IN = ("GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND")
"""Variables of the person's that say how to log in."""

FALLBACK_NAME = "Planforge"
FALLBACK_EMAIL = "planforge@localhost"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What of a repository's own settings counts, as it was when it was first looked at."""

    kept: tuple[tuple[str, str], ...] = ()
    name: str = ""
    email: str = ""
    ignored: bytes = b""
    """What the person ignores in all their repositories."""
    exclude: bytes = b""
    attributes: bytes = b""
    partial: bool = False
    """Whether objects may be missing, to be fetched when they are needed, which we never do."""
    sparse: bool = False
    signs: bool = False
    hooks: str = ""
    """Where the hooks are, if not in `.git/hooks`."""
    remotes: tuple[tuple[str, str], ...] = ()
    """The names of other repositories, and where to push to each."""


class Git:
    """One repository."""

    def __init__(
        self, git_dir: Path, top: Path, *, own: Path | None = None, patience: float = PATIENCE
    ) -> None:
        self.git_dir = git_dir
        """The directory that all work trees of the repository share."""
        self.top = top
        self.own = own or git_dir
        """The directory that belongs to the work tree at `top` alone, with its HEAD and its index."""
        self._patience = patience
        waits = ("core.filesRefLockTimeout", "core.packedRefsTimeout")
        limits = (word for name in waits for word in ("-c", f"{name}={int(patience * 1000)}"))
        self._flags = (*HARDENED, *limits)
        self._making = threading.Lock()
        self._inside: tuple[Settings, Room, tuple[int, int]] | None = None

    @classmethod
    def find(cls, start: Path) -> Git:
        """The repository that `start` is in."""
        questions = ("--git-common-dir", "--absolute-git-dir", "--show-toplevel")
        asked = ("rev-parse", "--is-bare-repository", "--path-format=absolute", *questions)
        process = _start(asked, cwd=start, environment=_own_settings())
        bare, *found = process.stdout.split(b"\n")
        if process.returncode and not found:
            raise _nothing(start, said_by(process))
        if bare == b"true":
            raise _bare(start)
        if process.returncode:
            raise NoRepository(f"`{start}` is inside `.git`, not among the files of a repository")
        if len(found) != len(questions) + 1:  # a name with a line break in it
            found = [_answer(question, start) for question in questions]
        git_dir, own, top = (Path(os.fsdecode(path)) for path in found[:3])
        if not _belongs(top, own):
            raise NoRepository(
                f"`{git_dir}` says that its files are in `{top}`, which knows nothing of it",
                "run `git config --unset core.worktree`",
            )
        return cls(git_dir, top, own=own)

    def run(
        self,
        *arguments: str,
        work_tree: Path | None = None,
        index: Path | None = None,
        stdin: bytes | None = None,
        extra: Mapping[str, str] | None = None,
        accept: tuple[int, ...] = (0,),
        seconds: float = SECONDS,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one git command on this repository, or raise `GitFailed` with what git said."""
        if arguments[0] == "worktree":
            return self._worktree(arguments[1:], accept=accept, seconds=seconds)
        words = [*self._flags, *_kept_out_of_submodules(arguments)]
        cwd, variables = self._surroundings(work_tree)
        if index is not None:
            variables["GIT_INDEX_FILE"] = str(index)
        process = self._patiently(words, cwd, variables | dict(extra or {}), stdin, seconds)
        if process.returncode not in accept:
            raise self._failure(arguments[0], process)
        return process

    def abroad(
        self, *arguments: str, seconds: float, accept: tuple[int, ...] = (0,)
    ) -> subprocess.CompletedProcess[bytes]:
        """
        Run a command that speaks with another repository, as the person does.

        The person's own settings count here, for they say how to log in; the repository's do not, as ever,
        so it names no program to run and no other address. Nobody is asked anything: there is no terminal.
        """
        cwd, variables = self._surroundings(None)
        hidden = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")
        spoken = {name: value for name, value in variables.items() if name not in hidden}
        spoken |= {name: os.environ[name] for name in LOGS_IN if name in os.environ}
        spoken["GIT_ALLOW_PROTOCOL"] = PROTOCOLS
        words = [*self._flags, *arguments]
        process = _start(words, cwd=cwd, environment=spoken, seconds=seconds, alone=True)
        if process.returncode not in accept:
            raise self._failure(arguments[0], process)
        return process

    def line(self, *arguments: str, work_tree: Path | None = None, index: Path | None = None) -> str:
        """What a git command prints, as one line."""
        return os.fsdecode(self.run(*arguments, work_tree=work_tree, index=index).stdout.rstrip(b"\n"))

    def commit_of(self, revision: str) -> str:
        """The full name of the commit that `revision` means."""
        found = self.ref(f"{revision}^{{commit}}")
        if found is None:
            raise GitFailed(f"there is no commit `{revision}`")
        return found

    def tree_of(self, revision: str) -> str:
        """The full name of the tree of a commit."""
        found = self.ref(f"{revision}^{{tree}}")
        if found is None:
            raise GitFailed(f"there is no tree of `{revision}`")
        return found

    def has_commits(self) -> bool:
        """Whether HEAD points at a commit."""
        return self.ref("HEAD^{commit}") is not None

    def ref(self, name: str) -> str | None:
        """The commit a ref points at, or None if there is no such ref."""
        process = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", name, accept=(0, 1, 128))
        return process.stdout.decode().strip() or None

    def move_ref(self, name: str, new: str, old: str | None) -> bool:
        """Point a ref at `new` if it is at `old` (None: does not exist); whether that was so."""
        if not name.startswith("refs/"):
            raise GitFailed(f"`{name}` is not the name of a ref")
        expected = old or "0" * len(new)
        words = ("update-ref", "--no-deref", "--end-of-options", name, new, expected)
        process = self.run(*words, accept=(0, 1, 128))
        if process.returncode and self.ref(name) == old:
            said = said_by(process)
            raise GitFailed(f"cannot move `{name}`: {said}", self._hint(said))
        return process.returncode == 0

    def checkouts(self) -> tuple[Path, ...]:
        """Every work tree of the repository, whether it is there still or not."""
        entries = self.run("worktree", "list", "--porcelain", "-z").stdout.split(b"\0")
        paths = [each.removeprefix(b"worktree ") for each in entries if each.startswith(b"worktree ")]
        return tuple(Path(os.fsdecode(path)) for path in paths)

    def commit_tree(self, tree: str, parents: Sequence[str], message: str, at: str) -> str:
        """Make a commit object. The same arguments give the same commit."""
        who = self.identity()
        date = f"@{int(datetime.fromisoformat(at).timestamp())} +0000"
        variables = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        for role in ("AUTHOR", "COMMITTER"):
            variables |= {f"GIT_{role}_NAME": who[0], f"GIT_{role}_EMAIL": who[1]}
        for word in (tree, *parents):
            if word.startswith("-"):
                raise GitFailed(f"`{word}` is not the name of an object")
        arguments = ["commit-tree", tree, *(word for parent in parents for word in ("-p", parent))]
        process = self.run(*arguments, stdin=message.encode("utf-8", "surrogateescape"), extra=variables)
        return process.stdout.decode().strip()

    def identity(self) -> tuple[str, str]:
        """The name and e-mail address of the person whose repository this is."""
        settings = self.settings()
        return settings.name or FALLBACK_NAME, settings.email or FALLBACK_EMAIL

    def settings(self) -> Settings:
        """What of the repository's settings counts, as it was when this was first asked for."""
        return self._entered()[0]

    def _entered(self) -> tuple[Settings, Room]:
        """The settings and the room: made at the first call, and again if something happened to the room."""
        with self._making:
            which = _which(self.git_dir)
            if self._inside is None:
                settings = _settings(_common(self.git_dir), self.own)
                self._inside = settings, Room(_common(self.git_dir), settings), which
            settings, room, known = self._inside
            if which != known:
                raise GitFailed(f"`{self.git_dir}` is another directory than it was")
            if not room.intact():
                room = Room(_common(self.git_dir), settings)
                self._inside = settings, room, known
            return settings, room

    def _surroundings(self, work_tree: Path | None, own: Path | None = None) -> tuple[Path, dict[str, str]]:
        """Where a command runs, and the variables that say which repository, which files, whose settings."""
        theirs = work_tree not in (None, self.top)
        variables = environment() | {"GIT_DIR": str(own or (self.git_dir if theirs else self.own))}
        # Without files of its own a command runs in an empty directory: in `.git` it would take attributes
        # from files there.
        cwd = work_tree
        if work_tree is not None:
            variables["GIT_WORK_TREE"] = str(work_tree)
        if work_tree is None or self._inside is not None or (self.git_dir / "HEAD").exists():
            room = self._entered()[1]
            variables["GIT_COMMON_DIR"] = str(room.path)
            cwd = work_tree or room.nowhere
        if cwd is None or not cwd.is_dir():
            raise GitFailed(f"`{cwd}` is not there any more")
        return cwd, variables

    def _patiently(
        self, words: Sequence[str], cwd: Path, variables: Mapping[str, str], stdin: bytes | None, limit: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command, again and again while another git has the index locked."""
        until, pause = time.monotonic() + self._patience, 0.05
        while True:
            process = _start(words, cwd=cwd, environment=variables, stdin=stdin, seconds=limit)
            if process.returncode != 128 or not BUSY.search(process.stderr) or time.monotonic() > until:
                return process
            time.sleep(pause)
            pause = min(pause * 2, 1.0)

    def _worktree(
        self, arguments: Sequence[str], accept: tuple[int, ...], seconds: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a `worktree` command, which needs the real directory: to name it in what it writes."""
        cwd = self._entered()[1].nowhere
        what, *rest = arguments
        fills = what == "add" and "--no-checkout" not in rest
        if what == "remove" and not {"-f", "--force"} & set(rest):
            raise GitFailed(
                "`git worktree remove` would look at the files with the repository's own settings",
                "keep them and say `--force`",
            )
        words = ["worktree", what, *(("--no-checkout",) if fills else ()), *rest]
        variables = environment() | {"GIT_DIR": str(self.git_dir)}
        process = _start([*self._flags, *words], cwd=cwd, environment=variables, seconds=seconds)
        if process.returncode not in accept:
            raise self._failure("worktree", process)
        if fills and process.returncode == 0:
            self._fill(Path(_operands(rest)[0]), seconds)
        return process

    def _fill(self, path: Path, seconds: float) -> None:
        """Write the files of a worktree that git has just made an entry for."""
        entry = Path(os.fsdecode((path / ".git").read_bytes().removeprefix(b"gitdir: ").removesuffix(b"\n")))
        cwd, variables = self._surroundings(path, entry)
        words = [*self._flags, "read-tree", "--reset", "-u", "HEAD"]
        process = _start(words, cwd=cwd, environment=variables, seconds=seconds)
        if process.returncode:
            failure = self._failure("worktree add", process)
            self._worktree(("remove", "--force", str(path)), (0, 128), seconds)
            raise failure

    def _failure(self, command: str, process: subprocess.CompletedProcess[bytes]) -> GitFailed:
        said = said_by(process)
        return GitFailed(f"`git {command}` failed: {said}", self._hint(said))

    def _hint(self, said: str) -> Hint | None:
        if LOCKED.search(said):
            return Advice("run {} to see whose lock that is", Action("doctor"))
        if MISSING.search(said) and self._inside and self._inside[0].partial:
            return "this is a partial clone: run `git fetch --refetch --no-filter` to have all of it"
        return None


class Room:
    """
    A private stand-in for the common directory of a repository, for as long as this process lives.

    Its objects and refs are the repository's; its settings, attributes and excludes are copies of what was
    there at first, as far as we let it count.
    """

    def __init__(self, git_dir: Path, settings: Settings) -> None:
        try:
            self.path = Path(tempfile.mkdtemp(dir=_rooms()))
            self.nowhere = self.path / "nowhere"
            self._furnish(git_dir, settings)
            held = ExitStack()
            held.enter_context(locks.held(self.path / "lock", "the use of a room"))
        except OSError as error:
            raise GitFailed(f"cannot write temporary files: {error.strerror or error}") from error
        self._made = self._state()
        weakref.finalize(self, _leave, self.path, held, os.getpid())

    def intact(self) -> bool:
        """Whether everything is as it was made: temporary files get cleaned up, and agents get curious."""
        return bool(self._made) and self._state() == self._made

    def _furnish(self, git_dir: Path, settings: Settings) -> None:
        for name in SHARED:
            (self.path / name).symlink_to(git_dir / name)
        (self.path / "info").mkdir()
        self.nowhere.mkdir()
        ignored = self.path / "ignored"
        pairs = [("core.bare", "false"), ("core.excludesfile", str(ignored)), *settings.kept]
        pairs += [("user.name", settings.name), ("user.email", settings.email)]
        (self.path / "config").write_bytes(b"".join(_configured(*pair) for pair in pairs if pair[1]))
        (self.path / "info" / "exclude").write_bytes(settings.exclude)
        (self.path / "info" / "attributes").write_bytes(settings.attributes)
        ignored.write_bytes(settings.ignored)

    def _state(self) -> tuple[tuple[int, int], ...]:
        # The time of the last change of any kind, which no process can set as it likes.
        names = ("config", "ignored", "nowhere", "info", "info/exclude", "info/attributes", *SHARED)
        try:
            found = [os.lstat(f"{self.path}/{name}") for name in names]
        except OSError:
            return ()
        return tuple((each.st_ino, each.st_ctime_ns) for each in found)


def version() -> tuple[int, ...]:
    """The version of the git on PATH."""
    words = _start(["version"], cwd=Path("/"), environment=environment()).stdout.decode().split()
    return tuple(int(part) for part in words[2].split(".") if part.isdigit())


def environment() -> dict[str, str]:
    """The environment git is run in: the person's, without anything that steers git."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def _own_settings() -> dict[str, str]:
    # Where the person's own settings count: who they are, what they ignore, and which directories they
    # trust. None of the commands that need them runs anything that a setting could name.
    hidden = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")
    return {name: value for name, value in environment().items() if name not in hidden}


def _settings(git_dir: Path, own: Path) -> Settings:
    """Read what counts, with a command that runs nothing."""
    variables = _own_settings() | {"GIT_DIR": str(own), "GIT_COMMON_DIR": str(git_dir)}
    words = ("config", "--list", "-z", "--show-scope")
    process = _start(words, cwd=git_dir, environment=variables, seconds=60)
    if process.returncode or UNKNOWN.search(process.stderr):
        said = " ".join(process.stderr.decode("utf-8", "replace").split())
        raise GitFailed(f"cannot read the settings of `{git_dir}`: {said}")
    parts = process.stdout.decode("utf-8", "surrogateescape").split("\0")
    everywhere: dict[str, str] = {}
    here: dict[str, str] = {}
    for scope, part in zip(parts[::2], parts[1::2], strict=False):
        name, given, value = part.partition("\n")
        everywhere[name] = value if given else "true"
        if scope in ("local", "worktree"):
            here[name] = everywhere[name]
    return Settings(
        kept=tuple((name, value) for name, value in here.items() if _counts(name)),
        name=everywhere.get("user.name", "").strip(),
        email=everywhere.get("user.email", "").strip(),
        ignored=_read(_ignore_file(everywhere.get("core.excludesfile"), git_dir)),
        exclude=_read(git_dir / "info" / "exclude"),
        attributes=_read(git_dir / "info" / "attributes"),
        partial="extensions.partialclone" in here or any(name.endswith(".promisor") for name in here),
        sparse=here.get("core.sparsecheckout") == "true",
        signs=everywhere.get("commit.gpgsign") == "true",
        hooks=everywhere.get("core.hookspath", ""),
        remotes=tuple(_remotes(everywhere)),
    )


def _remotes(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Where to push to each remote: its own address for that, or else the one that it has."""
    for name, value in settings.items():
        if name.startswith("remote.") and name.endswith(".url"):
            own = settings.get(f"{name.removesuffix('url')}pushurl")
            yield name.removeprefix("remote.").removesuffix(".url"), own or value


def _counts(name: str) -> bool:
    extension = name.startswith("extensions.") and name.count(".") == 1 and name not in NOT_KEPT
    return extension or name in KEPT


def _ignore_file(setting: str | None, git_dir: Path) -> Path:
    if setting is not None:
        return git_dir.parent / Path(setting).expanduser()
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home, "git", "ignore").expanduser()


def _configured(name: str, value: str) -> bytes:
    section, key = name.split(".")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'[{section}]\n\t{key} = "{escaped}"\n'.encode("utf-8", "surrogateescape")


def _read(path: Path) -> bytes:
    """What is in a file; nothing if it is not one, such as a pipe that would be read without end."""
    with suppress(OSError, ValueError):
        return read_regular(path)
    return b""


def _rooms() -> Path:
    """The directory that rooms are made in, without those whose processes have died."""
    # In memory where possible: a room takes 1 ms there, and up to 20 on a busy disk.
    wanted = (os.environ.get("XDG_RUNTIME_DIR", ""), "/dev/shm", tempfile.gettempdir())  # noqa: S108
    home = next(path for path in wanted if path and (os.access(path, os.W_OK) or path == wanted[-1]))
    place = Path(home, f"{ROOMS}-{os.getuid()}")
    with suppress(FileExistsError):
        place.mkdir(mode=0o700)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise GitFailed(f"`{place}` is not a directory of yours alone", f"remove `{place}`")
    for room in place.iterdir():
        with suppress(OSError):
            young = time.time() - room.stat().st_mtime < 60  # perhaps not locked yet
            if not young and not locks.is_held(room / "lock"):
                shutil.rmtree(room, ignore_errors=True)
    return place


def _leave(path: Path, held: ExitStack, process: int) -> None:
    if process == os.getpid():  # not in a fork, which leaves the room to its parent
        shutil.rmtree(path, ignore_errors=True)
        held.close()


def _common(git_dir: Path) -> Path:
    """The directory with objects, refs and settings, also for one that belongs to a linked worktree."""
    found = _read(git_dir / "commondir")
    return (git_dir / os.fsdecode(found.strip())).resolve() if found else git_dir


def _which(directory: Path) -> tuple[int, int]:
    try:
        found = directory.stat()
    except OSError:
        raise GitFailed(f"`{directory}` is not there any more") from None
    return found.st_dev, found.st_ino


def _nothing(start: Path, said: str) -> NoRepository:
    hint = "run `git init` first, or change directory"
    if "dubious ownership" in said:
        hint = f"if you trust it, run `git config --global --add safe.directory {start}`"
    return NoRepository(f"no git repository at `{start}` ({said})", hint)


def _bare(start: Path) -> NoRepository:
    git_dir = Path(os.fsdecode(_answer("--git-common-dir", start)))
    if git_dir.name == ".git":
        return NoRepository(
            f"`{git_dir / 'config'}` says `core.bare`, as if there were no files to work on",
            "run `git config core.bare false`",
        )
    return NoRepository(f"`{git_dir}` is a bare repository, without files to work on", "use a clone of it")


def _answer(question: str, start: Path) -> bytes:
    words = ("rev-parse", "--path-format=absolute", question)
    return _start(words, cwd=start, environment=_own_settings()).stdout.removesuffix(b"\n")


def _belongs(top: Path, own: Path) -> bool:
    """Whether the directory `top` says itself that `own` is its repository."""
    entry = top / ".git"
    with suppress(OSError):
        if entry.is_dir():
            return entry.samefile(own)
        target = entry.read_bytes().removeprefix(b"gitdir:").strip(b" ").rstrip(b"\r\n")
        return (top / os.fsdecode(target)).samefile(own)
    return False


def _kept_out_of_submodules(arguments: Sequence[str]) -> list[str]:
    """A command that does not start `git status` in a submodule, whose settings are anybody's."""
    if arguments[0] in LOOKS_INTO_SUBMODULES:
        return [arguments[0], "--ignore-submodules=dirty", *arguments[1:]]
    # `add` cannot be told so. It fails if it comes to that, for the `status` it starts will not take this.
    return ["-c", "status.showUntrackedFiles=refused", *arguments]


def _operands(words: Sequence[str]) -> list[str]:
    """The words that are neither options nor their values."""
    before = ("", *words)
    return [
        word
        for word, previous in zip(words, before, strict=False)
        if not word.startswith("-") and previous not in WITH_VALUE
    ]


def said_by(process: subprocess.CompletedProcess[bytes]) -> str:
    """The line that matters of what git said, which may be followed by advice."""
    lines = process.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
    return next((line for line in reversed(lines) if line.startswith(("fatal: ", "error: "))), lines[-1])


def _start(
    arguments: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    stdin: bytes | None = None,
    seconds: float = SECONDS,
    alone: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """Run git; `alone` is without the terminal, which also what it starts could ask something on."""
    words = ["git", *arguments]
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            words,
            cwd=cwd,
            env=dict(environment),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=alone,
        )
    except OSError as error:
        if not cwd.is_dir():
            raise NoRepository(f"there is no directory `{cwd}`") from None
        if isinstance(error, FileNotFoundError):
            raise NoRepository("`git` is not on PATH", "install git") from None
        raise NoRepository(f"cannot run `git`: {error.strerror}") from error
    with process:
        try:
            stdout, stderr = _wait(process, stdin or b"", cwd, seconds)
        except BaseException:
            if alone:  # with whatever it has started to log in
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            raise
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


def _wait(process: subprocess.Popen[bytes], stdin: bytes, cwd: Path, seconds: float) -> tuple[bytes, bytes]:
    """
    Wait for a command to end, but not without end.

    Git opens a `.gitignore` that is a pipe and waits for somebody to write into it.
    """
    soon = min(SLOW, seconds)
    with suppress(subprocess.TimeoutExpired):
        return process.communicate(stdin, timeout=soon)
    pipe = next(_pipes(cwd), None)
    if pipe is None:
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=seconds - soon)
    process.terminate()  # which lets git remove its locks
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=SLOW)
    if pipe is not None:
        raise GitFailed(f"`{pipe}` is a pipe, and git waits for what comes out of it", f"remove `{pipe}`")
    raise GitFailed(f"git did not end within {seconds:.0f} s")


def _pipes(directory: Path) -> Iterator[Path]:
    """The files that git would read for its own use, were they not pipes."""
    for parent, _, names in os.walk(directory):
        for name in names:
            if name in (".gitignore", ".gitattributes", ".gitmodules"):
                path = Path(parent, name)
                if stat.S_ISFIFO(path.lstat().st_mode):
                    yield path
