"""What a client must know of a release is read from whatever values the release was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inferctl.cluster.target import Target
from inferctl.errors import UsageError
from inferctl.release.helm import Release
from inferctl.release.serving import serving

_RELEASE = Release(Target("existing", Path("/kubeconfig"), "context", "push:1", "pull:1"), "chat")
_IMAGE: dict[str, Any] = {"image": {"repository": "pull:1/engine", "digest": "sha256:0"}}


@pytest.mark.parametrize(
    "rest", [{}, {"service": None, "model": None, "engine": None, "rollout": None, "replicaCount": None},
             {"service": {"port": None}, "model": {"name": None}, "engine": {}, "rollout": {}}]
)  # fmt: skip
def test_what_is_not_given_or_null_has_the_chart_s_default(rest: dict[str, Any]) -> None:
    """A key that is missing or null means the chart's default, as it does to Helm."""
    found = serving(_RELEASE, {**_IMAGE, **rest})
    assert found.image == "pull:1/engine@sha256:0"
    assert found.url == "http://chat-inference-service:8000"
    assert found.model == "mock/mock-8b"
    assert found.replace_seconds == 600 + 60 + 90
    assert found.pre_stop_seconds == 10


def test_given_values_are_read() -> None:
    """The port, the model and the time that a rollout may take are those of the release."""
    rest = {
        "service": {"port": 80}, "model": {"name": "acme/chat"}, "replicaCount": 3,
        "engine": {"loadTimeoutSeconds": 1200}, "rollout": {"terminationGracePeriodSeconds": 200, "preStopSeconds": 0},
    }  # fmt: skip
    found = serving(_RELEASE, {**_IMAGE, **rest})
    assert found.url == "http://chat-inference-service:80"
    assert found.model == "acme/chat"
    assert found.replace_seconds == 3 * (1200 + 60) + 200
    assert found.pre_stop_seconds == 0


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, "it has no image.repository"),
        ({"image": None}, "it has no image.repository"),
        ({"image": {"repository": "nginx", "tag": "1"}}, "it has no image.digest"),
        ({"image": "nginx:1"}, "image is 'nginx:1'"),
        ({**_IMAGE, "service": "web"}, "service is 'web'"),
        ({**_IMAGE, "replicaCount": "two"}, "replicaCount is 'two'"),
    ],
)
def test_release_of_another_chart_is_refused(values: dict[str, Any], why: str) -> None:
    """The refusal names the release, what is missing or wrong, and what to do."""
    with pytest.raises(UsageError) as refused:
        serving(_RELEASE, values)
    for words in ("release 'chat'", why, "--release", "./just deploy"):
        assert words in str(refused.value)
