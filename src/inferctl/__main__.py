"""``python -m inferctl`` is ``inferctl``."""

from inferctl.cli import main

main()
