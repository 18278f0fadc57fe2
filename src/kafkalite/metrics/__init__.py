"""Numbers about a cluster, in the names that people's dashboards know."""
