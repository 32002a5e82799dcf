"""Response generation: writes a reply to a conversation, word by word."""
