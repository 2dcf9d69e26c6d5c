"""What runs inside a node: an init that makes the node's view of the file system and keeps its programs alive.

Only the standard library is imported here, so that three nodes cost little memory and start at once.
"""
