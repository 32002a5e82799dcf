"""Response selection: which of some candidates continues a conversation?"""
