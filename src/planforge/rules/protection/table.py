"""
The paths that need a person, by what they are.

A pattern is that of a lease: a path stands for itself and all below, `*` for a part of
a name, `**` for any directories. They are compared without capitals. The first kind
that has a pattern for a path is the one that counts.
"""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a protected file is."""

    CI = "ci"
    DEPENDENCY = "dependency"
    LOCK_FILE = "lock-file"
    AGENT = "agent-settings"
    PLANFORGE = "planforge-settings"
    GIT = "git-settings"
    HOOK = "hook"
    CHECK = "check-settings"
    MIGRATION = "migration"
    LICENCE = "licence"
    OWNER = "owner"
    FORMER_TESTS = "former-tests"
    """Earlier tests that fail now; found by running them, not by a path."""
    OWN = "protected"
    """What the project's own settings name."""


WORDS = {
    Kind.CI: "a CI file",
    Kind.DEPENDENCY: "a file that says what is installed",
    Kind.LOCK_FILE: "a lock file",
    Kind.AGENT: "a file that tells agents what to do",
    Kind.PLANFORGE: "a setting of Planforge",
    Kind.GIT: "a setting of git",
    Kind.HOOK: "a file that is run by itself",
    Kind.CHECK: "a file that says how the project is checked",
    Kind.MIGRATION: "a migration",
    Kind.LICENCE: "a licence",
    Kind.OWNER: "a file that says who reviews what",
    Kind.FORMER_TESTS: "tests that were there before",
    Kind.OWN: "a protected path",
}


def named(names: str) -> tuple[str, ...]:
    """Files of these names, anywhere."""
    return tuple(f"**/{name}" for name in names.split())


def below(names: str) -> tuple[str, ...]:
    """Everything in directories of these names, anywhere."""
    return tuple(f"**/{name}/**" for name in names.split())


def at(paths: str) -> tuple[str, ...]:
    """These paths, from the top of the repository."""
    return tuple(paths.split())


