# The recipes are the interface; each calls one tool or inferctl, where behaviour lives.

set positional-arguments
set shell := ["bash", "-euo", "pipefail", "-c"]

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
    @inferctl cluster up {{ options }}

# Remove the cluster, whatever state it is in.
cluster-down *options:
    @inferctl cluster down {{ options }}

# Show whether the cluster is up, and the state of its parts.
cluster-status *options:
    @inferctl cluster status {{ options }}

# Install the mock engine as the release "mock"; brings the cluster up if there is none.
deploy *options:
    @inferctl deploy "$@"

# Send load to a release from a pod beside it, and count how every request ended.
load release="mock" seconds="120" concurrency="4" node="":
    @inferctl load --release "$1" --seconds "$2" --concurrency "$3" --node "$4"

# Say how the last load ended; exit code 1 if any of its requests did not end ok, 2 if nothing was measured.
_load-result:
    @inferctl load --last

# Replace every pod of a release under load and say what was lost; the mock engine is deployed first, with a cluster if there is none.
rollout-test release="mock" *options:
    @inferctl rollout-test --deploy {{ if release =~ '^-' { "" } else { "--release" } }} "$@"

# The same with the protection taken away: it must lose requests.
rollout-test-control release="mock" *options:
    @inferctl rollout-test --deploy --control {{ if release =~ '^-' { "" } else { "--release" } }} "$@"

# Drain the node of a release's first pod under load, with two replicas, and say what was lost.
drain-test release="mock" *options:
    @inferctl drain-test --deploy {{ if release =~ '^-' { "" } else { "--release" } }} "$@"

# The same with the protection taken away: it must lose requests.
drain-test-control release="mock" *options:
    @inferctl drain-test --deploy --control {{ if release =~ '^-' { "" } else { "--release" } }} "$@"

# Run the tests on real clusters, which come and go with them, and those with a browser.
e2e *options:
    inferctl tools cluster release check oldest
    pytest tests/e2e tests/edges tests/chart/test_upgrades.py tests/chart/test_properties.py tests/unit/report/test_browser.py "$@"

# Run the edge suite on the mock engine.
edges *options:
    pytest tests/edges "$@"

# Run the edge suite on real vLLM (CPU build; installs about 6 GB into a folder of its own).
edges-vllm *options:
    python tests/edges/run_vllm.py "$@"

# Run `vllm bench serve` and guidellm against the mock engine (installs about 6 GB into the same folder).
edges-clients *options:
    python tests/edges/run_vllm.py --clients "$@"

# Try 20,000 random values files against the chart and a real API server.
chart-fuzz *options:
    inferctl tools cluster release check
    pytest tests/chart/test_properties.py --chart-files 20000 "$@"

# Run formatters in check mode, linters, the chart's checks and the tests that need no cluster.
check *names:
    inferctl check "$@"

# Say everything that this machine lacks, each with its fix.
doctor *options:
    @inferctl doctor {{ options }}

# Have git run the quick checks on what is staged, before each commit.
hooks:
    inferctl tools check
    inferctl hooks install

_staged:
    @inferctl hooks staged

# Run the chart's unit tests.
test:
    HELM_PLUGINS=kube helm unittest charts/inference-service

# Lint the chart, and validate what it renders against the schemas of Kubernetes.
lint:
    helm lint --strict charts/inference-service --values charts/inference-service/ci/lint-values.yaml
    helm template mock charts/inference-service --values charts/inference-service/ci/lint-values.yaml | kubeconform -strict -summary -kubernetes-version "$(just _k8s-version)" -schema-location "$(python tests/chart/kubernetes_schemas.py .tools/cache/kubernetes-schemas)"

# Print the Kubernetes version of the node image that kind is given.
_k8s-version:
    @sed -nE 's|.*kindest/node:v([0-9.]+)@.*|\1|p' local/kind-config.yml

# Write docs/commands.md anew, from the recipes and from the help of every command.
docs:
    python -m inferctl.reference

# Write docs/walkthrough.md anew: runs every command in it, for about ten minutes, and needs a machine without a cluster.
walkthrough:
    python docs/make_walkthrough.py

# Draw docs/report.png anew from the timeline of a run (needs Chromium or Chrome).
report-picture timeline:
    python -m docs.make_report_picture "$1"

# Pin the Python packages anew, by hash (needs uv).
lock:
    uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "just lock" --group pyproject.toml:dev --output-file requirements.lock pyproject.toml
