"""Dialog with a fixed list of responses: chooses what the bot says next."""
