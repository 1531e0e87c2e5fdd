"""
The tools that a model is offered: announced to the client, asked for where the mode says so, then used.

What a mode does not allow is not offered, so a model that asks for it all the same is told there is no such
tool.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from pydantic_ai import RunContext, Tool
from pydantic_ai.exceptions import ToolFailed

from planforge.agents.api import keys
from planforge.agents.api.options import Mode, Options
from planforge.agents.api.tools import Refused, files, shell
from planforge.agents.api.updates import Kind, Updates
from planforge.kernel import python

LOOKING_SECONDS = 30.0
"""How long listing and searching may take."""

LONGEST = 3600.0
"""How long, in seconds, a command may be given at most."""


class Toolset:
    """The tools of one turn, in one worktree."""

    def __init__(self, root: Path, mode: Mode, options: Options, updates: Updates) -> None:
        self._root = root
        self._mode = mode
        self._options = options
        self._updates = updates
        self._environment = keys.harmless(os.environ)

    def offered(self) -> Sequence[Tool[None]]:
        """The tools that the mode allows."""
        if self._mode == "text":
            return []
        looking = [Tool(self.read), Tool(self.list), Tool(self.search)]
        if self._mode == "read":
            return looking
        changing = [Tool(tool, sequential=True) for tool in (self.write, self.edit, self.shell)]
        return [*looking, *changing]

    async def read(self, ctx: RunContext[None], path: str, first_line: int = 1, last_line: int = 0) -> str:
        """Read a text file.

        Args:
            path: The file, relative to the working directory.
            first_line: The first line wanted, from 1.
            last_line: The last line wanted; 0 for as many as one answer holds.
        """
        do = partial(asyncio.to_thread, files.read, self._root, path, first_line, last_line)
        return await self._use(ctx, f"Read {path}", "read", [path], do)

    async def list(self, ctx: RunContext[None], path: str = ".", pattern: str = "", depth: int = 1) -> str:
        """List a directory; names of directories end with a slash.

        Args:
            path: The directory, relative to the working directory.
            pattern: Only names or paths that fit, such as `*.py`.
            depth: How many levels down.
        """
        said = {"path": path, "pattern": pattern, "depth": depth}
        return await self._use(ctx, f"List {path}", "search", [path], lambda: self._look("list", said))

    async def search(
        self, ctx: RunContext[None], pattern: str, path: str = ".", files: str = "", regex: bool = False
    ) -> str:
        """Search text files; answers with `path:line:text`.

        Args:
            pattern: The text to find, or a Python regular expression.
            path: The file or directory to search, relative to the working directory.
            files: Only files whose names or paths fit, such as `*.py`.
            regex: Whether the pattern is a regular expression.
        """
        said = {"pattern": pattern, "path": path, "files": files, "regex": regex}
        return await self._use(ctx, f"Search {pattern}", "search", [path], lambda: self._look("search", said))

    async def write(self, ctx: RunContext[None], path: str, content: str) -> str:
        """Write a file anew, as a whole; directories above it are made.

        Args:
            path: The file, relative to the working directory.
            content: All that it is to hold.
        """
        do = partial(asyncio.to_thread, files.write, self._root, path, content)
        return await self._use(ctx, f"Write {path}", "edit", [path], do)

    async def edit(self, ctx: RunContext[None], path: str, old: str, new: str) -> str:
        """Replace one piece of a text file.

        Args:
            path: The file, relative to the working directory.
            old: The text to replace, exactly as it is there; it must be there once.
            new: The text that comes in its place.
        """
        do = partial(asyncio.to_thread, files.edit, self._root, path, old, new)
        return await self._use(ctx, f"Edit {path}", "edit", [path], do)

    async def shell(self, ctx: RunContext[None], command: str, seconds: float = 0) -> str:
        """Run a command with `/bin/sh -c` in the working directory. What it leaves running is ended with it.

        Args:
            command: The command.
            seconds: How long it may take; 0 for the usual time.
        """
        limit = min(seconds if seconds > 0 else self._options.shell_seconds, LONGEST)

        async def do() -> str:
            ended = await shell.run(
                ["/bin/sh", "-c", command], cwd=self._root, env=self._environment, seconds=limit
            )
            how = f"ended after {limit:g} s, its time" if ended.timed_out else f"exit code {ended.code}"
            said = f"{ended.output.rstrip()}\n({how})".lstrip()
            if ended.timed_out:
                raise Refused(said)
            return said

        return await self._use(ctx, command, "execute", [], do)

    async def _look(self, what: str, said: dict[str, object]) -> str:
        argv = [
            *python.running("planforge.agents.api.tools.search"),
            what,
            str(self._root),
            json.dumps(said),
        ]
        ended = await shell.run(argv, cwd=self._root, env=self._environment, seconds=LOOKING_SECONDS)
        if ended.timed_out:
            raise Refused(
                f"this took longer than {LOOKING_SECONDS:g} s; look for something simpler, or in less"
            )
        if ended.code:
            raise Refused(ended.output)
        return ended.output

    async def _use(
        self,
        ctx: RunContext[None],
        title: str,
        kind: Kind,
        paths: Sequence[str],
        do: Callable[[], Awaitable[str]],
    ) -> str:
        """Use a tool, and tell the client that it begins and how it ended."""
        call = ctx.tool_call_id or title
        absolute = [str(self._root / path) for path in paths]
        await self._updates.begin(call, title, kind, absolute)
        try:
            asks = self._mode == "ask" and kind in ("edit", "execute")
            if asks and not await self._updates.may(call, title, kind, absolute):
                raise Refused("this was not permitted; do without it")
            await self._updates.started(call)
            answer = await do()
        except Refused as refusal:
            await self._updates.ended(call, str(refusal), failed=True)
            raise ToolFailed(str(refusal)) from refusal
        except asyncio.CancelledError:
            await asyncio.shield(self._updates.ended(call, "cancelled", failed=True))
            raise
        await self._updates.ended(call, answer, failed=False)
        return answer
