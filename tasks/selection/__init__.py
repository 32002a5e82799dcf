"""Response selection: ranks candidates for the next turn of a conversation."""
