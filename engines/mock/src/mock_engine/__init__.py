"""An inference engine that behaves like vLLM at its edges and computes nothing.

It exists so that rollouts, drains, probes and autoscalers can be tested without a model: ports, headers, JSON
shapes, metrics and signals are vLLM's; the text is made up and its timing comes from the environment.
It refuses to be kinder than the real engine: what vLLM loses by default, this loses too.
"""

VLLM_VERSION = "0.32.0"
