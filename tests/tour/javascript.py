"""The tour in a JavaScript project: `json-stable-stringify`, whose package has its tests in it."""

from __future__ import annotations

from tour.stories import Part, Story

DIGEST = Part(
    module="lib/digest.js",
    test="test/digest.test.js",
    asks="`digest(value)`: the SHA-256 of the stable string in hexadecimal, the same for any order of keys.",
    code="""\
var createHash = require('crypto').createHash;
var stringify = require('../');

module.exports = function (value) {
    return createHash('sha256').update(stringify(value)).digest('hex');
};
""",
    tests="""\
var test = require('tape');
var digest = require('../lib/digest');

test('the order of keys does not count', function (t) {
    t.plan(2);
    t.equal(digest({ a: 1, b: 2 }), digest({ b: 2, a: 1 }));
    t.equal(digest({}).length, 64);
});
""",
)
EQUAL = Part(
    module="lib/equal.js",
    test="test/equal.test.js",
    asks="`equal(a, b)`: whether both have the same stable string.",
    code="""\
var stringify = require('../');

module.exports = function (a, b) {
    return stringify(a) === stringify(b);
};
""",
    tests="""\
var test = require('tape');
var equal = require('../lib/equal');

test('values are equal if their strings are', function (t) {
    t.plan(2);
    t.ok(equal({ a: [1], b: 2 }, { b: 2, a: [1] }));
    t.notOk(equal({ a: [1] }, { a: [2] }));
});
""",
)
SIZE = Part(
    module="lib/size.js",
    test="test/size.test.js",
    asks="`size(value)`: how many bytes the stable string has in UTF-8.",
    code="""\
var stringify = require('../');

module.exports = function (value) {
    return Buffer.byteLength(stringify(value), 'utf8');
};
""",
    wrong="""\
var stringify = require('../');

module.exports = function (value) {
    return stringify(value).length;
};
""",
    tests="""\
var test = require('tape');
var size = require('../lib/size');

test('bytes are counted and not letters', function (t) {
    t.plan(2);
    t.equal(size({ a: 1 }), 7);
    t.equal(size('\\u00e9'), 4);
});
""",
)
MERGE = Part(
    module="lib/merge.js",
    test="test/merge.test.js",
    asks="`merge(a, b)`: both objects in one, at every depth, as a stable string.",
    code="",
    wrong="""\
var stringify = require('../');

module.exports = function (a, b) {
    return stringify(Object.assign({}, a, b));
};
""",
    tests="""\
var test = require('tape');
var merge = require('../lib/merge');

test('what is deeper is merged too', function (t) {
    t.plan(1);
    t.equal(merge({ a: { b: 1 } }, { a: { c: 2 } }), '{"a":{"b":1,"c":2}}');
});
""",
)
SORTED = Part(
    module="lib/sorted.js",
    test="test/sorted.test.js",
    asks="`sorted(value)`: a copy whose keys are in order.",
    code="""\
var stringify = require('../');

module.exports = function (value) {
    return JSON.parse(stringify(value));
};
""",
    tests="""\
var test = require('tape');
var sorted = require('../lib/sorted');

test('keys are in order', function (t) {
    t.plan(1);
    t.deepEqual(Object.keys(sorted({ b: 1, a: 2 })), ['a', 'b']);
});
""",
)

STORY = Story(
    project="json-stable-stringify",
    kind="JavaScript",
    about="a JavaScript module that writes JSON with its keys in order, with 24 tests of its own that "
    "`npm test` runs",
    request="Add lib/ to json-stable-stringify: digest, equal, size, merge and sorted",
    objective="Who writes JSON in a stable order wants to hash, measure and compare it; now they can.",
    testing="`npm test` runs everything in `test/`; each new function has tests of its own.",
    parts=(DIGEST, EQUAL, SIZE, MERGE, SORTED),
    vague="`digest(value)`: a hash of the value.",
    finding="`digest` does not say which hash it is, so two correct implementations would not agree",
    by_hand=("the same stable string.", "the same stable string; `undefined` is equal to nothing."),
    reason="merging is another package's job",
    readme="readme.markdown",
    readme_asks="a sentence that names the new modules.",
    readme_edit=(
        "You can also pass in a custom comparison function.\n",
        "You can also pass in a custom comparison function.\n\n"
        "`lib/` has `digest`, `equal`, `size` and `sorted`, which are made of it.\n",
    ),
    checks=(("npm", "test"),),
)
