"""Response generation: which words answer what was said?"""
