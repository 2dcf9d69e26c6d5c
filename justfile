# The recipes are the interface; each calls one tool or inferctl, where behaviour lives.

root := justfile_directory()
export PATH := root / ".tools/bin" + ":" + root / ".venv/bin" + ":" + env("PATH")

# List the recipes.
default:
    @just --list
