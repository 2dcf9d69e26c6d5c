"""Writes a first values file for a model: short, and each line with its reason."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from dataclasses import dataclass

import yaml

from inferctl.errors import UsageError

_IMAGE = re.compile(r"(?P<repository>[!-?A-~]+)@(?P<digest>sha256:[0-9a-f]{64})")
_PRE_STOP_SECONDS = 10  # the chart's default; the sum below must fit it
_EXIT_SECONDS = 5  # what the chart leaves the engine to exit in
_LONGEST_MODEL = 4096  # characters, as in the chart's schema
_SHOWN = 80  # characters of a refused name that are shown
_ODD = re.compile(r"[-+.0-9].*|[yYnN]")  # what Helm may take for a number or a boolean, and other readers do not


@dataclass(frozen=True)
class Wish:
    """What an app team knows about its model. Times in seconds.

    Attributes:
        model: the model's name, as clients ask for it.
        image: the engine's image as repository@sha256:...; empty if not known yet.
        gpus: GPUs per pod.
        replicas: pods that serve.
        load_seconds: the longest that the engine may take to load.
        answer_seconds: the longest answer that must be finished.
        spare_gpu: whether the cluster has room for one more pod during a rollout.
    """

    model: str
    image: str = ""
    gpus: int = 1
    replicas: int = 1
    load_seconds: int = 600
    answer_seconds: int = 75
    spare_gpu: bool = True


def values_file(wish: Wish) -> str:
    """The text of a values file.

    Raises:
        UsageError: the model has no name or none that is text; the image is not named by a digest.
    """
    _refuse_model(wish.model)
    repository, digest = _image(wish.image)
    grace = _PRE_STOP_SECONDS + wish.answer_seconds + _EXIT_SECONDS
    sleep, answer, leaving = _PRE_STOP_SECONDS, wish.answer_seconds, _EXIT_SECONDS
    parts = [
        f"""\
        # Check this file with: inferctl values check FILE
        model:
          name: {_scalar(wish.model)}
        """,
        f"""\
        image:
          # Without tag or digest.
          repository: {_scalar(repository)}{"" if repository else "  # required"}
          # The digest that the registry shows for the image: a tag could be moved.
          digest: {_scalar(digest)}{"" if digest else "  # required: sha256:..."}
        """,
        f"""\
        replicaCount: {wish.replicas}
        """,
        f"""\
        engine:
          # Each line is one argument, passed on as written.
          args:
            - {_scalar(wish.model)}
          env:
            # The pod's user has no home in most images, and vLLM keeps its caches there.
            HOME: /tmp
          # The longest that a load may take, image pull not counted.
          loadTimeoutSeconds: {wish.load_seconds}
        """,
        f"""\
        rollout:
          # {sleep} for the sleep before SIGTERM + {answer} for the longest answer + {leaving} to exit.
          terminationGracePeriodSeconds: {grace}
        """
        + (
            ""
            if wish.spare_gpu
            else "  # No spare GPU: pods are replaced in place, one at a time.\n          maxSurge: 0\n"
        ),
    ]
    if wish.gpus:
        parts.append(f"""\
        resources:
          limits:
            nvidia.com/gpu: {wish.gpus}
        """)
    return "\n".join(textwrap.dedent(part) for part in parts)


def _refuse_model(model: str) -> None:
    said = f"--model {model[:_SHOWN]!a}"
    if not model.strip():
        raise UsageError(f"{said}: give the model's name, as clients ask for it")
    if model.startswith("-"):
        raise UsageError(f"{said}: begins with -, as the engine's options do; give the model's name")
    if len(model) > _LONGEST_MODEL:
        raise UsageError(f"{said}...: has {len(model)} characters; the chart takes {_LONGEST_MODEL}")
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in model):
        raise UsageError(f"{said}: has a control character or a byte that is not UTF-8; leave it out")


def _image(image: str) -> tuple[str, str]:
    if not image:
        return "", ""
    match = _IMAGE.fullmatch(image)
    if not match:
        shown = image if image.isprintable() else ascii(image)
        raise UsageError(f"--image {shown}: write it as repository@sha256:<64 hex digits>, as the registry shows it")
    return match["repository"], match["digest"]


def _scalar(text: str) -> str:
    """A text as YAML that is read back as that text, in quotes where it needs them."""
    style = "'" if _ODD.fullmatch(text) else None
    line = yaml.safe_dump(text, width=float("inf"), allow_unicode=True, default_style=style)
    return line.removesuffix("...\n").rstrip("\n")
