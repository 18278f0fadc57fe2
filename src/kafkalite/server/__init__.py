"""From sockets to handlers and back: listeners, connections, dispatch and their limits."""
