"""Clusters to run releases on: the embedded one, kind, or one that exists already."""
