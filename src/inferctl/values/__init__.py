"""The app team's values file: how one is begun, and what the chart makes of it."""
