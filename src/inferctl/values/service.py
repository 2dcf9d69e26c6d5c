"""What a release will do, in numbers read off the objects that the chart renders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from inferctl.values.rendering import Release

_FOR_EVER = 10**9  # seconds, about 30 years
_MOST_DIGITS = 1000  # more say nothing new, and Python would not count them


@dataclass(frozen=True)
class Behaviour:
    """What an app team should know of its service before it runs. All times in seconds.

    Attributes:
        model: the model's name.
        image: the engine's image, by digest.
        address: the Service as clients in the cluster write it.
        replicas: pods that serve; None where an autoscaler decides.
        load_seconds: how long a pod may load before it is restarted.
        rollout_deadline_seconds: when a rollout without progress counts as failed.
        grace_seconds: from the decision to stop a pod until it is killed.
        pre_stop_seconds: the part of it before SIGTERM.
        stream_seconds: the part of it in which the engine finishes its streams; None if nobody tells it.
        surge: pods that a rollout may start beyond the replicas; 0 replaces one pod at a time in place.
        most_pods: pods during a rollout; None where an autoscaler decides.
        least_ready: serving pods during a rollout; None where an autoscaler decides.
        kept_by_drains: ready pods that node drains leave; None without a budget.
        devices: devices per pod (GPUs), by resource name.
    """

    model: str
    image: str
    address: str
    replicas: int | None
    load_seconds: int
    rollout_deadline_seconds: int
    grace_seconds: int
    pre_stop_seconds: int
    stream_seconds: int | None
    surge: int
    most_pods: int | None
    least_ready: int | None
    kept_by_drains: int | None
    devices: dict[str, str]


def describe(release: Release, *, namespace: str, shutdown_flag: str) -> Behaviour:
    """Read the behaviour of a release off its objects.

    Args:
        release: the objects.
        namespace: where they would be installed.
        shutdown_flag: the engine's flag for how long it may finish its streams.
    """
    spec = release.deployment["spec"]
    startup = release.engine["startupProbe"]
    strategy = spec["strategy"]["rollingUpdate"]
    replicas = spec.get("replicas")
    budget = release.of_kind("PodDisruptionBudget")
    service = release.service
    limits = release.engine.get("resources", {}).get("limits", {})
    return Behaviour(
        model=release.environment["MODEL_NAME"],
        image=release.engine["image"],
        address=f"http://{service['metadata']['name']}.{namespace}:{service['spec']['ports'][0]['port']}",
        replicas=replicas,
        load_seconds=startup["failureThreshold"] * startup["periodSeconds"],
        rollout_deadline_seconds=spec["progressDeadlineSeconds"],
        grace_seconds=release.pod["terminationGracePeriodSeconds"],
        pre_stop_seconds=release.engine.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0),
        stream_seconds=_stream_seconds(release.argv, shutdown_flag),
        surge=strategy["maxSurge"],
        most_pods=None if replicas is None else replicas + strategy["maxSurge"],
        least_ready=None if replicas is None else max(0, replicas - strategy["maxUnavailable"]),
        kept_by_drains=budget["spec"]["minAvailable"] if budget else None,
        devices={name: str(amount) for name, amount in limits.items() if "/" in name},
    )


def advice(release: Release, behaviour: Behaviour, args: Sequence[str]) -> list[str]:
    """What the file leaves open and its author may not have meant to; ``args`` are its own engine.args."""
    pods = _advice_on_pods(behaviour, release.engine.get("resources", {}))
    return [*pods, *_advice_on_engine(release, args), *_advice_on_streams(behaviour)]


def in_words(behaviour: Behaviour) -> list[tuple[str, str]]:
    """The behaviour as lines of a heading and a sentence."""
    sleep = f"{behaviour.pre_stop_seconds} s sleep"
    whole = f"{behaviour.grace_seconds} s"
    if behaviour.stream_seconds is None:
        drain = f"{sleep}, then as long as the engine takes; killed after {whole} in all"
    else:
        streams = f"{behaviour.stream_seconds} s for streams that have begun"
        drain = f"up to {whole} a pod: {sleep}, {streams}, the rest to exit; a longer answer is cut"
    deadline = f"failed after {behaviour.rollout_deadline_seconds} s without progress"
    devices = ", ".join(f"{amount} {name}" for name, amount in behaviour.devices.items()) or "no accelerator"
    if behaviour.replicas is None:
        pods = "as many as the autoscaler says"
        more = f"at most {behaviour.surge} pod(s) more than that, never fewer ready"
        rollout = more if behaviour.surge else "one pod at a time is replaced in place"
    else:
        pods = str(behaviour.replicas)
        rollout = f"at most {behaviour.most_pods} pod(s), at least {behaviour.least_ready} ready"
    if behaviour.kept_by_drains is None:
        kept = "no budget: all pods may be evicted at once"
    else:
        kept = f"evicts a pod only while {behaviour.kept_by_drains} other(s) are ready"
    return [
        ("model", behaviour.model),
        ("image", behaviour.image),
        ("address", behaviour.address),
        ("pods", f"{pods}, each with {devices}"),
        ("load", f"up to {behaviour.load_seconds} s; a pod that takes longer is restarted"),
        ("drain", drain),
        (
            "rollout",
            f"{rollout}; {deadline}",
        ),
        ("node drain", kept),
    ]


def _advice_on_pods(behaviour: Behaviour, resources: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    if not behaviour.devices:
        yield "resources.limits names no accelerator: the engine runs on the processor"
    for kind, amounts in resources.items():
        memory = str(amounts.get("memory", ""))
        if memory.endswith("m"):
            yield f"resources.{kind}.memory is {memory}, in thousandths of a byte: M and Mi are a million bytes"
    if behaviour.replicas == 0:
        yield "replicaCount is 0: nothing serves"
    if behaviour.replicas == 1:
        if behaviour.least_ready == 0:
            yield "rollout.maxSurge is 0 with one pod: every rollout has an outage of one drain and one load"
        yield "replicaCount is 1: after a node drain nothing serves until the new pod has loaded"


def _advice_on_engine(release: Release, args: Sequence[str]) -> Iterator[str]:
    if not args:
        yield "engine.args is empty: the engine finds its model in MODEL_NAME only; vLLM wants an argument"
    user = release.pod.get("securityContext", {}).get("runAsUser")
    if user is not None and "HOME" not in release.environment:
        yield f"engine.env.HOME is not set: user {user} may have no home in the image; vLLM needs one (/tmp)"


def _advice_on_streams(behaviour: Behaviour) -> Iterator[str]:
    streams = behaviour.stream_seconds
    left = behaviour.grace_seconds - behaviour.pre_stop_seconds
    if streams is None:
        yield "nobody tells the engine in seconds how long to finish its streams: it must know by itself"
    elif streams > left:
        yield f"engine.args gives streams {streams} s, but the engine is killed {left} s after the sleep"
    elif streams == 0:
        yield "the engine has 0 s to finish its streams: every rollout cuts the answers that have begun"


def _stream_seconds(argv: list[str], shutdown_flag: str) -> int | None:
    """The time that the engine's arguments give to streams; the last flag counts, as in argparse."""
    found = None
    for position, argument in enumerate(argv):
        flag, _, value = argument.partition("=")
        if flag.replace("_", "-") == shutdown_flag.replace("_", "-"):
            text = value or (argv[position + 1] if position + 1 < len(argv) else "")
            found = min(int(text[:_MOST_DIGITS]), _FOR_EVER) if text.isdecimal() else None
    return found
