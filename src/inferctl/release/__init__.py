"""Releases of the chart: deployed, changed and removed through Helm."""
