"""
Whether a file is a migration of a database, by where it lies and what is in it.

Known are those of Django, Alembic, Rails, Prisma, Flyway, Knex, Laravel, Ecto and plain
numbered SQL. A framework's own code about migrations is not one.
"""

from __future__ import annotations

import re

PLACES = re.compile(
    r"(?:^|/)(?:"
    r"prisma/migrations/.+|"
    r"(?:alembic|migrations?)/versions/[^/]+\.py|"
    r"db/(?:migrate|migrations?)/[^/]+\.(?:rb|sql|js|ts|cjs|mjs|go|kt|java)|"
    r"db/(?:schema\.rb|structure\.sql)|"
    r"(?:database|repo|[^/]+)/migrations/(?:.*/)?\d[^/]*\.(?:php|exs|sql|js|ts|cjs|mjs|rb|go|py|xml|ya?ml)|"
    r"migrations/(?:.*/)?\d[^/]*\.(?:php|exs|sql|js|ts|cjs|mjs|rb|go|py|xml|ya?ml)|"
    r"(?:[^/]+/)*[vur]\d*(?:[._]\d+)*__[^/]+\.(?:sql|java|kt)|"
    r"migrations?/[^/]+\.(?:up|down)\.sql"
    r")$"
)
CODE = re.compile(
    r"^\s*class\s+Migration\s*\(\s*(?:migrations\.)?Migration\s*\)|^down_revision\b", re.MULTILINE
)


def is_migration(path: str, *texts: str | None) -> bool:
    """Whether a file at this path, in small letters, with one of these texts is one."""
    if path.endswith("/__init__.py"):
        return False
    if PLACES.search(path):
        return True
    return path.endswith(".py") and any(CODE.search(text) for text in texts if text)
