"""
How tests look in each language, as patterns for code from which strings and comments are blanked.

A test is found by what announces it; a call such as `it("name", …)`, a function by its name or
by what is written above it, or, in Ruby, a line with its `end`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from planforge.rules.scanning.languages import Language
from planforge.rules.scanning.outlines import Strength


class Grammar(NamedTuple):
    """How one language writes tests."""

    assertion: re.Pattern[str]
    called: re.Pattern[str] | None = None
    """A call whose first argument is the name and whose last one is the test."""
    named: re.Pattern[str] | None = None
    """A function that is a test by its name."""
    marked: re.Pattern[str] | None = None
    """What is written above a function that is a test."""
    lines: re.Pattern[str] | None = None
    """A line that opens a test which ends with `end` as far to the left."""
    always_skipped: re.Pattern[str] | None = None
    maybe_skipped: re.Pattern[str] | None = None
    """Calls inside of a test; skipped always if nothing around them depends on anything."""
    focus: re.Pattern[str] | None = None
    commented: re.Pattern[str] | None = None
    """A test in a comment, without the marks of the comment."""
    helper: re.Pattern[str] | None = None
    """Something that may assert although it is written elsewhere."""


def _code(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


CHECKING = (
    r"\b\w*(?:[aA]ssert|[cC]heck|[vV]erif|[eE]xpect|[eE]nsure|[vV]alidat|[cC]ompare|[sS]hould|[mM]ust|[fF]ail)\w*"
    r"\s*!?\s*\("
)

JAVASCRIPT = Grammar(
    called=_code(
        r"(?<![.\w$])(?:it|test|specify|xit|xtest|xspecify|fit)"
        r"(?:\.(?:only|skip|todo|fails|failing|concurrent|sequential|each|for|skipIf|runIf|fixme|slow"
        r"|serial))*\s*[(`\"]"
    ),
    assertion=_code(
        r"(?<![.\w$])expect(?:TypeOf|\.soft|\.poll)?\s*\(|(?<![.\w$])(?:chai\.|sinon\."
        r"|t\.)?assert(?:\.\w+)*\s*\("
        r"|\.should\b|(?<![.\w$])should\s*\(|\.expect\s*\(|(?<![.\w$])assert\w+\s*\("
        r"|\bt\.(?:is|not|deepEqual|like|true|false|truthy|falsy|throws\w*|ok|notOk|equal|same"
        r"|strictSame|match|regex"
        r"|snapshot|fail|pass|error|end|plan)\s*\(|(?<![.\w$])fail\s*\("
    ),
    always_skipped=_code(
        r"(?<![.\w$])(?:it|test|describe|context|suite|specify)(?:\.\w+)*\.(?:skip|todo"
        r"|fixme)\s*\(\s*(?=[\"`)])"
        r"|(?<![.\w$])(?:xit|xdescribe|xtest|xcontext|xspecify)\s*\(\s*(?=\")|(?<![.\w$])pending\s*\("
    ),
    maybe_skipped=_code(
        r"\bthis\.skip\s*\(|\b(?:t|ctx|context)\.skip\s*\(|(?<![.\w$])test\.skip\s*\(\s*(?![\"`\s])"
    ),
    focus=_code(
        r"(?<![.\w$])(?:it|test|describe|context|suite|specify)(?:\.\w+)*\.only\b"
        r"|(?<![.\w$])(?:fit|fdescribe|fcontext)\s*\(\s*(?=\")"
    ),
    commented=re.compile(r"(?:it|test|specify)(?:\.\w+)*\s*\(\s*[\"'`].*(?:=>|function\b)"),
    helper=_code(CHECKING + r"|\b(?:getBy|getAllBy|findBy|findAllBy|waitFor)\w*\s*\(|\bcy\.|\brequest\s*\("),
)

GO = Grammar(
    named=_code(r"^func\s+(?P<name>Test[A-Z_0-9]?\w*)\s*\((?=\s*\w+\s+\*testing\.T\b)"),
    assertion=_code(
        r"\b(?:t|tb|b|s\.T\(\)|suite\.T\(\))\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\s*\("
        r"|\b(?:assert|require|is|qt)\.[A-Z]\w+\s*\((?=\s*[\w\"\[&*(])"
        r"|\b\w{1,6}\.(?:Equal|NotEqual|NoError|ErrorIs|True|False|Nil|NotNil|Len|Contains|Empty|Assert|Check"
        r"|Panics|JSONEq|EqualValues|EqualError)f?\s*\("
        r"|\bExpect\s*\(|\bpanic\s*\("
        r"|\b\w*[aA]ssert\w*\s*\("
    ),
    maybe_skipped=_code(r"\b(?:t|tb|b)\.(?:Skip|Skipf|SkipNow)\s*\(|(?<![.\w])Skip\s*\("),
    always_skipped=_code(r"(?<![.\w])(?:XIt|XDescribe|PIt|PDescribe|PContext|XContext)\s*\("),
    focus=_code(r"(?<![.\w])(?:FIt|FDescribe|FContext|FEntry)\s*\(\s*(?=\")"),
    commented=re.compile(r"func\s+Test\w+\s*\(\s*\w+\s+\*testing\.T\s*\)"),
    helper=_code(CHECKING + r"|\w\s*\((?:[^()\n]*,\s*)?(?:t|tb|s\.T\(\))\s*[,)]|\bt\.Run\s*\("),
)

RUST = Grammar(
    marked=_code(r"#\[\s*(?:[\w:]+::)?(?:test|rstest|test_case|quickcheck|case)\b[^\]\n]*\]?"),
    assertion=_code(
        r"\b\w*(?:assert\w*|panic|unreachable|todo|unimplemented)!\s*[(\[{]|\.(?:unwrap|expect"
        r"|unwrap_err|expect_err)\s*\("
        r"|\bassert\w+\s*\(|\?\s*;"
    ),
    always_skipped=_code(r"#\[\s*ignore\b[^\]\n]*\]"),
    commented=re.compile(r"#\[\s*(?:\w+::)?test\s*\]"),
    helper=_code(CHECKING + r"|#\[\s*should_panic"),
)

JAVA = Grammar(
    marked=_code(r"@(?:org\.junit\.\w+\.)*(?:Test|ParameterizedTest|RepeatedTest|TestTemplate)\b(?!\w)"),
    assertion=_code(
        r"\b(?:Assertions?\.|Assert\.|Truth\.)?(?:assert\w*|fail|verify\w*|expectThrows)\s*\("
        r"|\.(?:andExpect|expect\w*|should\w*"
        r"|verify\w*|isEqualTo|then)\s*\(|\bassert\s"
    ),
    always_skipped=_code(r"@(?:Disabled|Ignore)\b(?!\w)"),
    maybe_skipped=_code(r"\bAssum(?:e|ptions)\.\w+\s*\(|\bassum(?:eTrue|eFalse|eThat|eNoException)\s*\("),
    commented=re.compile(r"@Test\b"),
    helper=_code(CHECKING + r"|@Test\s*\(\s*expected|\bStepVerifier\b|\bthrown\.|\.await\w*\s*\("),
)

KOTLIN = JAVA._replace(
    called=_code(r"(?<![.\w@])(?:test|it|should|expect|xtest|xit)\s*\(\s*(?=\")"),
    assertion=_code(
        r"\b(?:Assertions?\.|Assert\.)?(?:assert\w*|fail|verify\w*|coVerify\w*|check|require)\s*[({<]"
        r"|\bshould\w*\b|\bexpectThat\w*\s*\("
        r"|\.(?:andExpect|isEqualTo|expect\w*)\s*\("
    ),
    always_skipped=_code(
        r"@(?:Disabled|Ignore)\b(?!\w)|(?<![.\w])(?:xtest|xit|xdescribe|xcontext|xshould)\s*\(\s*(?=\")"
    ),
    helper=_code(CHECKING + r"|@Test\s*\(\s*expected|\bturbine\b|\.test\s*\{"),
)

CSHARP = Grammar(
    marked=_code(
        r"\[\s*(?:[\w.]+\.)?(?:Fact|Theory|Test|TestMethod|DataTestMethod|TestCase|TestCaseSource"
        r"|InlineData|DataRow)\b"
    ),
    assertion=_code(
        r"\b\w*Assert\.(?:That\s*\.\s*)?\w+(?:<[^()\n]*>)?\s*\(|\.Should\w*\s*\(|\.Verify\w*\s*\("
        r"|\bExpect\w*\s*\(|\.Received\w*\s*\("
        r"|\.ShouldBe\w*\s*\(|\bVerify\w*\s*\("
    ),
    always_skipped=_code(r"\[\s*(?:Ignore|Explicit)\b|\bSkip\s*=\s*(?=[\"$@])"),
    maybe_skipped=_code(r"\bAssert\.(?:Ignore|Inconclusive|Skip)\s*\(|\bSkip\.(?:If|IfNot|When|Unless)\s*\("),
    commented=re.compile(r"\[(?:Fact|Theory|Test|TestMethod)\b[^\]]*\]"),
    helper=_code(CHECKING + r"|\[\s*ExpectedException"),
)

PHP = Grammar(
    called=_code(r"^(?:it|test)\s*\(\s*(?=\")"),
    named=_code(r"\bfunction\s+(?P<name>test\w*)\s*\("),
    marked=_code(r"\#\[\s*(?:\\?[\w\\]+\\)?(?:Test|TestWith|DataProvider)\b"),
    assertion=_code(
        r"(?:->|::)(?:assert\w*|expect\w*|fail|should\w*|verify\w*)\s*\(|(?<![\w>:$])expect\s*\("
        r"|(?<![\w>:$])assert\w*\s*\("
    ),
    maybe_skipped=_code(r"(?:->|::)(?:markTestSkipped|markTestIncomplete)\s*\("),
    always_skipped=_code(r"->(?:skip|todo)\s*\(\s*(?=[\")])"),
    focus=_code(r"->only\s*\(\s*\)"),
    commented=re.compile(r"(?:public\s+)?function\s+test\w+\s*\("),
    helper=_code(CHECKING),
)

RUBY = Grammar(
    lines=_code(
        r"^(?P<indent>[ \t]*)(?:(?:it|specify|test|scenario|example|fit|xit|its?)\b[ (]*(?=[\"{:d]"
        r"|do\b)[^\n]*\bdo\b(?:[ \t]*\|[^|\n]*\|)?[ \t]*$"
        r"|def[ \t]+(?P<name>test_\w+[?!]?)[^\n]*$)"
    ),
    assertion=_code(
        r"\bexpect(?:_any_instance_of)?\b[ ({]|\b(?:assert|refute)\w*\b|\.(?:must|wont)_\w+"
        r"|\bshould(?:_not)?\b|\bis_expected\b|\bflunk\b"
        r"|\ballow\w*\b.*\bto\b"
    ),
    always_skipped=_code(
        r"^[ \t]*(?:xit|xdescribe|xcontext|xspecify|xscenario)\b(?=[ (])|,[ \t]*(?:skip"
        r"|pending):[ \t]*(?:true|\")|,[ \t]*:(?:skip|pending)\b"
    ),
    maybe_skipped=_code(r"^[ \t]*(?:skip|pending|omit)\b(?![ \t]*[=.])(?:[ (]*(?=\")|[ \t]*$)"),
    focus=_code(r"^[ \t]*(?:fit|fdescribe|fcontext)\b[ (]+(?=\")|,[ \t]*(?:focus:[ \t]*true|:focus)\b"),
    commented=re.compile(r"(?:it[ (]+[\"'].*\bdo\b|def\s+test_\w+)"),
    helper=_code(r"\b\w*(?:assert|check|verif|expect|ensure|validat|compare|should|must|raise)\w*"),
)

SHELL = Grammar(
    named=_code(r"^[ \t]*(?:function[ \t]+)?(?P<name>test_\w+|test[A-Z]\w*)[ \t]*\([ \t]*\)"),
    assertion=_code(
        r"\bassert\w*\b|\bfail\b|\[\[?[ \t]|\bexit[ \t]+[1-9]|\brun[ \t]|\bgrep\b|\bdiff\b|\btest[ \t]"
    ),
    maybe_skipped=_code(r"^[ \t]*skip\b(?![ \t]*[=(])"),
    commented=re.compile(r"@test\s+[\"'].*[\"']\s*\{"),
    helper=_code(r"\w"),
)

PYTHON = Grammar(
    lines=_code(r"^(?P<indent>[ \t]*)(?:async[ \t]+)?def[ \t]+(?P<name>test\w*)[ \t]*\("),
    assertion=_code(r"^[ \t]*assert\b|\.(?:assert|fail)\w*\s*\(|\bpytest\.(?:raises|warns|fail)\s*\("),
    always_skipped=_code(r"^[ \t]*@(?:unittest|pytest\.mark)\.skip\b(?!\w)"),
    maybe_skipped=_code(r"\bself\.skipTest\s*\(|\bpytest\.skip\s*\(|\braise\s+(?:unittest\.)?SkipTest\b"),
    commented=re.compile(r"(?:async )?def test\w*\(.*\)(?:\s*->.*)?:"),
    helper=_code(r"\w\s*\("),
)
"""Only for files that do not parse; whatever is called may assert."""

GRAMMARS = {
    Language.PYTHON: PYTHON,
    Language.JAVASCRIPT: JAVASCRIPT,
    Language.GO: GO,
    Language.RUST: RUST,
    Language.JAVA: JAVA,
    Language.KOTLIN: KOTLIN,
    Language.CSHARP: CSHARP,
    Language.PHP: PHP,
    Language.RUBY: RUBY,
    Language.SHELL: SHELL,
}

STRENGTHS: tuple[tuple[Strength, re.Pattern[str]], ...] = (
    (
        Strength.NO_ERROR,
        re.compile(
            r"\bnot\.toThrow|[dD]oesNotThrow|\.NoError\b|\bNoErrorf\b|NotThrow|not_to\s+raise_error"
            r"|to_not\s+raise_error"
            r"|assert_nothing_raised|expectNotToPerformAssertions|shouldNotThrow|\.ifError\b"
            r"|expect\s*\(\s*\w*[eE]rr(?:or)?\w*\s*\)\s*\.(?:toBeNull|toBeUndefined|toBeFalsy"
            r"|to\.be\.(?:null|undefined)"
            r"|to\.not\.exist|not\.to\.exist|toBe\s*\(\s*(?:null|undefined))"
            r"|\b(?:Nil|isNull|assertNull|assertNil|IsNull|isUndefined"
            r"|isNil)\s*\(\s*(?:t\s*,\s*)?\$?\w*\berr(?:or)?\b"
        ),
    ),
    (
        Strength.CLOSE,
        re.compile(
            r"toBeCloseTo|closeTo|InDelta|InEpsilon|[iI]sCloseTo|toMatch\b|\.match\s*\(|Snapshot"
            r"|assertMatches|Regexp|be_within"
            r"|toThrow|assertThrows|\.throws?\w*\b|Throws|raise_error|Panics|assert_raises"
            r"|expectException|ErrorIs|should_panic"
            r"|EqualWithDelta|rejects"
        ),
    ),
    (
        Strength.PARTIAL,
        re.compile(
            r"toContain|toHaveProperty|toBeGreater|toBeLess|toMatchObject|arrayContaining"
            r"|objectContaining|oneOf|[cC]ontains"
            r"|\binclude|assert_includes|Greater|Less|[iI]nstanceOf|IsType|not\.toBe\b|not\.toEqual"
            r"|not_to\b|to_not\b|NotEqual"
            r"|assert_ne|NotEquals|NotSame|matches!|assertInstanceOf|assertCount|toHaveLength|any\s*\("
        ),
    ),
    (
        Strength.PRESENT,
        re.compile(
            r"toBeTruthy|toBeDefined|toBeFalsy|not\.toBeNull|not\.toBeUndefined|NotNil|NotNull|NotEmpty"
            r"|be_truthy|be_falsey|be_present"
            r"|NotNil|to\.exist|\.ok\b|toHaveBeenCalled\s*\(\s*\)|is_some\s*\(\s*\)|is_ok\s*\(\s*\)"
            r"|assert_not_nil|refute_nil"
            r"|truthy|falsy|toBeInTheDocument|toBeVisible"
        ),
    ),
    (
        Strength.EXACT,
        re.compile(
            r"toBe\s*\(|toBe(?:True|False|Null|Undefined|NaN)\b|toEqual|toStrictEqual|[eE]qual|\beql?\b"
            r"|assert_eq|[sS]ame\b|\bIs\b"
            r"|shouldBe|must_equal|\bis\s*\(|===|==|\.equals\s*\(|toHaveBeenCalledWith|isTrue|isFalse"
            r"|be\s+(?:true|false)\b|be_nil"
            r"|toHaveText|\bisNull\b|\bNil\s*\(|\bEmpty\b|assertNull|!="
        ),
    ),
)
"""What an assertion says by the first of these that is in it; the order matters."""
