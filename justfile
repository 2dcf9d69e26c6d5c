# The recipes are the interface; each calls one tool or inferctl, where behaviour lives.

set positional-arguments

root := justfile_directory()

export PATH := root / ".tools/bin" + ":" + root / ".venv/bin" + ":" + env("PATH")

# List the recipes.
default:
    @just --list

# Build the programs that this project pins, those that are missing or changed.
tools *purposes:
    inferctl tools {{ purposes }}

# Bring the cluster up.
cluster-up *options:
    inferctl cluster up {{ options }}

# Remove the cluster, whatever state it is in.
cluster-down *options:
    inferctl cluster down {{ options }}

# Show whether the cluster is up, and the state of its parts.
cluster-status *options:
    inferctl cluster status {{ options }}

# Pin the Python packages anew, by hash (needs uv).
lock:
    uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "just lock" --group pyproject.toml:dev --output-file requirements.lock pyproject.toml
