"""The checks that need no cluster: what they are, how they run, and the hook that runs some of them before a commit."""
