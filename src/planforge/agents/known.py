"""
The agents that Planforge knows, as data.

What is said of them was measured on the programs themselves, against a scripted server; docs/agents.md says
where not. Every agent gets a private home, so nothing of a person's settings, hooks, tools or memories comes
in: the environment and the files here are all the configuration there is. None of them calls home or updates
itself.
"""

from __future__ import annotations

from typing import Any

import msgspec

from planforge.agents.profiles import MODELS, REHEARSAL, Profile, Way
from planforge.kernel import python

ANTHROPIC, OPENAI, GOOGLE = "anthropic", "openai", "google"

PROXIES = (
    *("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy"),
    *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""How to the network, for those who have no other way."""

PLAIN = {"CI": "1", "NO_COLOR": "1", "TERM": "dumb"}
KEY = "scripted"
"""What stands for a key where a server asks for none."""


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


# Anthropic

CLAUDE_ENV = PLAIN | {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
CLAUDE_TIERS = {"heavy": "opus", "balanced": "sonnet", "light": "haiku"}
CLAUDE_ENDPOINT = {
    "ANTHROPIC_API_KEY": KEY,
    "ANTHROPIC_BASE_URL": "${endpoint}",
    "CLAUDE_CODE_MAX_RETRIES": "1",
}
CLAUDE_LOGIN = (".claude/.credentials.json",)
CLAUDE_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
CLAUDE_INHERITS = (
    "ANTHROPIC_BASE_URL",
    *(f"ANTHROPIC_DEFAULT_{model}_MODEL" for model in ("OPUS", "SONNET", "HAIKU")),
    *PROXIES,
)
READERS = ["Read", "Grep", "Glob"]
"""The tools of Claude that change nothing."""


def _claude_options(**options: object) -> dict[str, Any]:
    # No settings of the repository either: they may name hooks, which would run outside of any tool.
    return {"claudeCode": {"options": {"settingSources": [], "strictMcpConfig": True, **options}}}


CLAUDE_ACP = Profile(
    command=("claude-agent-acp",),
    vendor=ANTHROPIC,
    directories={"CLAUDE_CONFIG_DIR": ".claude"},
    env=CLAUDE_ENV,
    login=CLAUDE_LOGIN,
    login_env=CLAUDE_VARIABLES,
    login_command="claude auth login",
    read=Way(meta=_claude_options(tools=READERS)),  # none of its modes keeps it from writing
    write=Way(mode="default", meta=_claude_options()),
    model=Way(env={"ANTHROPIC_MODEL": "${model}"}),
    tiers=CLAUDE_TIERS,
    endpoint=Way(env=CLAUDE_ENDPOINT),
    resume="resume",
    usage="turn",
    inherit=CLAUDE_INHERITS,
    install="npm install -g @agentclientprotocol/claude-agent-acp",
)
CLAUDE_CLI = Profile(
    command=(
        *("claude", "-p", "--output-format", "stream-json", "--verbose"),
        *("--strict-mcp-config", "--setting-sources", ""),
    ),
    speaks="claude",
    vendor=ANTHROPIC,
    directories={"CLAUDE_CONFIG_DIR": ".claude"},
    env=CLAUDE_ENV,
    login=CLAUDE_LOGIN,
    login_env=CLAUDE_VARIABLES,
    login_command="claude auth login",
    # With `=`, for these options would take whatever follows for more tools.
    read=Way(args=(f"--tools={','.join(READERS)}",)),
    write=Way(args=("--permission-mode", "acceptEdits", "--allowedTools=Bash,WebFetch,WebSearch")),
    model=Way(args=("--model", "${model}")),
    tiers=CLAUDE_TIERS,
    endpoint=Way(env=CLAUDE_ENDPOINT),
    resume="resume",
    usage="turn",
    inherit=CLAUDE_INHERITS,
    install="npm install -g @anthropic-ai/claude-code",
)

# OpenAI

# Its own sandbox would make empty `.git` and the like in /tmp and, when it is killed, leave them there; the
# directory that TMPDIR names is its own.
CODEX_CONFIG = """\
check_for_update_on_startup = false
cli_auth_credentials_store = "file"

[analytics]
enabled = false

[features]
plugins = false
apps = false

[sandbox_workspace_write]
exclude_slash_tmp = true
"""
CODEX_SCRIPTED = """\
model = "scripted-1"
model_provider = "scripted"
"""
CODEX_PROVIDER = """
[model_providers.scripted]
name = "scripted"
base_url = "${endpoint}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 1
stream_max_retries = 1
"""
CODEX_FILE = "codex_home/config.toml"
CODEX_TIERS = {"heavy": "gpt-6.1-sol", "balanced": "gpt-6.1-terra", "light": "gpt-6-luna"}
CODEX_ENDPOINT = Way(
    env={"SCRIPTED_KEY": KEY, "MODEL_PROVIDER": "scripted"},
    files={CODEX_FILE: CODEX_SCRIPTED + CODEX_CONFIG + CODEX_PROVIDER},
)
CODEX_VARIABLES = ("CODEX_API_KEY", "OPENAI_API_KEY")

CODEX_ACP = Profile(
    command=("codex-acp",),
    vendor=OPENAI,
    directories={"CODEX_HOME": ".codex"},
    env=PLAIN | {"NO_BROWSER": "1", "DEFAULT_AUTH_REQUEST": '{"methodId": "api-key"}'},
    files={CODEX_FILE: CODEX_CONFIG},
    login=(".codex/auth.json",),
    login_env=CODEX_VARIABLES,
    login_command="codex login",
    read=Way(mode="read-only", env={"INITIAL_AGENT_MODE": "read-only"}),
    # Not `agent`: there a model decides what is permitted, and nobody is asked.
    write=Way(mode="workspace-write", env={"INITIAL_AGENT_MODE": "workspace-write"}),
    # Its own sandbox is bubblewrap, which starts neither in ours nor under Landlock: no command would run.
    confined=Way(mode="agent-full-access", env={"INITIAL_AGENT_MODE": "agent-full-access"}),
    model=Way(env={"CODEX_CONFIG": '{"model": "${model}"}'}),
    tiers=CODEX_TIERS,
    endpoint=CODEX_ENDPOINT,
    resume="resume",
    usage="turn",
    inherit=PROXIES,
    install="npm install -g @agentclientprotocol/codex-acp",
)
CODEX_CLI = Profile(
    command=("codex", "exec", "--json", "--skip-git-repo-check"),
    speaks="codex",
    vendor=OPENAI,
    directories={"CODEX_HOME": ".codex"},
    env=PLAIN,
    files={CODEX_FILE: CODEX_CONFIG},
    login=(".codex/auth.json",),
    login_env=("CODEX_API_KEY",),  # it does not look at OPENAI_API_KEY, unlike its adapter
    login_command="codex login",
    read=Way(args=("-c", 'sandbox_mode="read-only"')),
    write=Way(args=("-c", 'sandbox_mode="workspace-write"')),
    confined=Way(args=("-c", 'sandbox_mode="danger-full-access"')),  # as above
    model=Way(args=("-m", "${model}")),
    tiers=CODEX_TIERS,
    endpoint=CODEX_ENDPOINT,
    resume="resume",
    usage="thread",
    inherit=PROXIES,
    install="npm install -g @openai/codex",
)

# Google


def _gemini_settings(auth: str) -> str:
    return _json(
        {
            # Three attempts, not ten: a broken server is reported while somebody still waits for it.
            "general": {
                "enableAutoUpdate": False,
                "enableAutoUpdateNotification": False,
                "maxAttempts": 3,
            },
            "privacy": {"usageStatisticsEnabled": False},
            "security": {"auth": {"selectedType": auth}},
            "telemetry": {"enabled": False},
        }
    )


GEMINI_FILE = "gemini_cli_home/.gemini/settings.json"
GEMINI = Profile(
    command=("gemini", "--acp"),
    vendor=GOOGLE,
    directories={"GEMINI_CLI_HOME": ""},
    env=PLAIN
    | {
        "GEMINI_CLI_NO_RELAUNCH": "true",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_FORCE_FILE_STORAGE": "true",
    },
    files={GEMINI_FILE: _gemini_settings("gemini-api-key")},
    login=(".gemini/oauth_creds.json", ".gemini/google_accounts.json"),
    logged_in=Way(files={GEMINI_FILE: _gemini_settings("oauth-personal")}),
    login_env=("GEMINI_API_KEY",),
    login_command="gemini",
    read=Way(mode="plan"),
    write=Way(mode="default"),
    model=Way(args=("-m", "${model}")),
    tiers={"heavy": "pro", "balanced": "flash", "light": "flash-lite"},
    # Without a model it asks a small one first which large one to ask.
    endpoint=Way(
        env={
            "GEMINI_API_KEY": KEY,
            "GEMINI_MODEL": "gemini-2.5-flash",
            "GOOGLE_GEMINI_BASE_URL": "${endpoint}",
        }
    ),
    resume="load",
    resume_after=60.0,  # within the minute it writes over the conversation that it should take up
    usage="quota",
    inherit=("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", *PROXIES),
    install="npm install -g @google/gemini-cli",
)

# Those that ask whose models you like

DENIED = ("edit", "bash", "task", "webfetch", "websearch", "external_directory")
OPENCODE_PROVIDER = {
    "npm": "@ai-sdk/openai-compatible",
    "options": {"baseURL": "${endpoint}/v1", "apiKey": "{env:SCRIPTED_KEY}"},
    "models": {"scripted-1": {"name": "scripted-1", "limit": {"context": 200000, "output": 8000}}},
}
OPENCODE_FILE = "xdg_config_home/opencode/opencode.json"
OPENCODE_CONFIG = {"autoupdate": False, "share": "disabled", "snapshot": False}
OPENCODE = Profile(
    command=("opencode", "acp", "--print-logs", "--log-level", "ERROR"),
    directories={
        "XDG_CACHE_HOME": ".cache",
        "XDG_CONFIG_HOME": ".config",
        "XDG_DATA_HOME": ".local/share",
        "XDG_STATE_HOME": ".local/state",
    },
    env=PLAIN
    | {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_SHARE": "1",
    },
    files={OPENCODE_FILE: _json(OPENCODE_CONFIG)},
    login=(".local/share/opencode/auth.json",),
    login_env=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
    login_command="opencode auth login",
    # Its agent `plan` is not kept from writing by its shell; without permission the tools are gone.
    read=Way(env={"OPENCODE_PERMISSION": msgspec.json.encode(dict.fromkeys(DENIED, "deny")).decode()}),
    write=Way(
        env={
            "OPENCODE_PERMISSION": msgspec.json.encode(
                {"edit": "ask", "bash": "ask", "external_directory": "deny"}
            ).decode()
        }
    ),
    model=Way(option="model"),
    endpoint=Way(
        env={"SCRIPTED_KEY": KEY, "npm_config_registry": "${endpoint}/"},
        files={
            OPENCODE_FILE: _json(
                OPENCODE_CONFIG
                | {
                    "model": "scripted/scripted-1",
                    "small_model": "scripted/scripted-1",
                    "provider": {"scripted": OPENCODE_PROVIDER},
                }
            )
        },
    ),
    resume="load",
    usage="last_step",
    inherit=PROXIES,
    install="npm install -g opencode-ai",
)

PI_PROVIDER = {
    "baseUrl": "${endpoint}/v1",
    "api": "openai-completions",
    "apiKey": KEY,
    "models": [{"id": "scripted-1", "name": "scripted-1", "contextWindow": 200000, "maxTokens": 8000}],
}
PI_READER = '#!/bin/sh\nexec pi --tools read,grep,find,ls "$@"\n'
PI = Profile(
    command=("pi-acp",),
    starts=("pi",),
    directories={"PI_CODING_AGENT_DIR": ".pi/agent"},
    env=PLAIN | {"PI_OFFLINE": "1"},
    login=(".pi/agent/auth.json",),
    login_env=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
    login_command="pi, then /login",
    version=(),  # the adapter has no such option
    # The adapter has no way to say which tools there are, so it starts `pi` by way of a script that does.
    read=Way(env={"PI_ACP_PI_COMMAND": "${home}/read-only/pi"}, files={"read-only/pi": PI_READER}),
    model=Way(option="model"),
    endpoint=Way(
        files={
            "pi_coding_agent_dir/models.json": _json({"providers": {"scripted": PI_PROVIDER}}),
            "pi_coding_agent_dir/settings.json": _json(
                {"defaultProvider": "scripted", "defaultModel": "scripted-1"}
            ),
        },
    ),
    resume="load",
    usage="none",
    inherit=PROXIES,
    install="npm install -g pi-acp @earendil-works/pi-coding-agent",
)

GOOSE = Profile(
    command=("goose", "acp"),
    directories={
        "XDG_CONFIG_HOME": ".config",
        "XDG_DATA_HOME": ".local/share",
        "XDG_STATE_HOME": ".local/state",
    },
    env=PLAIN | {"GOOSE_DISABLE_KEYRING": "1", "GOOSE_TELEMETRY_ENABLED": "false"},
    login=(".config/goose/secrets.yaml",),
    login_env=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"),
    login_command="goose configure",
    read=Way(env={"GOOSE_MODE": "chat"}, tools=False),  # in this mode it only talks
    write=Way(env={"GOOSE_MODE": "approve"}),
    model=Way(env={"GOOSE_MODEL": "${model}"}),
    endpoint=Way(
        env={
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": "scripted-1",
            "OPENAI_API_KEY": KEY,
            "OPENAI_HOST": "${endpoint}",
        }
    ),
    resume="load",
    inherit=("GOOSE_PROVIDER", "GOOSE_MODEL", *PROXIES),
    install="see https://block.github.io/goose/docs/getting-started/installation",
)

# Ours


def _running(module: str) -> tuple[str, ...]:
    """The command that runs a module of ours; a `$` in a path of this machine stands for itself."""
    program, *words = python.running(module)
    return (program, *(word.replace("$", "$$") for word in words))


def _api(
    provider: str, vendor: str, keys: tuple[str, ...], version: str = "", *more: str, **tiers: str
) -> Profile:
    """A model asked by a program of ours; `version` is what the provider's addresses begin with."""
    return Profile(
        command=(*_running(MODELS), "--provider", provider, *more),
        needs="pydantic_ai",
        by_name=True,
        vendor=vendor,
        version=(),
        directories={"PLANFORGE_API_HOME": ".planforge-api"},
        login_env=keys,
        login_file="PLANFORGE_API_KEY_FILE",
        read=Way(mode="read"),
        write=Way(mode="ask"),
        model=Way(args=("--model", "${model}")),
        tiers=tiers,
        endpoint=Way(
            args=("--base-url", "${endpoint}" + version, "--model", "scripted-1"),
            env=dict.fromkeys(keys, KEY),
        ),
        resume="resume",
        usage="turn",
        inherit=PROXIES,
        install='pip install "planforge[api]"',
    )


API_ANTHROPIC = _api(
    *("anthropic", ANTHROPIC, ("ANTHROPIC_API_KEY",)),
    heavy="claude-opus-5-5",
    balanced="claude-sonnet-5-5",
    light="claude-haiku-5-5",
)
API_OPENAI = _api("openai", OPENAI, ("OPENAI_API_KEY",), "/v1", **CODEX_TIERS)
API_GOOGLE = _api(
    *("google", GOOGLE, ("GOOGLE_API_KEY", "GEMINI_API_KEY")),
    heavy="gemini-3.1-pro-preview",
    balanced="gemini-3.5-flash",
    light="gemini-3.5-flash-lite",
)
API_LOCAL = _api(
    *("openai-compatible", "", ("PLANFORGE_API_KEY",), "/v1", "--base-url", "http://127.0.0.1:11434/v1"),
)

KNOWN: dict[str, Profile] = {
    "claude": Profile(either=("claude-acp", "claude-cli"), vendor=ANTHROPIC),
    "claude-acp": CLAUDE_ACP,
    "claude-cli": CLAUDE_CLI,
    "codex": Profile(either=("codex-acp", "codex-cli"), vendor=OPENAI),
    "codex-acp": CODEX_ACP,
    "codex-cli": CODEX_CLI,
    "gemini": GEMINI,
    "opencode": OPENCODE,
    "pi": PI,
    "goose": GOOSE,
    "api-anthropic": API_ANTHROPIC,
    "api-openai": API_OPENAI,
    "api-google": API_GOOGLE,
    "api-local": API_LOCAL,
    REHEARSAL: Profile(
        command=_running("planforge.testing.rehearsal"), by_name=True, version=(), usage="turn"
    ),
}
"""By name, the preferred ones first."""
