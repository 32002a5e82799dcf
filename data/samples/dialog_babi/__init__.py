"""Sixty dialogs of dialog bAbI, with the knowledge base and the candidates that they need."""
