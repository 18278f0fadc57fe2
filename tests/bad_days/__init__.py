"""Commands of pipelines on bad days, counted by a reader that shares no code with them."""
