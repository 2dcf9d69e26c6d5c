"""inferctl deploys an LLM inference service and proves that disruptions lose no streamed answer.

Layers, each of which may use only those below it: ``cli``; ``disruption`` and ``report``;
``release``, ``images`` and ``cluster``; ``process``, ``paths``, ``console`` and ``errors``.
"""