DEFAULTS: dict[Kind, tuple[str, ...]] = {
    Kind.PLANFORGE: at("planforge.toml .planforge planforge/roles") + named(".worktreeinclude"),
    Kind.OWNER: named("CODEOWNERS OWNERS OWNERS_ALIASES"),
    Kind.CI: (
        at("""
            .github/workflows .github/actions .github/*.yml .github/*.yaml .github/*.json
            .gitlab-ci.yml .gitlab-ci.yaml .gitlab-ci .gitlab/ci .gitlab/**/*.yml .circleci
            .buildkite .ci ci .travis.yml .drone.yml .drone.star .woodpecker .woodpecker.yml
            .appveyor.yml appveyor.yml .cirrus.yml .cirrus.star .semaphore azure-pipelines*.y*ml
            .azure-pipelines .azuredevops .azure/pipelines bitbucket-pipelines.yml cloudbuild.yaml
            cloudbuild.json buildspec*.yml codefresh.yml .forgejo/workflows .gitea/workflows
            .builds .build.yml .teamcity .harness .tekton bamboo-specs wercker.yml
            .readthedocs.y*ml netlify.toml vercel.json .goreleaser.y*ml renovate.json
            renovate.json5 .renovaterc .renovaterc.json codecov.yml .codecov.yml .mergify.yml
            sonar-project.properties .releaserc* release-please-config.json
        """)
        + named("action.yml action.yaml Jenkinsfile Jenkinsfile.* *.jenkinsfile")
    ),
    Kind.AGENT: (
        below("""
            .claude .codex .gemini .cursor .qwen .windsurf .clinerules .cline .roo .continue
            .opencode .amp .goose .junie .kiro .augment .agents .acp
        """)
        + at(".github/instructions .github/prompts .github/agents .github/chatmodes .github/skills")
        + at("docs/lessons.md")
        + named("""
            AGENTS.md AGENT.md AGENTS.override.md CLAUDE.md CLAUDE.local.md GEMINI.md QWEN.md
            SKILL.md .cursorrules .cursorignore .windsurfrules .roomodes .aider* .goosehints
            .mcp.json mcp.json opencode.json opencode.jsonc .geminiignore .claudeignore
            .agentignore copilot-instructions.md
        """)
    ),
    Kind.HOOK: (
        at("""
            .husky .githooks .git-hooks githooks .hooks .lefthook lefthook*.y*ml .lefthook*.y*ml
            lefthook.toml .overcommit.yml prek.toml .lintstagedrc* lint-staged.config.* .vscode
            .zed .idea/runConfigurations .devcontainer .devcontainer.json .gitpod.yml
        """)
        + named("""
            .pre-commit-config.y*ml .pre-commit-hooks.y*ml .envrc mise.toml .mise.toml .autoenv
            sitecustomize.py usercustomize.py *.pth
        """)
    ),
    Kind.GIT: (
        below(".git")
        + named("""
            .gitattributes .gitmodules .gitconfig .gitallowed .git-blame-ignore-revs .mailmap
            .lfsconfig
        """)
    ),
    Kind.LOCK_FILE: (
        named("""
            uv.lock poetry.lock Pipfile.lock pdm.lock pylock*.toml requirements*.lock pixi.lock
            conda-lock.yml package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock
            bun.lockb deno.lock Cargo.lock go.sum go.work.sum Gemfile.lock gems.locked
            composer.lock mix.lock rebar.lock pubspec.lock Podfile.lock Cartfile.resolved
            Package.resolved packages.lock.json paket.lock gradle.lockfile
            buildscript-gradle.lockfile verification-metadata.xml flake.lock renv.lock
            MODULE.bazel.lock stack.yaml.lock cabal.project.freeze .terraform.lock.hcl
        """)
    ),
    Kind.DEPENDENCY: (
        below(".yarn .cargo .mvn .bundle")
        + at("setup.py environment.yml environment.yaml Brewfile")
        + named("""
            .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs pnpm-workspace.yaml bunfig.toml pip.conf
            uv.toml rust-toolchain rust-toolchain.toml gradle-wrapper.properties
            gradle-wrapper.jar mvnw mvnw.cmd gradlew gradlew.bat NuGet.config Package.swift
            Podfile Cartfile mix.exs rebar.config build.sbt pubspec.yaml flake.nix MODULE.bazel
            WORKSPACE.bazel conanfile.* vcpkg.json *.gemspec *.cabal *.csproj *.fsproj *.vbproj
            Directory.Packages.props paket.dependencies stack.yaml
        """)
    ),
    Kind.CHECK: (
        named("""
            pytest.ini .pytest.ini tox.ini noxfile.py .coveragerc mypy.ini .mypy.ini .flake8
            ruff.toml .ruff.toml .pylintrc pylintrc pyrightconfig.json bandit.yaml .bandit
            jest.config.* .mocharc* vitest.config.* vitest.workspace.* playwright.config.*
            cypress.config.* karma.conf.* .nycrc* .c8rc* ava.config.* .eslintrc* eslint.config.*
            .eslintignore biome.json biome.jsonc tslint.json .oxlintrc.json .golangci.y*ml
            phpunit.xml phpunit.xml.dist phpstan.neon* psalm.xml .rspec .rubocop.yml clippy.toml
            .clippy.toml nextest.toml checkstyle.xml pmd.xml spotbugs*.xml detekt.yml
            CTestCustom.cmake .shellcheckrc .hadolint.yaml .semgrepignore .gitleaks.toml
            .secrets.baseline .trivyignore .snyk
        """)
    ),
    Kind.LICENCE: (
        at("""
            LICENSE* LICENCE* COPYING* NOTICE* COPYRIGHT* UNLICENSE* PATENTS* LICENSES LICENCES
            CLA.md DCO
        """)
        + named("LICENSE LICENCE LICENSE.txt LICENSE.md COPYING")
    ),
}
"""For each kind the patterns that make it out; manifests and migrations are also looked into."""

NOT_MEANT = at(".github/ISSUE_TEMPLATE .github/FUNDING.yml") + named(".gitkeep .gitignore")
"""What a pattern takes in and nobody minds: what is ignored by git cannot land anyway."""

GENERATED = (
    below("__snapshots__ __generated__ dist node_modules vendor cassettes")
    + named("*.min.js *.min.css *.map *_pb2.py *_pb2.pyi *_pb2_grpc.py *.pb.go *.pb.cc *.pb.h *.g.dart")
    + named("*.freezed.dart *.designer.cs *.generated.* *.gen.go *_gen.go *.snap *.ambr *.svg *.ipynb")
    + named("*.po *.pot *.xlf *.har")
)
"""What programs write, and nobody counts the lines of."""
