"""
The tour in a project of two languages: `node-gyp`, JavaScript that drives a copy of gyp in Python.

Its package has the tests of both sides in it, and each side has a runner of its own, so that `planforge.toml`
names two checks.
"""

from __future__ import annotations

from tour.stories import Part, Story

SETTINGS = """\
[checks.tests]
command = [
  "node", "${root}/node_modules/mocha/bin/mocha.js", "--reporter", "json", "--timeout", "60000",
  "--reporter-option", "output=${reports}/mocha.json",
  "test/test-find-*.js", "test/test-options.js", "test/test-process-release.js", "test/*.test.js",
]
report = "mocha"
file = "${reports}/mocha.json"

[checks.gyp]
command = [
  "python3", "-m", "unittest", "discover",
  "--start-directory", "gyp/pylib", "--top-level-directory", "gyp/pylib", "--pattern", "*_test.py",
]
report = "unittest"
env = { PYTHONDONTWRITEBYTECODE = "1" }

"""

TARGETS = Part(
    module="gyp/pylib/gyp/target_names.py",
    test="gyp/pylib/gyp/target_names_test.py",
    asks="`split(target)`: path, name and toolset of `a/b.gyp:name#toolset`; what is not there is `None`.",
    code='''\
"""Names of targets, taken apart."""


def split(target):
    """The path, the name and the toolset of a target."""
    path, _, rest = target.rpartition(":")
    name, _, toolset = rest.partition("#")
    return path or None, name or None, toolset or None
''',
    tests='''\
#!/usr/bin/env python3

""" Unit tests for the target_names.py file. """

import gyp.target_names as target_names
import unittest


class TestTargetNames(unittest.TestCase):
    def test_whole(self):
        self.assertEqual(target_names.split("a/b.gyp:c#host"), ("a/b.gyp", "c", "host"))

    def test_name_alone(self):
        self.assertEqual(target_names.split("c"), (None, "c", None))


if __name__ == "__main__":
    unittest.main()
''',
)
VERSIONS = Part(
    module="lib/version-range.js",
    test="test/version-range.test.js",
    asks="`range(version)`: the range of all versions with the same major number.",
    code="""\
'use strict'

const semver = require('semver')

function range (version) {
  const major = semver.major(version)
  return '>=' + major + '.0.0 <' + (major + 1) + '.0.0'
}

module.exports = range
""",
    tests="""\
'use strict'

const { describe, it } = require('mocha')
const assert = require('assert')
const range = require('../lib/version-range')

describe('version-range', function () {
  it('has the same major number', function () {
    assert.strictEqual(range('9.4.1'), '>=9.0.0 <10.0.0')
  })
})
""",
)
FLAGS = Part(
    module="lib/parse-flags.js",
    test="test/parse-flags.test.js",
    asks="`flags(text)`: the words of a string of compiler flags; what is in quotes is one word.",
    code="""\
'use strict'

function flags (text) {
  return (text.match(/"[^"]*"|\\S+/g) || []).map((word) => word.replace(/^"|"$/g, ''))
}

module.exports = flags
""",
    wrong="""\
'use strict'

function flags (text) {
  return text.split(' ')
}

module.exports = flags
""",
    tests="""\
'use strict'

const { describe, it } = require('mocha')
const assert = require('assert')
const flags = require('../lib/parse-flags')

describe('parse-flags', function () {
  it('takes words apart', function () {
    assert.deepStrictEqual(flags('-O2 -g'), ['-O2', '-g'])
  })

  it('keeps what is quoted together', function () {
    assert.deepStrictEqual(flags('-I "my dir"'), ['-I', 'my dir'])
  })
})
""",
)
PATHS = Part(
    module="gyp/pylib/gyp/short_paths.py",
    test="gyp/pylib/gyp/short_paths_test.py",
    asks="`shortened(path, limit)`: the path with its middle left out, at most `limit` letters.",
    code="",
    wrong='''\
"""Paths that fit."""


def shortened(path, limit):
    """The path, cut."""
    return path[:limit]
''',
    tests='''\
#!/usr/bin/env python3

""" Unit tests for the short_paths.py file. """

import gyp.short_paths as short_paths
import unittest


class TestShortPaths(unittest.TestCase):
    def test_the_end_is_kept(self):
        self.assertTrue(short_paths.shortened("one/two/three/four.gyp", 14).endswith("four.gyp"))


if __name__ == "__main__":
    unittest.main()
''',
)
ORDER = Part(
    module="gyp/pylib/gyp/build_order.py",
    test="gyp/pylib/gyp/build_order_test.py",
    asks="`ordered(needs)`: names so that each comes after all that it needs.",
    code='''\
"""What is built before what."""


def ordered(needs):
    """The names of `needs`, each after all that it needs."""
    done = []

    def visit(name):
        if name not in done:
            for other in sorted(needs.get(name, ())):
                visit(other)
            done.append(name)

    for name in sorted(needs):
        visit(name)
    return done
''',
    tests='''\
#!/usr/bin/env python3

""" Unit tests for the build_order.py file. """

import gyp.build_order as build_order
import unittest


class TestBuildOrder(unittest.TestCase):
    def test_what_is_needed_comes_first(self):
        self.assertEqual(build_order.ordered({"a": ["b"], "b": ["c"], "c": []}), ["c", "b", "a"])


if __name__ == "__main__":
    unittest.main()
''',
)

STORY = Story(
    project="node-gyp",
    kind="two languages",
    about="a tool in JavaScript that drives a copy of gyp in Python; mocha runs the tests of one side, "
    "unittest those of the other",
    request="Add small helpers on both sides of node-gyp: target names, version ranges, flags, paths, order",
    objective="Both sides take the same strings apart in many places; there is one place for each now.",
    testing="mocha runs the tests of JavaScript, unittest those of Python; each new function has its own.",
    parts=(TARGETS, VERSIONS, FLAGS, PATHS, ORDER),
    vague="`split(target)`: the parts of a target.",
    finding="`split` does not say what is returned for parts that are not there",
    by_hand=("the same major number.", "the same major number, as npm writes ranges."),
    reason="gyp has no limit on paths any more",
    readme="README.md",
    readme_asks="a line under Features that names the new helpers.",
    readme_edit=(
        " * Supports the targeting of different versions of Node.js\n",
        " * Supports the targeting of different versions of Node.js\n"
        " * Takes names of targets, ranges of versions and compiler flags apart\n",
    ),
    checks=(
        (*("node", "node_modules/mocha/bin/mocha.js", "--timeout", "60000"), "test/*.test.js"),
        (
            *("python3", "-m", "unittest", "discover"),
            *("-s", "gyp/pylib", "-t", "gyp/pylib", "-p", "*_test.py"),
        ),
    ),
    settings=SETTINGS,
)
