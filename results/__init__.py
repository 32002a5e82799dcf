"""Published figures, our measured ones, and the README's tables made of both."""
